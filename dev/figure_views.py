# SPDX-License-Identifier: BSD-3-Clause
"""What pages show of the JSON of each command: tables and plots, for figures.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Doc = dict[str, Any]
Lines = list[str]
VIEWS: dict[tuple[str, str], Callable[[Doc], Lines]] = {}
PLOTS: dict[str, Callable[[Doc, Any], None]] = {}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
MARKERS = "osD^vP*X"


def view(schema: str) -> Callable[[Callable[[Doc], Lines]], Callable[[Doc], Lines]]:
    def add(function: Callable[[Doc], Lines]) -> Callable[[Doc], Lines]:
        VIEWS[schema, function.__name__.split("_")[-1]] = function
        return function

    return add


def plot(schema: str) -> Callable[[Callable[[Doc, Any], None]], Callable[[Doc, Any], None]]:
    def add(function: Callable[[Doc, Any], None]) -> Callable[[Doc, Any], None]:
        PLOTS[schema] = function
        return function

    return add


# ---- texts ---------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Lines:
    names = list(head)
    return [row(names), "|---" * len(names) + "|", *(row(cells) for cells in rows)]


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def size(number: int) -> str:
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if number >= 1 << shift and number % (1 << shift) == 0:
            return f"{number >> shift} {unit}"
    return f"{number} B"


def microseconds(time: float) -> str:
    return f"{time:.3g} us" if time < 1e4 else f"{time / 1e3:.3g} ms"


def model_time(time: float, doc: Doc) -> str:
    """Nanoseconds, or a plain number where the profile was given in a unit of the reader's own (--logp)."""
    if not doc["profile"]["file"]:
        return f"{time:.6g}"
    return f"{time:.3g} ns" if time < 1e3 else microseconds(time / 1e3)


def mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def origin(doc: Doc) -> Lines:
    """Whence the data are: the last lines of each table."""
    taken = doc["taken"]
    machine = doc.get("machine", "none: computed")
    if isinstance(machine, dict):
        machine = f"{machine['name']}, modelled"
    return [
        "",
        *table(
            ("commit", "date", "machine", "command"), [(taken["commit"], taken["date"], machine, f"`{doc['command']}`")]
        ),
    ]


# ---- stretto bench -------------------------------------------------------------------------------


def ranks_of(doc: Doc) -> list[int]:
    return doc["np"] if isinstance(doc["np"], list) else [doc["np"]]


def place(result: Doc) -> str:
    ranks = f", {result['np']} ranks" if "np" in result else ""
    return (size(result["bytes"]) + ranks) if result["bytes"] else ranks.removeprefix(", ")


@view("stretto.bench")
def bench_means(doc: Doc) -> Lines:
    """Each operation's geometric means and worst sizes."""
    several = ranks_of(doc) if len(ranks_of(doc)) > 1 else []

    def cells(name: str, results: list[Doc]) -> list[str]:
        worst = max(results, key=lambda r: r["ratio"])
        small = [r["ratio"] for r in results if r["bytes"] <= 64 << 10]
        over = max(results, key=lambda r: r["bound_us"] and r["ours_us"] / r["bound_us"])
        return [
            name,
            f"{mean(r['ratio'] for r in results):.2f}",
            f"{mean(small):.2f}" if small else "",
            *(f"{mean(r['ratio'] for r in results if r['np'] == ranks):.2f}" for ranks in several),
            f"{worst['ratio']:.2f} ({place(worst)})".replace(" ()", ""),
            f"{over['ours_us'] / over['bound_us']:.2f} ({place(over)})".replace(" ()", ""),
        ]

    ops = unique(r["op"] for r in doc["results"])
    head = ("", f"{doc['mpi_title']}", "up to 64 KiB", *(f"{n} ranks" for n in several), "worst", "/ bound, worst")
    rows = [cells(op, [r for r in doc["results"] if r["op"] == op]) for op in ops]
    return table(head, [*rows, cells("**all**", doc["results"])])


@view("stretto.bench")
def bench_slower(doc: Doc) -> Lines:
    """All sizes at which ours is not faster."""
    slower = [r for r in doc["results"] if r["ratio"] >= 0.995]
    rows = [
        (op, ", ".join(f"{place(r)} {r['ratio']:.2f}".strip() for r in slower if r["op"] == op))
        for op in unique(r["op"] for r in slower)
    ]
    return table(("operation", "sizes, time / the MPI's own"), rows or [("none", "")])


@view("stretto.bench")
def bench_latency(doc: Doc) -> Lines:
    found = doc["latency"]
    rows = [("a flag", f"{found['flag_ns']:.0f} ns", "", "")]
    for chain in found["chains"]:
        rows.append(
            (
                f"8-byte {chain['op']}, / flag",
                f"{chain['ours_ns']:.0f} ns",
                f"{chain['mpi_ns']:.0f} ns",
                f"{chain['per_flag']:.2f}",
            )
        )
    for call in found["long"]:
        name = f"{size(call['bytes'])} {call['op']}, / the same work alone"
        rows.append((name, microseconds(call["ours_us"]), microseconds(call["mpi_us"]), f"{call['per_plain']:.2f}"))
    return table(("", "ours", doc["mpi_title"], "ratio"), rows)


@plot("stretto.bench")
def bench_plot(doc: Doc, axis: Any) -> None:
    draw_ratios(axis, doc["results"], lambda r: r["op"] + (f", {r['np']} ranks" if "np" in r else ""), doc["mpi_title"])


def draw_ratios(axis: Any, results: list[Doc], name: Callable[[Doc], str], peer: str) -> None:
    for i, curve in enumerate(unique(name(r) for r in results)):
        points = sorted((r["bytes"], r["ratio"]) for r in results if name(r) == curve and r["bytes"])
        style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i // len(COLOURS) + i) % len(MARKERS)]}
        axis.plot(*zip(*points), label=curve, markersize=4, linewidth=1.3, **style) if points else None
    axis.axhline(1, color="#777777", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("bytes")
    axis.set_ylabel(f"time / {peer}'s (below 1: faster)")


# ---- stretto cluster bench -----------------------------------------------------------------------


def cluster_calls(doc: Doc) -> list[tuple[str, str]]:
    return unique((r["op"], r["map"]) for r in doc["results"])


def cluster_head(doc: Doc) -> list[str]:
    names = {"slot": "blocks", "node": "in turn"}
    return ["", *(f"{op}, {names.get(where, where)}" for op, where in cluster_calls(doc))]


def of_call(doc: Doc, call: tuple[str, str]) -> list[Doc]:
    return [r for r in doc["results"] if (r["op"], r["map"]) == call]


@view("stretto.cluster.bench")
def cluster_sizes(doc: Doc) -> Lines:
    """Our time at each size and its ratio to the best peer's."""
    calls = cluster_calls(doc)
    rows = [["**all sizes**", *(f"**{mean(r['ratio'] for r in of_call(doc, call)):.2f}**" for call in calls)]]
    rows += [["worst", *(f"{max(r['ratio'] for r in of_call(doc, call)):.2f}" for call in calls)]]
    for length in sorted({r["bytes"] for r in doc["results"]}):
        found = [next((r for r in of_call(doc, call) if r["bytes"] == length), None) for call in calls]
        rows.append([size(length), *(f"{microseconds(r['ours_us'])}, {r['ratio']:.2f}" if r else "" for r in found)])
    return table(cluster_head(doc), rows)


@plot("stretto.cluster.bench")
def cluster_plot(doc: Doc, axis: Any) -> None:
    draw_ratios(axis, doc["results"], lambda r: f"{r['op']}, map {r['map']}", f"the best of {doc['mpi_title']}")


# ---- stretto kv bench ----------------------------------------------------------------------------


@view("stretto.kv.bench")
def kv_ratios(doc: Doc) -> Lines:
    """Against 2n-mutex's, by mode and number of clients: locks a second, and the writer's time to acquire."""
    schemes = unique(r["scheme"] for r in doc["results"])
    rows = []
    for name, key in (("locks a second", "locks_ratio"), ("time to acquire for writing", "write_acquire_ratio")):
        for mode, clients in unique((r["mode"], r["clients"]) for r in doc["results"] if r[key]):
            found = {r["scheme"]: r[key] for r in doc["results"] if (r["mode"], r["clients"]) == (mode, clients)}
            rows.append(
                [f"{mode}, {name}, {clients} clients", *(f"{found[s]:.3g}" if found.get(s) else "" for s in schemes)]
            )
    return table(["", *(f"`{scheme}`" for scheme in schemes)], rows)


# ---- stretto model chains ------------------------------------------------------------------------


@view("stretto.model.chains")
def chains_best(doc: Doc) -> Lines:
    """The best number of chains beside that of the practical rule."""
    rows = []
    for curve in doc["curves"]:
        times = {p["k"]: p["time"] for p in curve["points"]}
        best, practical = min(times, key=lambda k: times[k]), curve["practical_k"]
        of_best = f"{times[practical] / times[best]:.2f}"
        rows.append(
            [
                f"{curve['ranks']}",
                f"{curve['bytes']:,}",
                f"{best}",
                model_time(times[best], doc),
                f"{practical}",
                model_time(times[practical], doc),
                of_best,
            ]
        )
    return table(("ranks", "bytes", "best k", "time", "practical rule's k", "time", "of the best"), rows)


@plot("stretto.model.chains")
def chains_plot(doc: Doc, axis: Any) -> None:
    """One length: times, beside the estimate. Several: times of the least."""
    one = len({curve["bytes"] for curve in doc["curves"]}) == 1
    for i, curve in enumerate(doc["curves"]):
        points = [p for p in curve["points"] if 2 <= p["k"] <= curve["ranks"] // 2 - 1]
        least = 1 if one else min(p["time"] for p in points)
        ks, colour = [p["k"] for p in points], COLOURS[i]
        name = f"P = {curve['ranks']}" if one else f"{curve['bytes']:,} bytes"
        axis.plot(
            ks,
            [p["time"] / least for p in points],
            ".",
            markersize=4,
            linestyle="none" if one else "-",
            color=colour,
            label=name,
        )
        if one:
            axis.plot(ks, [p["estimate"] for p in points], linewidth=1.2, color=colour)
    axis.set_xlabel("chains k")
    axis.set_ylabel("time (dots: timer, lines: estimate)" if one else "time, of the least")
    axis.set_ylim(0, 2.2 * max(c["estimate_least"] for c in doc["curves"]) if one else 3.2)
    axis.set_xlim(0, 3 * max(c["practical_k"] for c in doc["curves"]) + 1)


# ---- stretto model node --------------------------------------------------------------------------


@view("stretto.model.node")
def node_calls(doc: Doc) -> Lines:
    """Lines that a call moves, the most readers of one, and the time, by number of ranks. Where the
    data are of several states of the library, each has a row."""
    ranks = unique(r["ranks"] for r in doc["results"])
    rows = []
    for call in unique((r["op"], r["bytes"], r.get("state", "")) for r in doc["results"]):
        found = {r["ranks"]: r for r in doc["results"] if (r["op"], r["bytes"], r.get("state", "")) == call}
        cells = [
            f"{r['line_transfers']:,.0f}, {r['most_readers']}, {microseconds(r['time_us'])}" if r else ""
            for r in (found.get(n) for n in ranks)
        ]
        ways = ", ".join(unique(r["way"].removeprefix("shm:") for r in found.values()))
        name = f"{call[0]} {size(call[1]) if call[1] else ''}".strip()
        rows.append([name, f"{call[2]}: {ways}".removeprefix(": "), *cells])
    return table(("call", "ways", *(f"{n} ranks" for n in ranks)), rows)


# ---- stretto overlap bench -----------------------------------------------------------------------


@view("stretto.overlap.bench")
def overlap_hidden(doc: Doc) -> Lines:
    """What each regime hides, beside formula (1) less the call, and beside the bound."""
    several = len(unique(r["op"] for r in doc["results"])) > 1 or len(unique(r["map"] for r in doc["results"])) > 1
    rows = [
        [
            *([f"{r['op']}, {r['map']}"] if several else []),
            r["regime"],
            *(f"{r[key]:.1f}" for key in ("comm_ms", "comp_ms", "init_ms", "overlap_ms")),
            f"{r['overlap_ms'] / r['formula_ms']:.2f}",
            f"{r['overlap_ms'] / r['bound_ms']:.2f}",
            f"{r['gain_ms']:.1f}",
        ]
        for r in doc["results"]
    ]
    head = ("regime", "call", "computing", "in the call", "hidden", "of formula", "of bound", "gained")
    return table(("", *head) if several else head, rows)


# ---- stretto kind --------------------------------------------------------------------------------


@view("stretto.kind")
def kind_steps(doc: Doc) -> Lines:
    """The time of a step of each pattern, and ratios to the MPI's own."""
    rows = [
        [
            str(r["ranks"]),
            r["pattern"],
            size(r["bytes"]),
            microseconds(r["mpi_us"]),
            microseconds(r["auto_us"]),
            f"{r['auto_ratio']:.3f}",
            f"{r['off_ratio']:.3f}",
        ]
        for r in doc["results"]
    ]
    return table(("ranks", "pattern", "bytes", "the MPI", "Stretto", "ratio", "ratio, `STRETTO_KIND=off`"), rows)


# ---- stretto overlap pages -----------------------------------------------------------------------


@view("stretto.overlap.pages")
def pages_loop(doc: Doc) -> Lines:
    """A loop's time before and after calls, beside that over small pages."""
    rows = [
        [
            {"this": "yes", "other": "no"}[r["library"]],
            r["touched"],
            *(f"{r[key]:.0f}" for key in ("before_us", "after_us")),
            f"{r['after_us'] / r['before_us']:.2f}",
            f"{r['small_us']:.0f}",
            f"{r['huge_after']:.0%}",
        ]
        for r in doc["results"]
    ]
    return table(("kept", "touched", "before", "after", "after / before", "small pages", "huge after"), rows)


# ---- stretto model predict -----------------------------------------------------------------------


@view("stretto.model.predict")
def predict_times(doc: Doc) -> Lines:
    """One row for each call, one column for each algorithm; the least time is bold."""
    names = unique(p["algorithm"] for p in doc["predictions"])
    rows = []
    for call in unique((p["ranks"], p["bytes"]) for p in doc["predictions"]):
        times = [p["time"] for p in doc["predictions"] if (p["ranks"], p["bytes"]) == call]
        cells = [model_time(time, doc) for time in times]
        rows.append(
            (str(call[0]), size(call[1]), *(f"**{c}**" if t == min(times) else c for c, t in zip(cells, times)))
        )
    return table(("ranks", "bytes", *names), rows)


def predictions_by_level(doc: Doc, key: str, title: str, cell: Callable[[Doc, Doc], str]) -> Lines:
    """One row for each prediction, one column for each level of which it says something under `key`."""
    rows = [
        (
            str(p["ranks"]),
            size(p["bytes"]),
            p["algorithm"],
            model_time(p["time"], doc),
            *(cell(said, p) for said in p[key]),
        )
        for p in doc["predictions"]
    ]
    levels = [said["level"] for said in doc["predictions"][0][key]]
    return table(("ranks", "bytes", "algorithm", "time", *(f"{title} {level}" for level in levels)), rows)


@view("stretto.model.predict")
def predict_crossings(doc: Doc) -> Lines:
    """What leaves the domains of each level."""
    return predictions_by_level(
        doc,
        "crossed",
        "leave a",
        lambda crossed, p: f"{crossed['messages']}, {crossed['bytes'] / p['bytes']:.1f} vectors",
    )


@view("stretto.model.predict")
def predict_posted(doc: Doc) -> Lines:
    """How much is on its way to one rank or domain at a time."""
    return predictions_by_level(
        doc, "posted", "at once to a", lambda some, p: f"{some['messages']} of {size(p['bytes'])}"
    )


# ---- stretto cluster simulate --------------------------------------------------------------------


@view("stretto.cluster.simulate")
def simulate_ratios(doc: Doc) -> Lines:
    """The time of what was chosen, and divided by those of the other MPIs' choices."""

    def ratio(result: Doc, selector: str) -> str:
        theirs = result[f"{selector}_us"]
        return f"{result['ours_us'] / theirs:.2f}" if theirs else "–"

    rows = [
        (r["op"], size(r["bytes"]), f"{r['ours_us']:.0f} us", ratio(r, "ompi"), ratio(r, "mpich"))
        for r in doc["results"]
    ]
    return table(("", "bytes", "ours", "/ Open MPI's", "/ MPICH's"), rows)


# ---- stretto bench --suite paper -----------------------------------------------------------------


@view("stretto.papers")
def papers_claims(doc: Doc) -> Lines:
    """Each claim of each figure or table, beside what was measured."""
    rows = []
    for entry in doc["entries"]:
        name = f"{entry['paper']}, {entry['title'].lower()}"
        for claim in entry["claims"]:
            here = "" if claim["here"] is None else f"{claim['here']:.3g}"
            rows.append((name, claim["what"], claim["paper"], here or entry["status"]))
            name = ""
    return table(("", "claim", "paper", "here"), rows)


@view("stretto.papers")
def papers_setups(doc: Doc) -> Lines:
    """What each figure or table shows, and on what, in the paper and here."""
    rows = [
        (f"{e['paper']}, {e['title'].lower()}", e["shows"], e["theirs"], e["here"] or e["reason"])
        for e in doc["entries"]
    ]
    return table(("", "shows", "in the paper", "here"), rows)
