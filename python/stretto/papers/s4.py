# SPDX-License-Identifier: BSD-3-Clause
"""S4: a Reduce by k chains (figures 7 and 8): in the LogP model, and executed on six nodes."""

from __future__ import annotations

from stretto.cluster.plan import Plan
from stretto.cluster.target import Target
from stretto.model import best_k, exercises, profile, timer
from stretto.native import build
from stretto.papers.clusters import temporary
from stretto.papers.entry import PAPER, Axis, Claim, Entry, Judge, Keep, Panel, Row, Rows, Series, Site, curves
from stretto.papers.turns import in_turn

# Figure 7: a = 2o + L + m gamma = 3, b = o + m gamma = 2, for m = 8 bytes.
A, B = 3.0, 2.0
LOGP, VECTOR_BYTES = "o=0.5,L=0.5,gamma=0.1875", 8
RANKS = (100, 200, 300, 400)
MARKED = {100: 10, 200: 15, 300: 18, 400: 20}  # k of the figure
DRAWN = range(2, 51)

# Figure 8
HOSTS, RANKS_PER_HOST, RATE_BPS = 6, 8, 32_000_000_000
CHAINS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 23)
DOUBLES = (1, 1024, 1_048_576)
MARKED_8 = 7
SECONDS_OF_A_TURN = 20.0  # a run of all numbers of chains with one length
MOST_TURNS = 5


def formula(ranks: int, k: int) -> float:
    """S4, (1)."""
    return ((ranks - 1) / k + 1) * A + (k - 1) * B


# ---- figure 7 ------------------------------------------------------------------------------------


def model(_: Site, __: float, keep: Keep) -> None:
    words = ["--ranks", ",".join(map(str, RANKS)), "--bytes", str(VECTOR_BYTES)]
    for curve in timer.ask_json("chains", profile.logp(LOGP), words)["curves"]:
        keep({"ranks": curve["ranks"], "points": [[p["k"], p["time"]] for p in curve["points"] if p["k"] in DRAWN]})


def best_chains(ranks: int) -> Judge:
    def best(rows: Rows) -> float | None:
        points = next((row["points"] for row in rows if row["ranks"] == ranks), [])
        return min(points, key=lambda point: point[1])[0] if points else None

    return best


def at_marked(rows: Rows) -> float | None:
    """The time with the paper's k / the least: the largest of all numbers of ranks."""
    times = [(row["ranks"], dict(map(tuple, row["points"]))) for row in rows]
    return max(of_k[MARKED[ranks]] / min(of_k.values()) for ranks, of_k in times)


def model_panels(rows: Rows) -> list[Panel]:
    timed = [Series(f"timer, P = {row['ranks']}", list(map(tuple, row["points"]))) for row in rows]
    estimates = [Series(f"S4 (1), P = {p}", [(k, formula(p, k)) for k in DRAWN], PAPER) for p in RANKS]
    return [Panel("Reduce by k chains", Axis("chains k"), Axis("time, of no unit"), timed + estimates)]


def formula_at_marked() -> float:
    return max(formula(p, MARKED[p]) / min(formula(p, k) for k in DRAWN) for p in RANKS)


# ---- figure 8 ------------------------------------------------------------------------------------


def execute(site: Site, seconds: float, keep: Keep) -> None:
    with temporary(lambda name: Plan(name, 1, HOSTS, RANKS_PER_HOST, RATE_BPS)) as cluster:
        target = Target(site.mpi, cluster)
        for doubles, share in in_turn(DOUBLES, seconds):
            turns = min(max(1, int(share / SECONDS_OF_A_TURN)), MOST_TURNS)
            times = best_k.by_cluster(target, cluster.plan.ranks, turns)(8 * doubles, CHAINS)
            for row in rows_of(doubles, times):
                keep(row)


def rows_of(doubles: int, times: best_k.Times) -> Rows:
    """Times in ns by algorithm, as rows; `of_best` is of the best number of chains."""
    chains = {int(name.partition(":")[2]): time for name, time in times.items() if name.startswith("kchain:")}
    least = min(chains.values())
    rows: list[Row] = [
        {"doubles": doubles, "k": k, "time_ns": time, "of_best": time / least} for k, time in sorted(chains.items())
    ]
    others = {name: time for name, time in times.items() if name in (*best_k.OTHERS, "mpi")}
    return rows + [{"doubles": doubles, "k": None, "name": name, "time_ns": time} for name, time in others.items()]


def of_marked(doubles: int) -> Judge:
    return lambda rows: next(
        (row["of_best"] for row in rows if (row["doubles"], row["k"]) == (doubles, MARKED_8)), None
    )


def executed_panels(rows: Rows) -> list[Panel]:
    chains = [row for row in rows if row["k"]]
    return [
        Panel(
            "Reduce by k chains, 48 ranks",
            Axis("chains k"),
            Axis("time, of the best k"),
            curves(chains, lambda row: f"sums of {row['doubles']:,}", "k", "of_best"),
            [("S4's k", 1.0, (MARKED_8, MARKED_8))],
            1.0,
        )
    ]


ENTRIES = (
    Entry(
        "s4-figure-7",
        "S4",
        "Figure 7",
        "Time of a Reduce over the number of chains in the LogP model, 100 to 400 processes, a = 3, b = 2",
        "formula (1): t(k) = ((P - 1)/k + 1)a + (k - 1)b",
        lambda _: f"stretto model chains --logp {LOGP}: the schedules in virtual time, beside the formula",
        (
            *(
                Claim(f"best k, P = {ranks}", f"at least {MARKED[ranks]}", best_chains(ranks), MARKED[ranks], True)
                for ranks in RANKS
            ),
            Claim("time with the k of the paper / the least, at most", f"{formula_at_marked():.3f} by (1)", at_marked),
        ),
        5,
        (),
        lambda _: build.ensure_built("release", ["stretto-model"]),
        model,
        model_panels,
    ),
    Entry(
        "s4-figure-8",
        "S4",
        "Figure 8",
        "Time of a Reduce over the number of chains, k = 2 to 23, sums of 1, 1024 and 1,048,576 doubles",
        "48 processes on 6 nodes of 2 processors, InfiniBand QDR; MVAPICH2 2.2a, means of 10 runs",
        lambda site: (
            f"{HOSTS} hosts (namespaces) of {RANKS_PER_HOST} ranks, links 32 Gbit/s, on {site.cores} cores; "
            f"{site.mpi.title}"
        ),
        tuple(
            Claim(f"k = {MARKED_8}, sums of {doubles:,}: time / the best k's", "near 1", of_marked(doubles))
            for doubles in DOUBLES
        ),
        120,
        ("mpi", "cluster"),
        lambda site: exercises.program(site.mpi),
        execute,
        executed_panels,
    ),
)
