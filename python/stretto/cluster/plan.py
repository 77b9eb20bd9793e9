# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a cluster: hosts, switches, links and their rates. This module does not touch the
system."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

SPINE = "spine"
MOST_HOSTS = 250
MOST_NICS = 4

Domains = dict[str, list[int]]  # the domain of every rank, by level, lowest first


class PlanError(ValueError):
    """No cluster can have this form."""


@dataclass(frozen=True)
class Host:
    name: str
    leaf: str
    addresses: tuple[str, ...]  # addresses of eth0, eth1, ...

    @property
    def address(self) -> str:
        return self.addresses[0]


@dataclass(frozen=True)
class Link:
    """A link between a host or switch and the switch above it. It has the name of its lower end."""

    name: str
    upper: str
    lower_port: str  # interface names; a host's is in its own network namespace, a switch's in the fabric's
    upper_port: str
    rate_bps: int
    host: str = ""  # "" for an uplink

    @property
    def is_uplink(self) -> bool:
        return not self.host


@dataclass(frozen=True)
class Plan:
    name: str = "default"
    leaves: int = 2
    hosts_per_leaf: int = 2
    ranks_per_host: int = 2
    host_rate_bps: int = 1_000_000_000
    uplink_rate_bps: int = 500_000_000
    nics: int = 1  # network cards of each host, each with a link to its leaf switch

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", self.name):
            raise PlanError(
                f"'{self.name}': a cluster's name is up to 20 lower-case letters, digits and dashes, a letter first"
            )
        if min(self.leaves, self.hosts_per_leaf, self.ranks_per_host) < 1:
            raise PlanError("leaf switches, hosts and ranks: at least one of each")
        if self.leaves * self.hosts_per_leaf > MOST_HOSTS:
            raise PlanError(f"{self.leaves * self.hosts_per_leaf} hosts: {MOST_HOSTS} are the most")
        if not 1 <= self.nics <= MOST_NICS:
            raise PlanError(f"{self.nics} network cards: 1 to {MOST_NICS}")
        if min(self.host_rate_bps, self.uplink_rate_bps) < 1_000_000:
            raise PlanError("a link carries at least 1 Mbit/s")

    @functools.cached_property
    def hosts(self) -> list[Host]:
        count = self.leaves * self.hosts_per_leaf
        return [
            Host(
                f"{self.name}-{i}",
                f"leaf{i // self.hosts_per_leaf}",
                tuple(f"10.77.{nic}.{i + 1}" for nic in range(self.nics)),
            )
            for i in range(count)
        ]

    @functools.cached_property
    def switches(self) -> list[str]:
        leaves = [f"leaf{i}" for i in range(self.leaves)]
        return leaves + ([SPINE] if self.leaves > 1 else [])

    @functools.cached_property
    def links(self) -> list[Link]:
        def names(of: str, nic: int) -> str:
            return of if nic == 0 else f"{of}.{nic}"

        hosts = [
            Link(names(h.name, nic), h.leaf, f"eth{nic}", names(f"host{i}", nic), self.host_rate_bps, h.name)
            for nic in range(self.nics)
            for i, h in enumerate(self.hosts)
        ]
        uplinks = [Link(s, SPINE, f"{s}-up", f"{s}-down", self.uplink_rate_bps) for s in self.switches[:-1]]
        return hosts + uplinks

    @property
    def ranks(self) -> int:
        return len(self.hosts) * self.ranks_per_host

    def processors(self, host: int, of: Sequence[int]) -> list[int]:
        """The part of the machine's processors that a host runs on: equal, contiguous parts. If
        there are too few, neighbouring hosts share one."""
        begin, end = (len(of) * number // len(self.hosts) for number in (host, host + 1))
        return list(of[begin : max(end, begin + 1)])

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    # ---- the cluster in other programs' words ----------------------------------------------------

    def hosts_text(self) -> str:
        """The text of /etc/hosts."""
        return "127.0.0.1 localhost\n" + "".join(f"{h.address} {h.name}\n" for h in self.hosts)

    def network_text(self) -> str:
        """The network file for Stretto: the switches above each host, lowest first."""
        above = [SPINE] if SPINE in self.switches else []
        return f"# cluster {self.name}\n" + "".join(" ".join([h.name, h.leaf, *above]) + "\n" for h in self.hosts)


def domains_of_plan(plan: Plan, hosts: Sequence[str]) -> Domains:
    """Nodes and switches of ranks on these hosts, by the library's names of levels. If hosts have
    several cards, their ranks take them in turn."""
    by_name = {host.name: (number, plan.switches.index(host.leaf)) for number, host in enumerate(plan.hosts)}
    domains = {"node": [by_name[host][0] for host in hosts], "leaf": [by_name[host][1] for host in hosts]}
    if plan.leaves > 1:
        domains["switch2"] = [0] * len(hosts)
    cards = [hosts[:rank].count(host) % plan.nics for rank, host in enumerate(hosts)]
    return {**domains, "nic": cards} if any(cards) else domains


def placement_text(domains: Domains) -> str:
    """The placement file that src/topo/placement_file.hpp reads."""
    ranks = len(next(iter(domains.values())))
    return "".join(
        f"{rank}: " + " ".join(f"{level}={of_ranks[rank]}" for level, of_ranks in domains.items()) + "\n"
        for rank in range(ranks)
    )


def parse_rate(text: str) -> int:
    """Bits per second from 1G, 0.5G, 500M or 2.5Gbit/s (powers of 1000)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:bit(?:/s)?|bps)?", text.strip(), re.IGNORECASE)
    if not match:
        raise PlanError(f"'{text}' is not a rate: bits per second are expected, K, M or G may follow, for example 0.5G")
    return round(float(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2].lower()])


def format_rate(rate_bps: int) -> str:
    for least, unit in ((10**9, "Gbit/s"), (10**6, "Mbit/s")):
        if rate_bps >= least:
            return f"{rate_bps / least:g} {unit}"
    return f"{rate_bps / 1000:g} kbit/s"


def describe(plan: Plan) -> str:
    """A plan in words."""
    cards = f"{plan.nics} x " if plan.nics > 1 else ""
    rates = f"hosts {cards}{format_rate(plan.host_rate_bps)}" + (
        f", uplinks {format_rate(plan.uplink_rate_bps)}" if plan.leaves > 1 else ""
    )
    return f"{plan.leaves} leaf switches x {plan.hosts_per_leaf} hosts x {plan.ranks_per_host} ranks, {rates}"
