# SPDX-License-Identifier: BSD-3-Clause
"""Fits parameters to measured times: LogGP in pieces by message length, each piece between two
changes of protocol.

A row has medians and spreads of the exercises of bench/schedules.cpp for one length, measured with
the executor that runs collectives. Within a piece every parameter is a linear function of the
length. Errors are relative, so that 8 bytes count as much as a megabyte. Dynamic programming finds
where pieces begin: it minimises the errors plus a penalty for each piece.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from stretto.model import loggp

Row = dict[str, Any]
Line = tuple[float, float]  # value at 0 bytes, and per byte; neither is negative

MOST_PIECES = 8
LEAST_POINTS = 3
# What another piece must save. With relative errors of 5% as noise, it is worth about two points.
PIECE_PENALTY = 8 * 0.05**2
MESSAGE_CURVES = ("oneway", "roundtrip", "exchange", "burst")
BURST = 8  # messages, as in bench/exercises.hpp
LONG_BYTES = 32 << 10
SHORT_BYTES = 4 << 10
COPIED_BYTES = 16 << 10  # longer messages through a network do not cost more processor time
SENDRECVS, LATE = 8, 100e3  # exchanges, and by how much rank 1 begins late, in ns, as in bench/schedules.cpp
QUEUES_FROM = 0.3  # exchanges take so much longer than one way, or twice as long, at least
LEAST_SHARE = 0.2  # least share of the receiver in a message's passage


def value(row: Row, name: str) -> float:
    return max(float(row[name][0]), 0.5)  # below the clock's resolution


def line(points: Sequence[tuple[float, float]]) -> Line:
    """Least squares of relative errors. Neither parameter is negative."""
    import numpy as np

    x = np.array([p[0] for p in points])
    y = np.array([max(p[1], 1e-9) for p in points])
    columns = np.stack([1 / y, x / y], axis=1)
    (constant, slope), *_ = np.linalg.lstsq(columns, np.ones(len(y)), rcond=None)
    if constant < 0:
        constant, slope = 0.0, _alone(columns[:, 1])
    if slope < 0:
        constant, slope = _alone(columns[:, 0]), 0.0
    return float(constant), float(max(slope, 0.0))


def _alone(column: Any) -> float:
    return float(column.sum() / max(float((column**2).sum()), 1e-300))


def off_by(points: Sequence[tuple[float, float]], fitted: Line) -> float:
    """The sum of the squares of relative errors, each at most 1."""
    return sum(min(1.0, ((fitted[0] + fitted[1] * x) / max(y, 1e-9) - 1) ** 2) for x, y in points)


def pieces(rows: Sequence[Row], curves: Sequence[str], most: int = MOST_PIECES) -> list[list[Row]]:
    """The rows, ascending, cut where protocols change."""
    count = len(rows)
    points = {c: [(float(r["bytes"]), value(r, c)) for r in rows] for c in curves}

    def cost(first: int, last: int) -> float:
        return (
            sum(off_by(points[c][first:last], line(points[c][first:last])) for c in curves)
            + len(curves) * PIECE_PENALTY
        )

    if count < 2 * LEAST_POINTS:
        return [list(rows)]
    best: list[list[tuple[float, int]]] = [[(0.0 if i == 0 else float("inf"), 0) for i in range(count + 1)]]
    costs = {(i, j): cost(i, j) for i in range(count) for j in range(i + LEAST_POINTS, count + 1)}
    for _ in range(most):
        best.append(
            [
                min(((best[-1][i][0] + costs[i, j], i) for i in range(j - LEAST_POINTS + 1)), default=(float("inf"), 0))
                for j in range(count + 1)
            ]
        )
    number = min(range(1, most + 1), key=lambda n: best[n][count][0])
    cuts = [count]
    for n in range(number, 0, -1):
        cuts.append(best[n][cuts[-1]][1])
    cuts.reverse()
    return [list(rows[a:b]) for a, b in zip(cuts, cuts[1:])]


def path(level: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The [[path]] pieces of a level."""
    result = []
    begin = 0
    for part in pieces(rows, MESSAGE_CURVES):
        result.append({"level": level, "from_bytes": begin, **path_piece(part)})
        begin = int(part[-1]["bytes"]) + 1
    return result


def network_path(level: str, rows: Sequence[Row], port_: dict[str, Any]) -> list[dict[str, Any]]:
    """The [[path]] pieces of a level that is a network with a port.

    Short messages show the processor time of a message. Long ones wait for each other and for
    ports, and neither is processor time. A receiver that looks late holds the sender up.
    """
    short, long = ([r for r in rows if (r["bytes"] <= COPIED_BYTES) == is_short] for is_short in (True, False))
    gap = statistics.median(burst_interval(r) for r in short[:LEAST_POINTS])
    result = []
    begin = 0
    for part in pieces(short, ("send", *MESSAGE_CURVES[:-1])):
        result.append({"level": level, "from_bytes": begin, **network_piece(part), "gap": round(gap, 6)})
        begin = int(part[-1]["bytes"]) + 1
    last = result[-1]
    fixed = {
        name: round(last[name] + last[each] * COPIED_BYTES, 6) for name, each in EACH_BYTE.items()
    }  # further bytes are copied while others are on their way
    overheads = fixed["send_overhead"] + fixed["receive_overhead"]
    for part in pieces(long, ("oneway", "roundtrip", "sendrecv")) if long else ():
        latency = statistics.median(passage(r) - overheads - loggp.held_up(port_, r["bytes"]) for r in part)
        result.append(
            {
                **last,
                **fixed,
                **dict.fromkeys(EACH_BYTE.values(), 0.0),
                "from_bytes": begin,
                "latency": round(max(latency, 0.0), 6),
                "byte_gap": 0.0,
                "requests_queue": requests_queue(part),
            }
        )
        begin = int(part[-1]["bytes"]) + 1
    return result


def requests_queue(rows: Sequence[Row]) -> int:
    """Whether ranks that exchange long messages come to send by turns, so that exchanges take twice the time."""
    part = statistics.median((value(r, "sendrecv") - LATE) / (SENDRECVS * value(r, "oneway")) - 1 for r in rows)
    return int(part >= QUEUES_FROM)


EACH_BYTE = {"send_overhead": "send_byte", "receive_overhead": "receive_byte", "handling": "handling_byte"}


def network_piece(rows: Sequence[Row]) -> dict[str, float]:
    """The parameters of a piece through a network.

    In an exchange a rank sends and then receives. Its time beyond MPI_Isend is the receiver's. If a
    message takes less than both together, it arrives before its sender has finished, and the rest
    is handling.
    """
    receive = line(
        [
            (r["bytes"], min(max(value(r, "exchange") - value(r, "send"), LEAST_SHARE * passage(r)), passage(r) / 2))
            for r in rows
        ]
    )
    send = line(
        [(r["bytes"], max(min(value(r, "send"), passage(r) - at(receive, r)), LEAST_SHARE * passage(r))) for r in rows]
    )
    return rounded(send, receive, rest_of(rows, send, receive), handling_of(rows, send, receive))


def rest_of(rows: Sequence[Row], send: Line, receive: Line) -> Line:
    """L and G: what remains of a message's passage."""
    return line([(max(r["bytes"] - 1.0, 0.0), max(passage(r) - at(send, r) - at(receive, r), 1.0)) for r in rows])


def rounded(send: Line, receive: Line, rest: Line, handling: Line) -> dict[str, float]:
    numbers = {
        "latency": rest[0],
        "send_overhead": send[0],
        "receive_overhead": receive[0],
        "byte_gap": rest[1],
        "send_byte": send[1],
        "receive_byte": receive[1],
        "handling": handling[0],
        "handling_byte": handling[1],
    }
    return {name: round(number, 6) for name, number in numbers.items()}


def passage(row: Row) -> float:
    """The time of one message from end to end. Half a round trip counts too: as in trees and rings,
    a rank sends on what has just come."""
    return (value(row, "oneway") * value(row, "roundtrip") / 2) ** 0.5


def burst_interval(row: Row) -> float:
    """The time between messages of a burst."""
    return max((value(row, "burst") - value(row, "oneway")) / (BURST - 1), 1.0)


def path_piece(rows: Sequence[Row]) -> dict[str, float]:
    """The parameters of a piece on a machine.

    o and O are as measured, but a receive cannot take longer than the interval of a burst. L and G
    are what remains of a message's passage. h is the time of an exchange beyond that. g is what
    bursts need beyond G at no bytes. What they need more with every byte is processor time, which
    is counted already.
    """
    send = line([(r["bytes"], min(value(r, "send"), passage(r) / 2)) for r in rows])
    receive = line([(r["bytes"], min(value(r, "late"), burst_interval(r), 0.9 * passage(r))) for r in rows])
    rest = rest_of(rows, send, receive)
    gap = line([(r["bytes"], max(burst_interval(r) - rest[1] * max(r["bytes"] - 1.0, 0.0), 1.0)) for r in rows])[0]
    return {**rounded(send, receive, rest, handling_of(rows, send, receive)), "gap": round(max(gap, 0.0), 6)}


def handling_of(rows: Sequence[Row], send: Line, receive: Line) -> Line:
    """The time of an exchange beyond send and receive. A rank handles both while the other's
    message is on its way."""
    if statistics.median(value(r, "exchange") / passage(r) for r in rows) < 1.02:
        return 0.0, 0.0
    constant, slope = line([(r["bytes"], max(value(r, "exchange") - at(send, r) - at(receive, r), 1.0)) for r in rows])
    return constant / 2, slope / 2


def at(fitted: Line, row: Row) -> float:
    return fitted[0] + fitted[1] * float(row["bytes"])


def combining(row: Row) -> float:
    """The time of an exchange with a combination beyond one without, so that operands are where
    messages leave them. Short times differ by little more than noise, so a sum takes at least as
    long as a copy."""
    return max(value(row, "combine") - value(row, "exchange"), copying(row))


def summing(row: Row) -> float:
    """The time of a sum; at least that of a copy."""
    return max(value(row, "sum") - value(row, "nothing"), copying(row))


def copying(row: Row) -> float:
    """The time of a copy."""
    return max(value(row, "local") - value(row, "nothing"), 1.0)


def port(level: str, rows: Sequence[Row]) -> dict[str, Any]:
    """The [[port]] of a level's domains, from bursts on the path above: time per byte in the long
    run, and bytes that go before that limit is felt."""
    points = [(BURST * float(r["bytes"]), value(r, "burst")) for r in rows]
    byte_gap = statistics.median(
        (b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(points, 2) if a[0] >= BURST * LONG_BYTES
    )
    started = statistics.median(value(r, "oneway") for r in rows[:LEAST_POINTS])
    saved = statistics.median(
        bytes_ - (time - started) / byte_gap for bytes_, time in points if bytes_ > BURST * SHORT_BYTES
    )
    return {"level": level, "gap": 0.0, "byte_gap": round(byte_gap, 6), "burst_bytes": round(max(saved, 0.0))}


def work(rows: Sequence[Row], time: Callable[[Row], float]) -> list[dict[str, Any]]:
    """The [[reduce]] or [[copy]] pieces, from times of combining or copying."""
    points = [{"bytes": r["bytes"], "work": [time(r), 0.0]} for r in rows]
    result = []
    begin = 0
    for part in pieces(points, ("work",), 4):
        fixed, per_byte = line([(r["bytes"], value(r, "work")) for r in part])
        result.append({"from_bytes": begin, "fixed": round(fixed, 3), "per_byte": round(per_byte, 6)})
        begin = int(part[-1]["bytes"]) + 1
    return result
