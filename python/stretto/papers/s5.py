# SPDX-License-Identifier: BSD-3-Clause
"""S5: how much of an Alltoall hides behind the computation after it (table 1), on a cluster of
namespaces."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.bench import overlap
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan, describe
from stretto.core.early import ALWAYS
from stretto.mpi import environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for
from stretto.papers.clusters import temporary
from stretto.papers.entry import PAPER, Axis, Claim, Entry, Judge, Keep, Panel, Row, Rows, Series, Site
from stretto.papers.turns import in_turn

BLOCK_BYTES = 512 << 10
SECONDS_OF_A_REPETITION = 20.0  # both jobs, all regimes
MOST_REPETITIONS = 5
MODES = (ALWAYS, {"STRETTO_OVERLAP": "off"})


@dataclass(frozen=True)
class Regime:
    """A line of the table, in ms: what is hidden, by formula (3), too."""

    name: str
    text: str
    hidden: float
    formula: float


COMM_MS = 268.0
REGIMES = (
    Regime("a", "computes without the data for longer than the call", 204, 208),
    Regime("b", "begins with the data, and takes longer on them than the call", 206, 208),
    Regime("c", "begins with the data, and takes less time on them than the call", 107, 115),
    Regime("d", "computes without the data for a part of the call, on them for longer", 207, 208),
    Regime("e", "computes without the data for a part of the call, on them for less", 204, 208),
)


@dataclass(frozen=True)
class Setting:
    where: str
    order: str
    name: str


# S5's programs touch blocks from 0 to N-1, and its ranks fill node after node.
SETTINGS = (Setting("block", "rank", "blocks, from 0 to N-1"), Setting("cyclic", "own", "in turn, own block first"))


def plan_of(name: str) -> Plan:
    return Plan(name, 1, 4, 2, 200_000_000)


def measure(site: Site, seconds: float, keep: Keep) -> None:
    with temporary(plan_of) as cluster:
        for setting, share in in_turn(SETTINGS, seconds):
            repeat = int(share / SECONDS_OF_A_REPETITION)
            request = overlap.Request(
                *(("alltoall",), BLOCK_BYTES, BLOCK_BYTES, (setting.where,), setting.order, "sleep", overlap.REGIMES),
                min(max(repeat, 1), MOST_REPETITIONS),
            )
            for row in results(cluster, site, request):
                keep(row_of(row, setting))


def results(cluster: Cluster, site: Site, request: overlap.Request) -> Rows:
    library = library_for(site.mpi.abi)
    ours = [environments.rank_environment(library, {**SERVED_AT_ONCE, **mode}) for mode in MODES]
    measured = overlap.measure(request, overlap.runner(cluster, site.mpi), *ours)
    return overlap.document(cluster, site.mpi, request, measured)["results"]


def row_of(result: Row, setting: Setting) -> Row:
    return {
        "setting": setting.name,
        "regime": result["regime"],
        **{key: result[key] for key in ("comm_ms", "init_ms", "overlap_ms", "formula_ms", "bound_ms", "gain_ms")},
        "hidden": result["overlap_ms"] / result["comm_ms"],
        "of_formula": result["overlap_ms"] / result["formula_ms"] if result["formula_ms"] > 0 else None,
    }


def of_regime(regime: str, key: str) -> Judge:
    """Of the setting that is S5's."""
    wanted = (regime, SETTINGS[0].name)
    return lambda rows: next((row[key] for row in rows if (row["regime"], row["setting"]) == wanted), None)


def claims(regime: Regime) -> tuple[Claim, Claim]:
    part, formula = regime.hidden / COMM_MS, regime.hidden / regime.formula
    return (
        Claim(f"{regime.name}: hidden / call", f"{part:.2f}", of_regime(regime.name, "hidden"), round(part, 2), True),
        Claim(f"{regime.name}: hidden / formula", f"{formula:.2f}", of_regime(regime.name, "of_formula")),
    )


def panels(rows: Rows) -> list[Panel]:
    return [
        panel(rows, "Hidden, of the call's time", "hidden", [regime.hidden / COMM_MS for regime in REGIMES]),
        panel(rows, "Hidden, of the formula", "of_formula", [regime.hidden / regime.formula for regime in REGIMES]),
    ]


def panel(rows: Rows, title: str, key: str, theirs: list[float]) -> Panel:
    names = tuple(regime.name for regime in REGIMES)
    ours = [
        Series(
            setting.name,
            [
                (names.index(row["regime"]), row[key])
                for row in rows
                if row["setting"] == setting.name and row[key] is not None
            ],
        )
        for setting in SETTINGS
    ]
    published = Series("S5", list(enumerate(theirs)), PAPER)
    return Panel(title, Axis("regime", names=names), Axis("part"), [each for each in ours if each.points] + [published])


def here(site: Site) -> str:
    return (
        f"{describe(plan_of('here'))}, on {site.cores} cores; {site.mpi.title}; blocks of {BLOCK_BYTES >> 10} KiB; "
        "computing by sleeping. Claims are judged by the placement and order of S5; formula: (1), less the time in "
        "the call"
    )


ENTRIES = (
    Entry(
        "s5-table-1",
        "S5",
        "Table 1",
        "What of an Alltoall's time the computation after it hides, in five regimes: "
        + "; ".join(f"{regime.name} {regime.text}" for regime in REGIMES),
        "64 processes on 8 nodes of 2 Xeon X5650, InfiniBand QDR, one card a node; MVAPICH; blocks of 1 MiB: a call "
        f"takes {COMM_MS:.0f} ms",
        here,
        tuple(claim for regime in REGIMES for claim in claims(regime)),
        150,
        ("mpi", "cluster"),
        lambda site: site.build("overlap"),
        measure,
        panels,
    ),
)
