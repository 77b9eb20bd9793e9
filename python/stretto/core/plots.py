# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures share: colours, markers, labels, and writing the file."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.units import format_size

# Colour-blind safe (Okabe and Ito), plus line styles so that grey prints stay readable.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
MARKERS = "osD^vP*X"
LINES = ("-", "--", "-.")
# Colours that become the page's own in a picture within a page.
OF_PAGE = {
    **{"#010203": "currentColor", "#dfe4ea": "var(--line)", "#000000": "currentColor"},
    **{"#0072b2": "var(--c0)", "#8c6d1f": "var(--c5)"},  # too dark for a dark page
}
TEXT, GRID = list(OF_PAGE)[:2]
IN_AXES = 8  # names in a legend; more would cover the curves


def style(number: int) -> dict[str, Any]:
    """Colour, marker and line of a curve by its number. When all colours are used, they start again
    with another marker and line."""
    again, i = divmod(number, len(COLOURS))
    return {
        "color": COLOURS[i],
        "marker": MARKERS[(i + 3 * again) % len(MARKERS)],
        "fillstyle": "none" if again % 2 else "full",
        "linestyle": LINES[again % len(LINES)],
        "markersize": 4 + again % 2,
    }


def save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    try:
        with plt.rc_context({"svg.fonttype": "none"}):  # text stays text
            figure.savefig(path, dpi=140)
    except OSError as error:
        fail(f"cannot draw {path}: {error.strerror}")
    finally:
        plt.close(figure)


def inline_svg(figure: Any, name: str) -> str:
    """A picture as a part of an HTML page, which gives it the colours of OF_PAGE. `name` keeps its
    ids apart from those of other pictures."""
    import matplotlib.pyplot as plt

    text = io.StringIO()
    try:
        with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    finally:
        plt.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg ") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\1{name}-", svg)
    for colour, own in OF_PAGE.items():
        svg = svg.replace(colour, own)
    return svg


def label_sizes(axis: Any, sizes: list[int]) -> None:
    step = max(1, -(-len(sizes) // 9))
    shown = sizes[::step]
    axis.set_xticks(shown, [format_size(s) for s in shown])
    axis.minorticks_off()
