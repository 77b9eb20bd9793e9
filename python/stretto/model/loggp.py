# SPDX-License-Identifier: BSD-3-Clause
"""Times of messages by LogGP's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def piece_at(found: Sequence[dict[str, Any]], bytes_: float) -> dict[str, Any]:
    return [p for p in found if p["from_bytes"] <= bytes_][-1]


def wire(piece: dict[str, Any], bytes_: float, port_: dict[str, Any] | None = None) -> float:
    more = max(bytes_ - 1, 0)
    return piece["latency"] + max(piece["byte_gap"] * more, held_up(port_, bytes_) if port_ else 0.0)


def held_up(port_: dict[str, Any], bytes_: float) -> float:
    """The delay of a message in a port that has rested."""
    return port_["byte_gap"] * max(bytes_ - 1 - port_["burst_bytes"], 0)


def one_way(piece: dict[str, Any], bytes_: float, port_: dict[str, Any] | None = None) -> float:
    return (
        piece["send_overhead"]
        + piece["receive_overhead"]
        + (piece["send_byte"] + piece["receive_byte"]) * bytes_
        + wire(piece, bytes_, port_)
    )


def exchange(piece: dict[str, Any], bytes_: float, port_: dict[str, Any] | None = None) -> float:
    between = wire(piece, bytes_, port_)
    return (
        one_way(piece, bytes_, port_)
        - between
        + max(between, 2 * (piece["handling"] + piece["handling_byte"] * bytes_))
    )
