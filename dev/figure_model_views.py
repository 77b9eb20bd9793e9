# SPDX-License-Identifier: BSD-3-Clause
"""The tables that pages show of the JSON of commands that compute: of models and simulated clusters."""

from __future__ import annotations

from collections.abc import Callable

from figure_texts import Doc, Lines, microseconds, model_time, size, table, unique
from figure_views import view

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
