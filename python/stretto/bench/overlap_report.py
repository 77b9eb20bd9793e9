# SPDX-License-Identifier: BSD-3-Clause
"""What statistics say of calls that returned before their data were there.

The library counts by site: an operation, a buffer and a length, on each rank. Here a site is an
operation and a length. Lengths that ranks do not share, as of Alltoallv, make one site. Ranks that
only send, as the root of a Bcast, make another: their data leave, and none come.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from stretto.bench import overlap_timeline
from stretto.bench.program import Row
from stretto.core.console import note, out
from stretto.core.plots import COLOURS, save
from stretto.core.reports import SCHEMAS
from stretto.core.units import format_size, format_time
from stretto.core import early, source_lines

COUNTS = ("calls", "early", "in_call_ns", "late_ns", "waited_ns", "waits", "first_ns")
TIMES = ("in_call", "late", "waited", "hidden")
MOST_PLACES = 3
NOTHING, ALL = 0.05, 0.95  # parts of the time: less is nothing, more is all


class Unusable(ValueError):
    """Statistics that no report can be made of. The text says why."""


# ---- reading -------------------------------------------------------------------------------------


def read(path: Path) -> Row:
    """Statistics of a job (STRETTO_STATS=json:FILE). Raises Unusable."""
    try:
        stats = json.loads(path.read_text())
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise Unusable(f"{path}: not JSON, or more than one document") from None
    schema = f"stretto.stats/{SCHEMAS['stats']}"
    if not isinstance(stats, dict) or stats.get("schema") != schema:
        raise Unusable(f"{path}: not statistics of Stretto ({schema}), which STRETTO_STATS=json:FILE writes")
    return stats


def why_nothing(stats: Row) -> str:
    """Why no call went the way of calls that may return early."""
    communicators = [c for rank in stats["per_rank"] for c in (*rank["communicators"], *rank["freed"])]
    made = {name for c in communicators for name in c["collectives"]}
    if not made & early.OPS:
        return f"the program made no calls of {', '.join(sorted(early.OPS))}"
    declined = sorted({c["declined"] for c in communicators if c.get("declined")})
    reasons = [f"Stretto does not serve a communicator: {reason}" for reason in declined]
    return "no call might return early. Possible reasons:\n" + "\n".join(
        f"- {reason}"
        for reason in (
            *reasons,
            "All ranks of a communicator are on one node. --name CLUSTER runs the program on several hosts.",
            "STRETTO_OVERLAP is off. --set overlap=on changes that.",
            "All calls are too short. --set overlap=BYTES says from how many bytes on.",
            "The MPI moves long messages faster than connections of Stretto's own. Giving BYTES uses these anyway.",
            "A member cannot guard memory or connect. STRETTO_EXPLAIN=1 says so.",
        )
    )


def forgotten(stats: Row) -> int:
    """Calls that returned early at sites that are not listed. A rank keeps 64 sites."""
    missing = 0
    for rank in stats["per_rank"]:
        collectives = [c["collectives"].values() for c in (*rank["communicators"], *rank["freed"])]
        deferred = sum(each["calls"].get("deferred", 0) for of_one in collectives for each in of_one)
        missing += max(deferred - sum(site["early"] for site in rank.get("overlap", ())), 0)
    return missing


# ---- figures -------------------------------------------------------------------------------------


def by_site(stats: Row) -> dict[tuple[str, str], dict[int, Row]]:
    """By operation and length: the sums of each rank."""
    sums: dict[str, dict[int, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))  # by op, rank, bytes
    for rank in stats["per_rank"]:
        for site in rank.get("overlap", ()):
            of_rank = sums[site["op"]][rank["rank"]]
            of_rank[site["bytes"]] = _sum([site, *filter(None, [of_rank.get(site["bytes"])])])
    sites: dict[tuple[str, str], dict[int, Row]] = {}
    for op, ranks in sums.items():
        receiving = [lengths for of_rank in ranks.values() if (lengths := of_rank.keys() - {0})]
        shared = set.intersection(*map(set, receiving)) if receiving else set()
        others = sorted(set().union(*receiving) - shared)
        for name, lengths in [
            *((format_size(length), {length}) for length in sorted(shared)),
            ("-".join(dict.fromkeys(map(format_size, (others[0], others[-1])))) if others else "", set(others)),
            ("only sends", {0}),
        ]:
            found = {rank: [s for n, s in of_rank.items() if n in lengths] for rank, of_rank in ranks.items()}
            if any(found.values()):
                sites[op, name] = {rank: _sum(rows) for rank, rows in found.items() if rows}
    return sites


def _places(row: Row) -> list[str]:
    """Where the calls of a row come from: one text of a rank's site, many of a sum."""
    at = row.get("at") or []
    return [at] if isinstance(at, str) else at


def _sum(rows: list[Row]) -> Row:
    sums = {name: sum(row.get(name, 0) for row in rows) for name in COUNTS}
    sums["at"] = sorted({place for row in rows for place in _places(row)})
    return {**sums, "timeline": overlap_timeline.merged([row.get("timeline") for row in rows])}


def of_one_call(row: Row) -> Row:
    """Milliseconds of one call on one rank. All but `in_call` are of calls that returned early."""
    late, waited = (row[name] / max(row["early"], 1) / 1e6 for name in ("late_ns", "waited_ns"))
    waited = min(waited, late)
    first = row["first_ns"] / max(row["waits"], 1) / 1e6
    in_call = row["in_call_ns"] / max(row["calls"], 1) / 1e6
    return {"in_call": in_call, "late": late, "waited": waited, "hidden": late - waited, "first": first}


def results(stats: Row) -> list[Row]:
    """A row for each site: counts, and times of one call in ms, their median and maximum over its
    ranks. Raises Unusable if there is none."""
    rows = []
    resolver = source_lines.Resolver()
    for (op, length), ranks in by_site(stats).items():
        times = {rank: of_one_call(row) for rank, row in ranks.items()}
        row: Row = {"op": op, "bytes": length, "ranks": len(ranks)}
        for name in ("calls", "early", "waits"):
            counts = [each[name] for each in ranks.values()]
            row |= {name: max(counts), f"{name}_median": statistics.median(counts), f"{name}_of_all": sum(counts)}
        for name in TIMES:
            values = [each[name] for each in times.values()]
            row |= {f"{name}_ms": statistics.median(values), f"{name}_ms_maximum": max(values)}
        waiting = [times[rank]["first"] for rank, each in ranks.items() if each["waits"]]
        row["first_ms"] = statistics.median(waiting) if waiting else None
        row["at"] = sorted({resolver.text(place) for each in ranks.values() for place in each["at"]})
        all_ranks = overlap_timeline.merged([each["timeline"] for each in ranks.values()])
        row["timeline"] = overlap_timeline.shares(all_ranks, len(ranks))
        rows.append({**row, "meaning": meaning(row)})
    if not rows:
        raise Unusable(why_nothing(stats))
    return sorted(rows, key=lambda row: -row["calls"] * (row["in_call_ms_maximum"] + row["late_ms_maximum"]))


def meaning(row: Row) -> str:
    """One sentence about a site, by its medians."""
    late, hidden = row["late_ms"], row["hidden_ms"]
    if row["early_of_all"] == 0:
        return "no call returned early: STRETTO_EXPLAIN=1 says why"
    if row["bytes"] == "only sends":
        return "nothing comes to these ranks, and what they send leaves while they compute"
    if late == 0:
        return "all data were there when the calls returned: nothing is left to hide"
    if hidden < NOTHING * late:
        said = f"the program touches the data at once, and next to nothing of {ms(late)} is hidden"
    elif hidden > ALL * late:
        said = f"hides all {ms(late)}"
    else:
        said = f"hides {ms(hidden)} of {ms(late)}"
    if row["early_of_all"] < row["calls_of_all"]:
        return f"{said}; {row['early_of_all']} of {row['calls_of_all']} calls returned early"
    if row["in_call_ms"] > late:
        return f"{said}; but the call takes {ms(row['in_call_ms'])}, because it waits until its sources are in it"
    return said


def ms(milliseconds: float) -> str:
    return format_time(milliseconds * 1e6)


# ---- showing -------------------------------------------------------------------------------------


def title(row: Row) -> str:
    return f"{row['op']}, {row['bytes']}"


def show(rows: list[Row], of: str, missing: int) -> None:
    """Each time is a median over ranks / a maximum. `missing`: early calls that are in no row."""
    table = Table(title=f"{of}; times of one call: median / maximum of the ranks", title_justify="left")
    for name in ("operation", "bytes"):
        table.add_column(name)
    for name in ("ranks", "calls", "early", "in the call", "until all data", "waited", "hidden", "waits", "first"):
        table.add_column(name, justify="right")
    for row in rows:
        times = [f"{ms(row[f'{name}_ms'])} / {ms(row[f'{name}_ms_maximum'])}" for name in TIMES]
        counts = [str(row[name]) for name in ("ranks", "calls", "early")]
        first = ms(row["first_ms"]) if row["first_ms"] is not None else "-"
        table.add_row(row["op"], row["bytes"], *counts, *times, str(row["waits"]), first)
    out.print(table)
    for line in overlap_timeline.lines(rows, [title(row) for row in rows], out.width):
        out.print(line)
    for row in rows:
        called = f"; called at {', '.join(row['at'][:MOST_PLACES])}" if row["at"] else ""
        out.print(f"{title(row)}: {row['meaning']}{called}", markup=False)
    if any(row["early_median"] != row["early"] for row in rows):
        note("calls and early: those of the rank with the most")
    if missing:
        note(f"{missing} more calls returned early, at sites that made room for others: a rank keeps 64")


def bars(rows: list[Row]) -> Iterator[tuple[str, list[float]]]:
    for name, label in overlap_timeline.SHOWN.items():
        yield label, [row[f"{name}_ms"] for row in rows]


def plot(rows: list[Row], of: str, path: Path) -> None:
    """A bar for each site: what one call costs, and what it hides. Below, the same over the run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (axis, below) = plt.subplots(2, figsize=(8, 2.9 + 1.0 * len(rows)))
    begins = [0.0] * len(rows)
    places = range(len(rows))
    for (label, widths), colour in zip(bars(rows), (COLOURS[0], COLOURS[2], COLOURS[4])):
        axis.barh(places, widths, 0.6, begins, label=label, color=colour)
        begins = [begin + width for begin, width in zip(begins, widths)]
    axis.set_yticks(places, [title(row) for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("ms of one call, median of the ranks")
    axis.set_title(of, fontsize=10, loc="left")
    axis.grid(True, axis="x", color="#e4e4e4", linewidth=0.6)
    axis.set_axisbelow(True)
    overlap_timeline.draw(below, rows, [title(row) for row in rows])
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
        below.spines[side].set_visible(False)
    figure.legend(*axis.get_legend_handles_labels(), ncols=3, frameon=False, fontsize=9, loc="lower right")
    figure.tight_layout(rect=(0, 0.3 / figure.get_figheight(), 1, 1))
    save(figure, path)
