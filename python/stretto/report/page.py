# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page of a report. It needs no other file and no network."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stretto import __version__
from stretto.core import html_pages
from stretto.report import drawings, early
from stretto.report.drawings import Chart
from stretto.report.figures import OTHERS, Figures, Row, figures
from stretto.report.verdict import ADVICE, call_name, percent, verdict

MOST_PLACES = 14
MOST_LATE = 8
LITTLE_LATE = 0.01  # part of all waiting
TEMPLATE = Path(__file__).with_name("page.html")


def split_bar(run: Figures) -> str:
    share = run.share
    whole = max(share.run, share.calls, 1e-12)
    waiting = share.waiting or 0.0
    return drawings.bar(
        [
            ("waiting", waiting / whole, f"waiting {drawings.format_seconds(waiting)}"),
            ("moving", share.moving / whole, f"moving {drawings.format_seconds(share.moving)}"),
            *((kind, share.others[kind] / whole, text) for kind, text in others(run)),
            ("outside", share.rest / whole, f"{rest_name(run)} {drawings.format_seconds(share.rest)}"),
        ]
    )


def others(run: Figures) -> list[tuple[str, str]]:
    """Kinds of other calls that took time, each with its words."""
    return [
        (kind, f"{name} {drawings.format_seconds(run.share.others[kind])}")
        for kind, name in OTHERS.items()
        if run.share.others.get(kind)
    ]


def rest_name(run: Figures) -> str:
    return "outside of MPI" if run.share.others else "outside collectives"


def rank_columns(run: Figures) -> Chart:
    """Parts of each rank's time; of many ranks, means of neighbours."""
    stacks, names = [], []
    for group in drawings.grouped(run.ranks, drawings.MOST_COLUMNS):
        shares = [run.per_rank[r] for r in group]
        name = _ranks_name(group)
        stack = []
        for kind, seconds in (("moving", [s.moving for s in shares]), ("waiting", [s.waiting or 0.0 for s in shares])):
            part = sum(n / s.run if s.run else 0.0 for n, s in zip(seconds, shares)) / len(shares)
            stack.append((kind, part, f"rank {name}: {kind} {percent(part)}"))
        stacks.append(stack)
        names.append(name)
    top = top_of_parts(sum(part for _, part, _ in stack) for stack in stacks)
    svg = drawings.columns(stacks, "Time in collectives by rank", top)
    return Chart(svg, drawings.scale(top, percent), names)


def top_of_parts(parts: Iterable[float]) -> float:
    """The end of an axis of parts of 1."""
    return min(drawings.nice(max(parts, default=0.0)), 1.0)


def _ranks_name(group: range) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}–{group[-1]}"


def rank_matrix(run: Figures) -> Row:
    names = [_ranks_name(group) for group in drawings.grouped(run.ranks, drawings.MOST_CELLS)]
    svg, legend = drawings.matrix(run.waited, run.ranks, [f"rank {name}" for name in names])
    return {"svg": svg, "legend": legend, "ticks": drawings.ticks(names, 8)}


def time_plot(run: Figures) -> Row | None:
    if len(run.time) < 2:
        return None
    top = top_of_parts(moving + waiting for moving, waiting in run.time)
    end = run.bin_seconds * len(run.time)
    labels = [drawings.format_seconds(end * i / 4) if i else "0" for i in range(5)]
    return {"svg": drawings.area(run.time, top), "scale": drawings.scale(top, percent), "labels": labels}


def size_plots(run: Figures) -> Row | None:
    order = [op.name for op in run.operations if op.name in run.sizes][: drawings.COLOURS]
    calls, seconds = (drawings.size_columns(run.sizes, order, which) for which in (0, 1))
    if calls is None:
        return None
    return {"calls": calls, "seconds": seconds, "ops": order, "others": len(run.sizes) > len(order)}


def comparison(run: Figures, off: Figures) -> list[Row]:
    rows = [
        {"what": "whole run", "off": off.share.run, "on": run.share.run},
        {"what": "outside collectives", "off": off.share.outside, "on": run.share.outside},
        {"what": "collectives", "off": off.share.calls, "on": run.share.calls},
    ]
    if run.share.waiting is not None and off.share.waiting is not None:
        rows.append({"what": "of which waiting", "off": off.share.waiting, "on": run.share.waiting})
        rows.append({"what": "of which moving", "off": off.share.moving, "on": run.share.moving})
    before = {op.name: op.seconds / off.ranks for op in off.operations}
    for op in run.operations:
        if op.name in before:
            rows.append({"what": call_name(op.name), "off": before[op.name], "on": op.seconds / run.ranks})
    for row in rows:
        row["ratio"] = row["off"] / row["on"] if row["on"] else None
    return rows


def differences(run: Figures, off: Figures) -> list[str]:
    """What makes a comparison doubtful."""
    found = []
    for what, key in (("ranks", "ranks"), ("command", "command"), ("MPI", "mpi")):
        if run.stats.get(key) != off.stats.get(key):
            found.append(f"{what}: {off.stats.get(key)} without, {run.stats.get(key)} with")
    if sorted(run.hosts) != sorted(off.hosts):
        found.append("the hosts differ")
    return found


def processors(cpus: str) -> set[int]:
    """Those of a list as 0-3,8."""
    spans = [part.split("-") for part in cpus.split(",") if part]
    return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}


def placement(run: Figures) -> list[Row]:
    """A row for each host."""
    rows = []
    for host, ranks in run.hosts.items():
        allowed = [processors(rank.get("cpus", "")) for rank in ranks]
        every = set().union(*allowed)
        numa: dict[Any, list[int]] = {}
        for rank in ranks:
            numa.setdefault(rank.get("numa"), []).append(rank["rank"])
        nodes = sorted(numa.items(), key=lambda item: (item[0] is None, item[0]))
        text = ranks_text(sorted(every)) or "not known"
        if len(ranks) > 1 and every:
            least, most = min(map(len, allowed)), max(map(len, allowed))
            text += f", {least if least == most else f'{least} to {most}'} for each rank"
        rows.append(
            {
                "host": host,
                "ranks": [rank["rank"] for rank in ranks],
                "count": len(every),
                "processors": text,
                "numa": "; ".join(f"{'several' if node is None else node}: {ranks_text(of)}" for node, of in nodes),
            }
        )
    return rows


def ranks_text(ranks: list[int]) -> str:
    """Ranks as 0–2, 5."""
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in spans)


def moment(seconds: float | None) -> str:
    if not seconds:
        return "unknown"
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def words(text: str) -> Any:
    """Text in which `these` are words of a program."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def drawing(svg: str) -> Any:
    """A drawing is markup already."""
    from markupsafe import Markup

    return Markup(svg)


FILTERS = {
    "seconds": drawings.format_seconds,
    "bytes": drawings.format_bytes,
    "count": drawings.format_count,
    "percent": percent,
    "call": call_name,
    "ticks": drawings.ticks,
    "drawing": drawing,
    "words": words,
    "ranks": ranks_text,
    "moment": moment,
}


def render(stats: Row, off_stats: Row | None = None) -> str:
    run = figures(stats)
    off = figures(off_stats) if off_stats else None
    rows = placement(run)
    return html_pages.render(
        TEMPLATE,
        FILTERS,
        title=f"Stretto: {run.command}",
        version=__version__,
        run=run,
        verdict=verdict(run, off),
        early=early.advice(run),
        split=split_bar(run),
        others=others(run),
        rest_name=rest_name(run),
        by_rank=rank_columns(run),
        matrix=rank_matrix(run) if run.waited else None,
        time=time_plot(run),
        sizes=size_plots(run),
        places=run.places[:MOST_PLACES],
        more_places=run.places[MOST_PLACES:],
        late=[each for each in run.late if each.part >= LITTLE_LATE][:MOST_LATE],
        small_late=sum(each.part < LITTLE_LATE for each in run.late),
        options=[option for option in stats.get("options", []) if option["name"] != "STRETTO_STATS"],
        placement=rows,
        crowded=[row for row in rows if 0 < row["count"] < len(row["ranks"])],
        advice=ADVICE,
        comparison=comparison(run, off) if off else None,
        differences=differences(run, off) if off else [],
        clock_error=max((rank.get("clock_error_ns", 0) for rank in stats["per_rank"]), default=0) / 1e9,
    )


def write(path: Path, stats: Row, off_stats: Row | None = None) -> None:
    html_pages.write(path, render(stats, off_stats))
