# SPDX-License-Identifier: BSD-3-Clause
"""Drawings of the report: inline SVG without text, so that shapes may stretch and letters may not.
Labels are HTML around it. Colours are classes of the page's style."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from stretto.core.units import format_size

MOST_COLUMNS = 128
MOST_CELLS = 64
KINDS = ("moving", "waiting", "outside")
COLOURS = 6  # of collectives in one drawing


def _number(value: float) -> str:
    return f"{value:.4g}"


def _svg(width: float, height: float, shapes: str, label: str, kind: str = "") -> str:
    return (
        f'<svg class="plot {kind}" viewBox="0 0 {_number(width)} {_number(height)}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(label)}">{shapes}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    if width <= 0 or height <= 0:
        return ""
    shape = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<rect class="{kind}" {shape}><title>{escape(title)}</title></rect>'


def bar(parts: Sequence[tuple[str, float, str]]) -> str:
    """One line of parts of 1, each with its class and its title."""
    shapes, at = "", 0.0
    for kind, part, title in parts:
        shapes += _rect(100 * at, 0, 100 * part, 10, kind, title)
        at += part
    return _svg(100, 10, shapes, "; ".join(title for _, _, title in parts), "bar")


def grouped(count: int, most: int) -> list[range]:
    """So many things in at most `most` groups of neighbours."""
    size = max(-(-count // most), 1)
    return [range(at, min(at + size, count)) for at in range(0, count, size)]


def columns(stacks: Sequence[Sequence[tuple[str, float, str]]], label: str, top: float = 1.0) -> str:
    """A column for each stack of parts, from below."""
    shapes = ""
    for i, stack in enumerate(stacks):
        y = 100.0
        for kind, value, title in stack:
            height = 100 * value / top if top else 0.0
            y -= height
            shapes += _rect(i + 0.06, y, 0.88, height, kind, title)
    return _svg(len(stacks), 100, shapes, label, "columns")


def nice(top: float) -> float:
    """The end of an axis from 0: 1, 2, 2.5 or 5 times a power of ten."""
    if top <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(top))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if top <= step * power * (1 + 1e-9))


def scale(top: float, text: Callable[[float], str]) -> list[tuple[float, str]]:
    """The marks of a vertical axis that ends at `top`: where each is, in percent from above, and its value."""
    return [(0.0, text(top)), (50.0, text(top / 2)), (100.0, "0")]


def area(points: Sequence[tuple[float, float]], top: float) -> str:
    """Two parts over time, one on the other."""
    shapes = ""
    for kind, low, high in (
        ("moving", lambda p: 0.0, lambda p: p[0]),
        ("waiting", lambda p: p[0], lambda p: p[0] + p[1]),
    ):
        steps = [f"M0 {_number(100 - 100 * low(points[0]) / top)}"]
        for i, point in enumerate(points):
            y = _number(100 - 100 * min(high(point) / top, 1.0))
            steps.append(f"L{i} {y}L{i + 1} {y}")
        for i, point in reversed(list(enumerate(points))):
            y = _number(100 - 100 * min(low(point) / top, 1.0))
            steps.append(f"L{i + 1} {y}L{i} {y}")
        shapes += f'<path class="{kind}" d="{"".join(steps)}Z"/>'
    return _svg(len(points), 100, shapes, "Time in collectives over the run", "area")


def strength(part: float) -> float:
    """How strong a colour is for a part of the greatest value: its square root, so that small ones are seen."""
    return 0.06 + 0.94 * math.sqrt(part)


def matrix(
    waited: dict[tuple[int, int], float], ranks: int, names: Sequence[str]
) -> tuple[str, list[tuple[float, str]]]:
    """A row for each rank that waited, a column for each that it waited for. Also the colours' legend:
    how strong, and what that means."""
    groups = len(names)
    size = -(-ranks // groups)
    cells: dict[tuple[int, int], float] = {}
    for (waiting, late), seconds in waited.items():
        key = (waiting // size, late // size)
        cells[key] = cells.get(key, 0.0) + seconds
    most = max(cells.values(), default=0.0)
    shapes = f'<rect class="empty" x="0" y="0" width="{groups}" height="{groups}"/>'
    for (row, column), seconds in sorted(cells.items()):
        opacity = strength(seconds / most if most else 0.0)
        title = f"{names[row]} waited {format_seconds(seconds)} for {names[column]}"
        shapes += (
            f'<rect class="cell" x="{column + 0.04:g}" y="{row + 0.04:g}" width="0.92" height="0.92" '
            f'style="fill-opacity:{opacity:.3f}"><title>{escape(title)}</title></rect>'
        )
    legend = [(strength(part), format_seconds(part * most)) for part in (1 / 16, 1 / 4, 1)] if most else []
    return _svg(groups, groups, shapes, "Which rank waited for which", "matrix"), legend


def format_seconds(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "–"
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < limit * 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    if seconds < 999.5:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_bytes(number: float) -> str:
    for limit, unit in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= limit:
            return f"{number / limit:.3g} {unit}"
    return f"{number:.0f} B"


def format_count(number: float) -> str:
    """Three digits and a unit. Fractions are kept below 10: half of an axis may be one."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= limit:
            return f"{number / min(limit, 1e3 if unit == 'k' else limit):.3g}{unit}"
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.2g}"


@dataclass
class Chart:
    svg: str
    scale: list[tuple[float, str]]  # marks of the vertical axis
    labels: list[str]  # of the columns


def size_columns(sizes: dict[str, dict[int, tuple[int, float]]], ops: Sequence[str], which: int) -> Chart | None:
    """Calls (0) or seconds (1) by size, the collectives of `ops` in colours of their own."""
    known = sorted({least for each in sizes.values() for least in each})
    if not known:
        return None
    first = known[0].bit_length()
    lengths = [0 if bits == 0 else 1 << (bits - 1) for bits in range(first, known[-1].bit_length() + 1)]
    stacks, labels = [], []
    for least in lengths:
        stack = []
        for i, op in enumerate((*ops, None)):
            names = [op] if op else [name for name in sizes if name not in ops]
            value = sum(sizes.get(name, {}).get(least, (0, 0.0))[which] for name in names)
            text = format_count(value) + " calls" if which == 0 else format_seconds(value)
            if value:
                stack.append((f"c{i}", value, f"{op or 'others'}, {size_text(least)}: {text}"))
        stacks.append(stack)
        labels.append(size_text(least))
    top = nice(max(sum(value for _, value, _ in stack) for stack in stacks))
    svg = columns(stacks, "Calls by size" if which == 0 else "Time by size", top)
    return Chart(svg, scale(top, format_count if which == 0 else format_seconds), labels)


def size_text(least: int) -> str:
    """The sizes from `least` bytes up to twice as many."""
    if least < 1024:
        return str(least)
    return format_size(least)


def ticks(labels: Sequence[str], most: int = 7) -> list[tuple[float, str]]:
    """Some labels, each with its middle in percent."""
    step = max(-(-len(labels) // most), 1)
    return [(100 * (i + 0.5) / len(labels), labels[i]) for i in range(0, len(labels), step)]
