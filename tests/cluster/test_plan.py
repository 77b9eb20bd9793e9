# SPDX-License-Identifier: BSD-3-Clause
"""What a cluster consists of, before any of it exists. Needs no privileges."""

from __future__ import annotations

import pytest
from stretto.cluster import Plan, PlanError
from stretto.cluster.plan import domains_of_plan, format_rate, parse_rate


def test_the_usual_cluster():
    plan = Plan()
    assert [(h.name, h.leaf) for h in plan.hosts] == [
        ("default-0", "leaf0"),
        ("default-1", "leaf0"),
        ("default-2", "leaf1"),
        ("default-3", "leaf1"),
    ]
    assert plan.switches == ["leaf0", "leaf1", "spine"] and plan.ranks == 8
    assert [link.name for link in plan.links if link.is_uplink] == ["leaf0", "leaf1"]
    assert {link.rate_bps for link in plan.links if link.is_uplink} == {500_000_000}


@pytest.mark.parametrize(
    ("processors", "of_hosts"),
    [
        ([0], ["0", "0", "0", "0"]),
        ([0, 1], ["0", "0", "1", "1"]),
        ([2, 3, 5], ["2", "2", "3", "5"]),
        (range(8), ["01", "23", "45", "67"]),
        (range(6), ["0", "12", "3", "45"]),
    ],
)
def test_hosts_divide_the_processors(processors, of_hosts):
    plan = Plan()
    assert ["".join(map(str, plan.processors(host, processors))) for host in range(4)] == of_hosts


def test_one_leaf_switch_needs_no_spine():
    plan = Plan(leaves=1, hosts_per_leaf=3)
    assert plan.switches == ["leaf0"] and not any(link.is_uplink for link in plan.links)
    assert plan.network_text().splitlines()[1:] == [f"default-{i} leaf0" for i in range(3)]


def test_hosts_with_several_cards():
    plan = Plan("x", nics=2)
    assert [(link.name, link.lower_port) for link in plan.links if link.host == "x-1"] == [
        ("x-1", "eth0"),
        ("x-1.1", "eth1"),
    ]
    assert plan.hosts[1].addresses == ("10.77.0.2", "10.77.1.2") and sum(link.is_uplink for link in plan.links) == 2
    assert domains_of_plan(plan, ["x-0", "x-1", "x-1", "x-0", "x-1"])["nic"] == [0, 0, 1, 1, 0]


@pytest.mark.parametrize("nics", [1, 2])
def test_names_are_unique_and_fit_the_kernel(nics):
    plan = Plan("a-very-long-name-000", leaves=50, hosts_per_leaf=5, nics=nics)
    ports = [
        port
        for link in plan.links
        for port in ((link.upper_port, link.lower_port) if link.is_uplink else (link.upper_port,))
    ]
    assert len(set(ports + plan.switches)) == len(ports) + len(plan.switches)
    assert max(map(len, ports)) <= 15
    assert len({h.name for h in plan.hosts} | {a for h in plan.hosts for a in h.addresses}) == 250 * (1 + nics)


def test_network_file_has_a_line_per_host():
    assert Plan("x").network_text().splitlines()[1:] == [
        "x-0 leaf0 spine",
        "x-1 leaf0 spine",
        "x-2 leaf1 spine",
        "x-3 leaf1 spine",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"leaves": 0},
        {"ranks_per_host": 0},
        {"name": "../x"},
        {"name": ""},
        {"name": "Capital"},
        {"leaves": 26, "hosts_per_leaf": 10},
        {"uplink_rate_bps": 10},
        {"nics": 0},
        {"nics": 5},
    ],
)
def test_clusters_that_cannot_be(wrong):
    with pytest.raises(PlanError):
        Plan(**wrong)


@pytest.mark.parametrize(
    ("text", "rate", "printed"),
    [
        ("1G", 10**9, "1 Gbit/s"),
        ("0.5Gbit/s", 5 * 10**8, "500 Mbit/s"),
        ("250m", 25 * 10**7, "250 Mbit/s"),
        ("64k", 64_000, "64 kbit/s"),
    ],
)
def test_rates(text, rate, printed):
    assert parse_rate(text) == rate and format_rate(rate) == printed


@pytest.mark.parametrize("text", ["", "fast", "-1G", "1T", "1 Gbyte"])
def test_rates_that_are_none(text):
    with pytest.raises(PlanError):
        parse_rate(text)
