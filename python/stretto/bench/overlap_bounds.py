# SPDX-License-Identifier: BSD-3-Clause
"""How much of a collective can hide behind the computation that follows it.

T is the time until all data are there when nothing is computed. U is what the program computes
before it touches received data, C what it computes on them, piece by piece. Times have one unit,
whichever it is.

The links of hosts, and of switches, produce what the pieces consume. A piece that is needed when R
of the computing on received data is left is due at E - R*C, if all is to end at E. A link that
takes what is due first can keep all these times, if any order can. It has carried the first k
pieces at the time that they take on it. So no order of messages ends before

    E = max(U + C, over links and k: time of the first k pieces + what is computed from piece k on)

and the gain is T + U + C - E. T may be longer than the busiest link needs, its wire time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from stretto.core.arguments import REGULAR

ORDERS = ("own", "rank", "alike", "reverse")
ROOT = 0
OF_BLOCKS = ("alltoall", "allgather", "gather")  # a receiver has a block from every rank
SHARED = ("allgather", "bcast", "gather", "reduce", "allreduce")  # all receivers on a host can take one copy


def formula_1(comm: float, curc: float, crc: float) -> float:
    """S5, (1): data come in the order in which they are touched."""
    return min(comm, curc + crc)


@dataclass(frozen=True)
class Level:
    """What has a link each way: hosts, or the switches above them."""

    of_ranks: Sequence[str]  # the host, or switch, of each rank
    rate: float = 1.0  # of each link, in bits per second


def wire_time_s(op: str, levels: Sequence[Level], block_bytes: int) -> float:
    """What the busiest link needs for what it must carry."""
    links = _timed_links(op, levels, "rank", 1)
    return max((len(link) * block_bytes * 8 * each for link, each in links), default=0.0)


def production_bound(
    op: str,
    levels: Sequence[Level],
    order: str,
    pieces: int,
    comm: float,
    curc: float,
    crc: float,
    wire: float | None = None,
) -> float:
    """The largest gain, whatever order messages go in. `pieces` is the number of pieces of a block,
    `wire` the time that the busiest link needs; None: all of T. Within a host nothing goes over a
    link: no gain."""
    links = _timed_links(op, levels, order, pieces)
    if not links:
        return 0.0
    busiest = max(len(link) * each for link, each in links)
    needed = comm if wire is None else min(wire, comm)
    end = curc + crc
    for link, each in links:
        for carried, left in enumerate(sorted(link, reverse=True), 1):
            end = max(end, needed * carried * each / busiest + crc * left)
    return min(comm, max(0.0, comm + curc + crc - end))


def bound(production: float, comm: float, cpu: float, init: float) -> float:
    """The program does not compute before the call returns, and not while the processor works for
    the call. Data move in that time, so the production counts in full, as in S5, (3)."""
    return max(0.0, min(production, comm - max(cpu, init)))


def _timed_links(op: str, levels: Sequence[Level], order: str, pieces: int) -> list[tuple[list[float], float]]:
    """The links of all levels, each with its time for one bit."""
    return [(link, 1 / level.rate) for level in levels for link in _links(REGULAR.get(op, op), level, order, pieces)]


def _links(op: str, level: Level, order: str, pieces: int) -> list[list[float]]:
    """For each link of a level and direction: of each piece that it must carry, what share of the computing on
    received data is left when the piece is needed. Of several receivers, the first counts."""
    links: dict[tuple[str, str], dict[Hashable, float]] = {}
    hosts = level.of_ranks
    for source, receiver in _messages(op, hosts):
        if hosts[source] == hosts[receiver]:
            continue
        for piece in range(pieces):
            left = _left(op, order, source, receiver, len(hosts), piece, pieces)
            content = (source, piece) if op in SHARED else (source, receiver, piece)
            for link in (("out of", hosts[source]), ("into", hosts[receiver])):
                carried = links.setdefault(link, {})
                carried[content] = max(left, carried.get(content, 0.0))
    return [list(link.values()) for link in links.values()]


def _messages(op: str, hosts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Who sends to whom. Of a reduction: the result, from wherever its last part comes."""
    ranks = range(len(hosts))
    if op in ("alltoall", "allgather"):
        yield from ((source, receiver) for source in ranks for receiver in ranks)
    elif op == "gather":
        yield from ((source, ROOT) for source in ranks)
    elif op in ("scatter", "bcast", "allreduce"):  # the sum, from wherever it is complete
        yield from ((ROOT, receiver) for receiver in ranks)
    elif op == "reduce":
        yield from ((source, ROOT) for source in [r for r in ranks if hosts[r] != hosts[ROOT]][:1])
    else:
        raise ValueError(f"no bound is known for {op}")


def _left(op: str, order: str, source: int, receiver: int, ranks: int, piece: int, pieces: int) -> float:
    """The share of the computing on received data from this piece on, as bench/overlap.cpp goes
    through the blocks."""
    if order == "alike" or op not in OF_BLOCKS:
        return 1 - piece / pieces
    before = {"own": (receiver - source) % ranks, "rank": source, "reverse": ranks - 1 - source}[order]
    return 1 - (before * pieces + piece) / (ranks * pieces)
