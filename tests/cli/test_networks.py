# SPDX-License-Identifier: BSD-3-Clause
"""What `stretto doctor` says of networks by which long messages go."""

from __future__ import annotations

from typing import Any

import pytest
from stretto.native import networks, probe


def offer(provider: str, software: bool, usable: bool = True) -> dict[str, Any]:
    return {"provider": provider, "domain": f"{provider[:3]}0", "software": software, "usable": usable}


TCP, SHM = offer("tcp;ofi_rxm", True), offer("shm", True)
VERBS, FAR = offer("verbs;ofi_rxm", False), offer("verbs;ofi_rxm", False, usable=False)
FOUND = {"card": False, "library": "/lib/libfabric.so.1", "version": "1.17", "error": None, "offers": [TCP, SHM]}
NONE = {"card": False, "library": None, "error": "there is no libfabric.so.1"}


@pytest.mark.parametrize(
    ("found", "asked", "good", "says"),
    [
        (FOUND, "", True, "no card for another is here; libfabric 1.17 in /lib/libfabric.so.1: tcp;ofi_rxm, shm"),
        (FOUND, "tcp", True, "provider tcp;ofi_rxm, domain tcp0"),
        (FOUND, "verbs", False, "no provider verbs"),
        (FOUND, "off", True, "as STRETTO_FABRIC=off asks"),
        (NONE, "", True, "TCP: there is no libfabric.so.1"),
        (NONE, "tcp", False, "TCP: there is no libfabric.so.1"),
        ({**NONE, "card": True}, "", False, "TCP: there is no libfabric.so.1"),
        ({**FOUND, "card": True}, "", False, "no provider of a fast network"),
        ({**FOUND, "card": True, "offers": [TCP, FAR, VERBS]}, "auto", True, "provider verbs;ofi_rxm, domain ver0"),
        ({**FOUND, "card": True, "offers": [FAR, TCP]}, "", False, "no provider of a fast network"),
    ],
)
def test_what_would_be_taken(found: dict[str, Any], asked: str, good: bool, says: str) -> None:
    line = networks.line(found, asked)
    assert (line.good, says in line.finding) == (good, True), line
    assert line.good or line.advice


def test_this_machine() -> None:
    found = probe.networks()
    assert (found["library"] is None) == (found["error"] is not None)
    assert networks.line(found, "off").good and networks.line(found).finding.startswith(("TCP", "provider"))
