# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a machine and of a network, and the domains of ranks on them."""

from __future__ import annotations

from typing import Optional

from stretto.cluster.plan import Domains
from stretto.core.console import fail

# Those of src/topo/locality.hpp, lowest first. Beyond the machine, messages go through a network.
MACHINE_LEVELS = ("core", "l2", "l3", "numa", "socket", "node")
LEVELS = (*MACHINE_LEVELS, "leaf", *(f"switch{n}" for n in range(2, 9)))


def checked_levels(levels: Optional[str]) -> Optional[str]:
    """Callback of --levels: known levels, each above the one before."""
    if levels is None:
        return None
    below = ""
    for part in levels.split(","):
        name, _, number = part.partition(":")
        if not name or not number.isdecimal() or int(number) == 0:
            fail(f"--levels: '{part}': NAME:N expected, N 1 or more, as in node:2,leaf:2")
        if name not in LEVELS:
            fail(f"--levels: '{part}': no such level: one of {', '.join(LEVELS)}")
        if (
            below and LEVELS.index(name) <= LEVELS.index(below) and (below, name) != ("numa", "l3")
        ):  # an L3 may span NUMA nodes
            fail(f"--levels: {name} after {below}: from the lowest up, which is {', '.join(LEVELS)}")
        below = name
    return levels


def domains_of_levels(levels: str, ranks: int) -> Domains:
    """The domain of every rank on each level."""
    domains: Domains = {}
    each = 1
    for part in levels.split(","):
        name, _, number = part.partition(":")
        each *= int(number)
        domains[name] = [rank // each for rank in range(ranks)]
    return domains


def levels_of_domains(domains: Domains) -> str | None:
    """The levels that give these domains; None: domains differ in size, or their ranks are not
    neighbours."""
    words, below = [], 1
    for name, of_ranks in domains.items():
        each = of_ranks.count(of_ranks[0])
        order = {domain: number for number, domain in enumerate(dict.fromkeys(of_ranks))}
        if each % below or any(order[domain] != rank // each for rank, domain in enumerate(of_ranks)):
            return None
        words.append(f"{name}:{each // below}")
        below = each
    return ",".join(words)
