# SPDX-License-Identifier: BSD-3-Clause
"""The report of the suite as one HTML file, from its JSON alone."""

from __future__ import annotations

from pathlib import Path

from stretto.core import html_pages
from stretto.core.console import fail
from stretto.core.reports import SCHEMAS, read_json
from stretto.core.units import format_size
from stretto.papers.drawing import draw
from stretto.papers.entry import Row
from stretto.papers.suite import FAILED, IMPOSSIBLE, IN_PART, MEASURED

TEMPLATE = Path(__file__).with_name("templates") / "papers.html"


def read(path: Path) -> Row:
    doc = read_json(path)
    schema = doc.get("schema") if isinstance(doc, dict) else None
    if schema != f"stretto.papers/{SCHEMAS['papers']}":
        fail(f"{path}: not a report of `stretto bench --suite paper --json FILE`")
    return doc


def render(doc: Row) -> str:
    from markupsafe import Markup

    plots = {
        entry["name"]: [
            {**panel, "svg": Markup(draw(panel, f"{entry['name']}-{number}")), "table": table(panel)}
            for number, panel in enumerate(entry["panels"])
        ]
        for entry in doc["entries"]
    }
    return html_pages.render(
        TEMPLATE,
        title="The papers' figures on this machine",
        doc=doc,
        plots=plots,
        verdict=verdict(doc),
        reached=reached,
        number=number_text,
    )


def verdict(doc: Row) -> str:
    """What came of all of it, in a few sentences."""
    entries = doc["entries"]
    judged = [claim for entry in entries for claim in entry["claims"] if claim["reached"] is not None]
    good = sum(claim["reached"] for claim in judged)
    done = sum(entry["status"] in (MEASURED, IN_PART) for entry in entries)
    text = f"{good} of {len(judged)} claims are reached on this machine. " if judged else ""
    text += f"{done or 'None'} of {len(entries)} figures and tables have been measured"
    counts = {status: sum(entry["status"] == status for entry in entries) for status in (IN_PART, FAILED, IMPOSSIBLE)}
    return text + "".join(f"; {status}: {count}" for status, count in counts.items() if count) + "."


def reached(entry: Row) -> str:
    """How many claims of an entry are reached, of those that can be."""
    judged = [claim["reached"] for claim in entry["claims"] if claim["reached"] is not None]
    return f"{sum(judged)} of {len(judged)}" if judged else ""


def number_text(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(panel: Row) -> Row:
    """The panel's points: one row for each x, one column for each series."""
    names = panel["x"]["names"]
    values = sorted({point[0] for series in panel["series"] for point in series["points"]})

    def text(value: float) -> str:
        if names:
            return names[int(value)]
        return format_size(int(value)) if panel["x"]["unit"] == "bytes" else f"{value:g}"

    columns = [dict(map(tuple, series["points"])) for series in panel["series"]]
    return {
        "head": [panel["x"]["label"], *(series["name"] for series in panel["series"])],
        "rows": [[text(value), *(number_text(column.get(value)) for column in columns)] for value in values],
    }
