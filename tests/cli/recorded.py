# SPDX-License-Identifier: BSD-3-Clause
"""Writes recordings of jobs that never ran, by docs/dev/recording-format.md alone."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHUNK = 16 << 10
ROLES = {
    name: number
    for number, name in enumerate(
        "function place thread comm destination source send_tag receive_tag sends receives root sends_each "
        "receives_each made waited ended flag got made_comm window target file in_place commutes code started "
        "partitions element named group".split()
    )
}
STREAMS = ("none", "definitions", "sequence", "gaps", "durations", "processor", "totals")
US = 1000  # ticks: the counter of these recordings ticks each nanosecond


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def peer(relative: int) -> int:
    return relative * 4


ANY, NONE = 1, 2


class Rank:
    """The recording of a rank, call by call."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.streams = {name: bytearray() for name in STREAMS}
        self.functions: dict[str, int] = {}
        self.terms: dict[bytes, int] = {}
        self.passed = 0
        self.define(3, b"".join(map(zigzag, (0, 0, rank, ranks, 0, 0, 1, ranks))))

    def define(self, kind: int, what: bytes) -> None:
        self.streams["definitions"] += varint(kind) + varint(len(what)) + what

    def call(self, name: str, gap_us: float, duration_us: float = 1, **words: int | Sequence[int]) -> None:
        """One call of a function, behind computation of so many microseconds."""
        if name not in self.functions:
            self.functions[name] = len(self.functions)
            self.define(1, varint(self.functions[name]) + name.encode())
        said: dict[str, Any] = {"function": self.functions[name], **words}
        text = b""
        for role, values in said.items():
            listed = [values] if isinstance(values, int) else list(values)
            text += b"".join(map(zigzag, (ROLES[role], len(listed), *listed)))
        if text not in self.terms:
            self.terms[text] = len(self.terms)
            self.define(0, text)
        self.streams["sequence"].append(self.terms[text])
        for stream, time in (("gaps", gap_us), ("durations", duration_us)):
            code = round(math.log2(time * US) * 64) + 1 if time else 0
            self.streams[stream] += bytes([128 | code >> 8, code & 255])
            self.passed += int(time * US)

    def write(self, path: Path, finished: bool = True) -> Path:
        texts = (b"host", b"an MPI", b"./app", b"0")
        head = b"STRETREC" + struct.pack("<IIiiIIQQQQdQ", 2, CHUNK, self.rank, self.ranks, finished, 0, 0, 10**9, 0,
                                         10**9, 0.01, 0)  # fmt: skip
        out = bytearray((head + b"".join(text.ljust(256, b"\0") for text in texts)).ljust(CHUNK, b"\0"))
        for number, name in enumerate(STREAMS):
            whole = bytes(self.streams[name])
            for at in range(0, len(whole), CHUNK - 8):
                part = whole[at : at + CHUNK - 8]
                out += (struct.pack("<II", number, len(part)) + part).ljust(CHUNK, b"\0")
        path.write_bytes(out)
        return path


def write(folder: Path, ranks: Sequence[Rank], finished: bool = True) -> list[Path]:
    """The files of a job."""
    return [each.write(folder / f"job.{each.rank}", finished) for each in ranks]


def small_job(folder: Path) -> list[Path]:
    """Messages, a persistent request, a receive from anybody, collectives; each of 3 ranks takes 1 ms."""
    ranks = [Rank(rank, 3) for rank in range(3)]
    for each in ranks:
        left, right = (each.rank + 2) % 3 - each.rank, (each.rank + 1) % 3 - each.rank
        each.call("MPI_Irecv", 100, comm=0, source=ANY, receive_tag=5, receives=800, made=0)
        each.call("MPI_Send_init", 100, comm=0, destination=peer(right), send_tag=5, sends=800, made=1)
        each.call("MPI_Start", 100, started=1)
        each.call("MPI_Waitall", 200, waited=[0, 1], got=[0, peer(left), 5])
        each.call("MPI_Scan", 300, comm=0, sends=64)
        each.call("MPI_Allreduce", 200, comm=0, sends=8)
    return write(folder, ranks)
