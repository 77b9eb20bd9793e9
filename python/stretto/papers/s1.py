# SPDX-License-Identifier: BSD-3-Clause
"""S1: Scatterv, Gatherv and Allgatherv over shared memory, beside the MPI's own (figures 2 to 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stretto.bench import figures, program
from stretto.bench.request import Request
from stretto.core.console import err
from stretto.core.processors import Topology
from stretto.core.time_limit import TimeUp
from stretto.core.units import format_size, sizes_between
from stretto.kit import measuring, plan, situation
from stretto.papers.entry import Axis, Claim, Entry, Keep, Panel, Row, Rows, Site, curves, mean_ratio
from stretto.papers.turns import Cut, Turn, in_turn

LEAST, MOST, FACTOR = 64, 16 << 20, 4  # S1: -msglog 6:24
OVERHEAD = 2.0  # time of a run / that in which its contenders are timed
ROOTS = {1: "root in turn", 0: "root 0"}
THEIRS = (
    "2 Xeon E5-2620 v4 of 8 cores each; Open MPI 4.1.2, its component coll/tuned; IMB, 5000 calls, another buffer at "
    "each call"
)


@dataclass(frozen=True)
class Shape:
    """Ranks, and the processors that they are put on; none: the launcher decides."""

    name: str
    ranks: int
    cpus: tuple[int, ...] = ()
    is_crowded: bool = False


@dataclass(frozen=True)
class Figure:
    number: int
    op: str
    shapes: tuple[tuple[int, int], ...]  # NUMA nodes, ranks on each
    roots: tuple[int, ...]


FIGURES = (
    Figure(2, "scatterv", ((1, 8), (2, 4)), (1, 0)),
    Figure(3, "scatterv", ((2, 8),), (1, 0)),
    Figure(4, "gatherv", ((1, 8), (2, 4)), (1, 0)),
    Figure(5, "gatherv", ((2, 8),), (1, 0)),
    Figure(6, "allgatherv", ((1, 8), (2, 4), (2, 8)), (1,)),
)


def shapes_of(topology: Topology, wanted: Sequence[tuple[int, int]]) -> list[Shape]:
    """What the machine has of these shapes. Where it has too few cores, as many ranks as cores
    stand for 8 ranks, beside the paper's number."""
    return list(dict.fromkeys(shape for nodes, each in wanted for shape in _shapes(topology, nodes, each)))


def _shapes(topology: Topology, nodes: int, each: int) -> Iterator[Shape]:
    cores, ranks = topology.cores(), nodes * each
    of_node = [[c.cpu for c in cores if c.numa == numa] for numa in sorted({c.numa for c in cores})]
    whole = [cpus[:each] for cpus in of_node if len(cpus) >= each]
    if len(whole) >= nodes:
        yield Shape(f"{nodes} x {each} ranks", ranks, tuple(cpu for cpus in whole[:nodes] for cpu in cpus))
    elif len(cores) >= ranks:
        yield Shape(f"{ranks} ranks", ranks)
    else:
        if 1 < len(cores) and ranks <= 8:
            yield Shape(f"{len(cores)} ranks", len(cores))
        yield Shape(f"{ranks} ranks on {len(cores)} cores", ranks, is_crowded=True)


def jobs_of(figure: Figure, topology: Topology) -> list[tuple[Shape, int]]:
    return [(shape, root) for shape in shapes_of(topology, figure.shapes) for root in figure.roots]


def request_of(figure: Figure, ranks: int, root_shift: int, seconds: float) -> Request:
    """What one job measures in this time."""
    most = max(LEAST, min(MOST, plan.most_bytes(figure.op, ranks, situation.available_memory())))
    sizes = sizes_between(LEAST, most, FACTOR)
    budget_s = seconds / OVERHEAD / len(sizes) / 2
    return Request(
        (figure.op,),
        LEAST,
        sizes[-1],
        root_shift=root_shift,
        budget_s=max(budget_s, 0.001),
        factor=FACTOR,
        with_bound=False,
    )


def measure(figure: Figure, site: Site, seconds: float, keep: Keep) -> None:
    is_cut = False
    for (shape, root), share in in_turn(jobs_of(figure, site.topology), seconds):
        request = request_of(figure, shape.ranks, root, share)
        name = f"{shape.name}, {ROOTS[root]}" if len(figure.roots) > 1 else shape.name
        turn = Turn(share)
        with err.status("") as status:

            def row(event: Row) -> None:
                status.update(f"{figure.op}, {name}: {format_size(event['bytes'])}")
                keep(row_of(event, name, shape))
                turn.check()

            try:
                run(site, shape, request, row)
            except Cut:
                is_cut = True
    if is_cut:
        raise TimeUp


def run(site: Site, shape: Shape, request: Request, row: Keep) -> None:
    if not shape.cpus:
        program.run_program(site.mpi, shape.ranks, request, row)
        return
    placed = replace(request, pool_bytes=plan.pool_bytes(site.topology, shape.cpus))
    job = plan.Job(site.mpi.tag, shape.name, shape.cpus, placed)
    program.run_job(site.mpi, measuring.command(job, site.mpi), row)


def row_of(event: Row, name: str, shape: Shape) -> Row:
    return {
        "series": name,
        "ranks": shape.ranks,
        "crowded": shape.is_crowded,
        "bytes": event["bytes"],
        "ours_us": event["ours_us"],
        "mpi_us": event["mpi_us"],
        "ratio": figures.ratio(event["ours_us"], event["mpi_us"]),
        "path": event["path"],
    }


def judged(rows: Rows, bytes_: tuple[int, int], ranks: int | None = None) -> float | None:
    """The geometric mean of the ratios: of ranks that have a core each, if there are any. As many
    ranks as cores stand for 8."""
    of_ranks = [row for row in rows if ranks in (None, row["ranks"])]
    free = [row for row in of_ranks if not row["crowded"]]
    fewer = [row for row in rows if ranks == 8 and row["ranks"] < 8]
    return mean_ratio(free or fewer or of_ranks, bytes=bytes_)


SHORT, ALL = (0, 64 << 10), (0, MOST)
CLAIMS = {
    "scatterv": (
        Claim("time / the MPI's, up to 64 KiB", "0.4", lambda rows: judged(rows, SHORT), 0.4),
        Claim("time / the MPI's, all lengths", "0.7", lambda rows: judged(rows, ALL), 0.7),
    ),
    "gatherv": (
        Claim("time / the MPI's, up to 64 KiB", "0.1", lambda rows: judged(rows, SHORT), 0.1),
        Claim("time / the MPI's, all lengths", "0.7 to 0.8", lambda rows: judged(rows, ALL), 0.8),
    ),
    "allgatherv": (
        Claim("time / the MPI's, 8 ranks", "0.6 to 0.7", lambda rows: judged(rows, ALL, 8), 0.7),
        Claim("time / the MPI's, 16 ranks, to 256 KiB", "0.3", lambda rows: judged(rows, (0, 256 << 10), 16), 0.3),
    ),
}


def panels(figure: Figure, rows: Rows) -> list[Panel]:
    levels = {"scatterv": 0.4, "gatherv": 0.1, "allgatherv": 0.3}
    most = 256 << 10 if figure.op == "allgatherv" else 64 << 10
    return [
        Panel(
            figure.op.capitalize(),
            Axis("bytes of a block", "log2", "bytes"),
            Axis("time / the MPI's own"),
            curves(rows, lambda row: row["series"], "bytes", "ratio"),
            [("S1", levels[figure.op], (LEAST, most))],
            1.0,
        )
    ]


def here(figure: Figure, site: Site) -> str:
    shapes = shapes_of(site.topology, figure.shapes)
    text = f"{'; '.join(shape.name for shape in shapes)}; {site.mpi.title}; the method of stretto bench, imb"
    crowded = [shape.is_crowded for shape in shapes]
    return text + (
        ". With more ranks than cores, times are made of scheduling"
        + ("; claims are judged by the others" if not all(crowded) else "")
        if any(crowded)
        else ""
    )


def entry(figure: Figure) -> Entry:
    places = " and ".join(f"{nodes} x {each}" for nodes, each in figure.shapes)
    roots = ", with one root and another at each call" if len(figure.roots) > 1 else ""
    return Entry(
        f"s1-figure-{figure.number}",
        "S1",
        f"Figure {figure.number}",
        f"{figure.op.capitalize()}: time / coll/tuned's over the length, 64 B to 16 MiB{roots}",
        f"{places} ranks (NUMA nodes x ranks on each) on {THEIRS}",
        lambda site: here(figure, site),
        CLAIMS[figure.op],
        45 if len(figure.shapes) > 1 else 30,
        ("mpi",),
        lambda site: site.build("collectives"),
        lambda site, seconds, keep: measure(figure, site, seconds, keep),
        lambda rows: panels(figure, rows),
    )


ENTRIES = tuple(entry(figure) for figure in FIGURES)
