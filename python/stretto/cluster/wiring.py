# SPDX-License-Identifier: BSD-3-Clause
"""Makes a plan's links of veth pairs, bridges and token buckets, and counts their bytes.

All switches are bridges in one network namespace, the fabric's. Each host has its own, with an
interface for each network card.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from stretto.cluster.plan import Link, Plan
from stretto.cluster.prerequisites import with_administrators_tools

# TCP hands segments to a port in bundles of at most BUNDLE_BYTES. A port sends a burst at once:
# what its rate gives in BURST_S, the accuracy of a timer, but at least a bundle with its headers,
# which it would otherwise split.
BUNDLE_BYTES, LEAST_BURST_BYTES, BURST_S = 16 << 10, 20 << 10, 150e-6
# A port's queue. It is long, because an overflow makes TCP wait for 200 ms. That of a host's card
# counts bundles, and sends by priority, as Linux does where nobody says otherwise.
QUEUE_BYTES = 16 << 20
CARD_BUNDLES = 4 * QUEUE_BYTES // BUNDLE_BYTES
# TCP's congestion control on hosts. The machine's own may be BBR, which estimates rates and paces.
# Between messages of a collective, on links with 10 us of delay, its estimates collapse: a
# connection with data and a free window rests for 50 to 300 ms. Reno is in every kernel and allowed
# in every namespace.
CONGESTION_CONTROL = "reno"
# All cards of a host are on the same switch. Each card answers for its own address only, and
# accepts packets whose answer would go out by another card.
SEVERAL_NICS = [
    "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore",
    "echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce",
    "for filter in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$filter; done",
]


class WiringError(RuntimeError):
    """The kernel refuses a link."""


@dataclass(frozen=True)
class Traffic:
    """Bytes that crossed a link, headers included, as its upper end counts them."""

    up_bytes: int
    down_bytes: int

    def __sub__(self, before: Traffic) -> Traffic:
        return Traffic(self.up_bytes - before.up_bytes, self.down_bytes - before.down_bytes)

    @property
    def both_bytes(self) -> int:
        return self.up_bytes + self.down_bytes


# ---- scripts for the namespaces ------------------------------------------------------------------


def _port(name: str, rate_bps: int) -> list[str]:
    burst = max(LEAST_BURST_BYTES, round(rate_bps / 8 * BURST_S))
    return [
        f"ip link set {name} up gso_max_size {BUNDLE_BYTES}",
        f"tc qdisc add dev {name} root handle 1: tbf rate {rate_bps}bit burst {burst} limit {QUEUE_BYTES}",
    ]


def fabric_script(plan: Plan, host_pids: Mapping[str, int]) -> str:
    """Makes switches, their ports, and the hosts' ends of their links, which move to the hosts'
    namespaces."""
    lines = ["echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"]
    for switch in plan.switches:
        lines += [f"ip link add {switch} type bridge stp_state 0 mcast_snooping 0", f"ip link set {switch} up"]
    for link in plan.links:
        away = "" if link.is_uplink else f"netns {host_pids[link.host]}"
        lines.append(f"ip link add {link.upper_port} type veth peer name {link.lower_port} {away}")
        ends = [(link.upper_port, link.upper)] + ([(link.lower_port, link.name)] if link.is_uplink else [])
        for port, switch in ends:
            lines += [f"ip link set {port} master {switch}", *_port(port, link.rate_bps)]
    return "\n".join(lines)


def host_script(plan: Plan, host: str) -> str:
    [addresses] = [h.addresses for h in plan.hosts if h.name == host]
    lines = [
        "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6",
        f"echo {CONGESTION_CONTROL} >/proc/sys/net/ipv4/tcp_congestion_control",
        "ip link set lo up",
    ]
    if plan.nics > 1:
        lines += SEVERAL_NICS
    for nic, address in enumerate(addresses):
        card = f"eth{nic}"
        lines += [f"ip address add {address}/24 dev {card}", f"ip link set {card} txqueuelen {CARD_BUNDLES}"]
        lines += [*_port(card, plan.host_rate_bps), f"tc qdisc add dev {card} parent 1:1 pfifo_fast"]
    return "\n".join(lines)


def in_network_of(pid: int, line: list[str], text: str = "") -> str:
    """Runs a command in the network namespace of a process."""
    there = f"/proc/{pid}/ns"
    as_its_root = [] if os.path.samefile(f"{there}/user", "/proc/self/ns/user") else [f"--user={there}/user"]
    done = subprocess.run(
        ["nsenter", *as_its_root, "--preserve-credentials", f"--net={there}/net", *line],
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": with_administrators_tools(os.environ.get("PATH", ""))},
    )
    if done.returncode:
        raise WiringError(done.stderr.strip() or f"{line[0]} ended with status {done.returncode}")
    return done.stdout


def wire(plan: Plan, fabric_pid: int, host_pids: Mapping[str, int]) -> None:
    in_network_of(fabric_pid, ["sh", "-eu"], fabric_script(plan, host_pids))
    for host, pid in host_pids.items():
        in_network_of(pid, ["sh", "-eu"], host_script(plan, host))


# ---- counters ------------------------------------------------------------------------------------


def count(plan: Plan, fabric_pid: int) -> dict[str, Traffic]:
    """The traffic of every link, by its name."""
    listed = json.loads(in_network_of(fabric_pid, ["ip", "-json", "-stats", "link", "show"]))
    ports = {port["ifname"]: port["stats64"] for port in listed}
    return {link.name: _traffic(link, ports) for link in plan.links}


def _traffic(link: Link, ports: Mapping[str, dict[str, dict[str, int]]]) -> Traffic:
    stats = ports[link.upper_port]
    return Traffic(stats["rx"]["bytes"], stats["tx"]["bytes"])
