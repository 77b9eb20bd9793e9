# SPDX-License-Identifier: BSD-3-Clause
"""A job on another number of ranks: what two recordings predict is what a third one says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import recorded
from recorded import NONE, Rank, peer
from stretto.job import recordings, scaling
from stretto.job.scaling import Scaled

Program = Callable[[Rank], None]


def job(folder: Path, ranks: int, program: Program) -> list[Path]:
    folder = folder / f"{program.__name__}{ranks}"
    folder.mkdir()
    made = [Rank(rank, ranks) for rank in range(ranks)]
    for each in made:
        program(each)
    return recorded.write(folder, made)


def scaled(tmp_path: Path, program: Program, ranks: int, of: tuple[int, ...] = (4, 8)) -> Scaled:
    return scaling.scaled([job(tmp_path, count, program)[0] for count in of], ranks)


def laws(made: Scaled, key: str) -> dict[str, str]:
    return {law["call"][4:]: law[key] for law in made.laws["laws"]}


def ring(each: Rank) -> None:
    left, right = (each.rank - 1) % each.ranks - each.rank, (each.rank + 1) % each.ranks - each.rank
    for _ in range(20):
        each.call("MPI_Irecv", 8000 / each.ranks, comm=0, source=peer(left), receive_tag=1, receives=800, made=0)
        each.call("MPI_Isend", 1, comm=0, destination=peer(right), send_tag=1, sends=6400 // each.ranks, made=1)
        each.call("MPI_Waitall", 200, 5, waited=[0, 1])
        each.call("MPI_Allreduce", 10, 10, comm=0, sends=8)


def exchange(each: Rank) -> None:
    """With all others, one after the other; then in pairs, log P times."""
    to = [(each.rank + i + 1) % each.ranks - each.rank for i in range(each.ranks - 1)]
    for i, other in enumerate(to):
        each.call("MPI_Irecv", 1, comm=0, source=peer(other), receive_tag=7, receives=8, made=i)
    for i, other in enumerate(to):
        each.call("MPI_Isend", 1, comm=0, destination=peer(other), send_tag=7, sends=8, made=len(to) + i)
    each.call("MPI_Waitall", 1, waited=list(range(2 * len(to))))
    for k in range(each.ranks.bit_length() - 1):
        partner = peer((each.rank ^ 1 << k) - each.rank)
        words = {"destination": partner, "source": partner, "send_tag": k, "receive_tag": k}
        each.call("MPI_Sendrecv", 50, comm=0, sends=64, receives=64, **words)
    each.call("MPI_Bcast", 5, 5, comm=0, sends=100, root=each.ranks - 1)


def chain(each: Rank) -> None:
    """The first and the last rank have one neighbour, and make fewer calls."""
    for _ in range(5):
        if each.rank > 0:
            each.call("MPI_Recv", 10, comm=0, source=peer(-1), receive_tag=1, receives=8)
        each.call("MPI_Comm_rank", 500, comm=0)
        if each.rank < each.ranks - 1:
            each.call("MPI_Send", 10, comm=0, destination=peer(1), send_tag=1, sends=8)


def grid(each: Rank) -> None:
    """Four neighbours on a grid as MPI_Dims_create makes it, none beyond its borders; and sums along rows."""
    rows, columns = {4: (2, 2), 6: (3, 2), 12: (4, 3), 16: (4, 4), 24: (6, 4)}[each.ranks]
    row, column = divmod(each.rank, columns)
    members = (2, 0, column, columns, 0, row * columns, 1, columns)
    each.define(3, b"".join(map(recorded.zigzag, members)))
    for _ in range(3):
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = 0 <= row + down < rows and 0 <= column + right < columns
            other = peer(down * columns + right) if there else NONE
            words = {"destination": other, "source": other, "send_tag": 3, "receive_tag": 3}
            each.call("MPI_Sendrecv", 100, comm=0, sends=80, receives=80, **words)
        each.call("MPI_Allreduce", 100, comm=2, sends=8)


@pytest.mark.parametrize("program, of, to", [(ring, (4, 8), 16), (exchange, (4, 8), 16), (chain, (4, 8), 12)])
def test_two_recordings_predict_a_third(tmp_path: Path, program: Program, of: tuple[int, ...], to: int) -> None:
    made, real = scaled(tmp_path, program, to, of), job(tmp_path, to, program)
    predicted, said = recordings.replay(made.files), recordings.replay(real)
    assert "failure" not in predicted
    for key in ("calls", "messages", "bytes"):
        assert predicted[key] == said[key], key
    assert predicted["seconds"] == pytest.approx(said["seconds"], rel=0.02)


def test_a_grid_and_its_rows(tmp_path: Path) -> None:
    made, real = scaled(tmp_path, grid, 24, (6, 12)), job(tmp_path, 24, grid)
    predicted, said = recordings.replay(made.files), recordings.replay(real)
    assert "failure" not in predicted and predicted["messages"] == said["messages"]
    assert [call.get("destination") for call in recordings.calls(made.files, 13)] == [
        call.get("destination") for call in recordings.calls(real, 13)
    ]


def test_laws_have_names(tmp_path: Path) -> None:
    made = scaled(tmp_path, ring, 32)
    assert laws(made, "compute") == {
        "Irecv": "1/P",
        "Isend": "constant",
        "Waitall": "constant",
        "Allreduce": "constant",
    }
    assert laws(made, "bytes")["Isend"] == "1/P" and laws(made, "peers")["Irecv"] == "(rank - 1) mod P"
    assert scaled(tmp_path, exchange, 32).laws["loops"] == ["P - 1", "P - 1", "log2(P)"]


def test_a_part_that_does_not_shrink(tmp_path: Path) -> None:
    """Computation of 100 us and 8 ms / P is no power of P: two terms say it."""

    def amdahl(each: Rank) -> None:
        for _ in range(10):
            each.call("MPI_Barrier", 1000 + 8000 / each.ranks, comm=0)

    made = scaled(tmp_path, amdahl, 32, (2, 4, 8))
    assert laws(made, "compute")["Barrier"] == "constant + 1/P"
    assert recordings.replay(made.files)["seconds"] == pytest.approx(12.5e-3, rel=0.02)


def chance(each: Rank) -> None:
    to = {4: (1, 3, 0, 2), 8: (3, 6, 1, 0, 2, 7, 5, 4)}[each.ranks][each.rank]
    each.call("MPI_Send", 1, comm=0, destination=peer(to - each.rank), send_tag=1, sends=8)


def uneven(each: Rank) -> None:
    for _ in range(each.rank + 2):
        each.call("MPI_Barrier", 1, comm=0)
    each.call("MPI_Allreduce", 1, comm=0, sends=8)


def anybody(each: Rank) -> None:
    each.call("MPI_Recv", 1, comm=0, source=recorded.ANY, receive_tag=1, receives=8, got=[0, peer(0), 1])


@pytest.mark.parametrize(
    "program, why",
    [
        (chance, "MPI_Send names ranks that follow no rule"),
        (uneven, "turns that follow no rule"),
        (anybody, "MPI_Recv receives from anybody"),
    ],
)
def test_what_follows_no_law_is_refused(tmp_path: Path, program: Program, why: str, inside) -> None:
    files = [job(tmp_path, ranks, program)[0] for ranks in (4, 8)]
    assert why in inside("model", "job", *files, "-n", "16").stderr


def test_options_that_do_not_fit(tmp_path: Path, inside) -> None:
    a, b = (job(tmp_path, ranks, ring)[0] for ranks in (4, 8))
    assert "say which with -n" in inside("model", "job", a, b).stderr
    assert "two numbers of ranks are needed" in inside("model", "job", a, "-n", "8").stderr
    assert "laws need different numbers" in inside("model", "job", a, a, "-n", "8").stderr
