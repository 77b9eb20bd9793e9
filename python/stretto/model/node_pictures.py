# SPDX-License-Identifier: BSD-3-Clause
"""Which lines travelled between which L3 domains: heat maps for the terminal, and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from stretto.core.plots import save
from stretto.model.machine import NodeMachine
from stretto.model.text import call_text

SHADES = " ·░▒▓█"
MOST_PANELS = 12


def title(row: dict[str, Any]) -> str:
    return f"{call_text(row['op'], row['bytes'])}, {row['ranks']} ranks, {row['way']}"


def used_domains(row: dict[str, Any]) -> int:
    """Domains up to the last one that a line came from or went to."""
    matrix = row["between"]
    return max((i + 1 for i in range(len(matrix)) if any(matrix[i]) or any(line[i] for line in matrix)), default=1)


def shade(lines: float, most: float) -> str:
    """By the logarithm: a few lines are seen beside thousands."""
    if lines <= 0:
        return SHADES[0]
    part = math.log1p(lines) / math.log1p(most) if most > 0 else 1
    return SHADES[min(len(SHADES) - 1, max(1, math.ceil(part * (len(SHADES) - 1))))]


def heat_map(row: dict[str, Any], machine: NodeMachine) -> Text:
    """A row for each domain that lines left, a column for each that they went to."""
    count = used_domains(row)
    matrix = [line[:count] for line in row["between"][:count]]
    most = max(max(line) for line in matrix)
    names = [machine.l3_name(i) for i in range(count)]
    width = max(map(len, names))
    lines = [
        f"{name:>{width}} {''.join(shade(value, most) * 2 for value in line)}  {sum(line):.0f}"
        for name, line in zip(names, matrix)
    ]
    head = f"{title(row)}: lines from L3 domain (row, with its sum) to L3 domain (column), at most {most:.0f}"
    return Text("\n".join([head, *lines]))


def plot(rows: Sequence[dict[str, Any]], machine: NodeMachine, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    shown = rows[:MOST_PANELS]
    columns = min(len(shown), 3)
    count_rows = -(-len(shown) // columns)
    figure, axes = plt.subplots(count_rows, columns, figsize=(4.6 * columns, 4.3 * count_rows), squeeze=False)
    most = max(max(map(max, row["between"])) for row in shown)
    norm = LogNorm(vmin=0.1, vmax=max(most, 1))
    for axis, row in zip(axes.flat, shown):
        count = used_domains(row)
        matrix = [[value or math.nan for value in line[:count]] for line in row["between"][:count]]
        image = axis.imshow(matrix, norm=norm, cmap="viridis", interpolation="nearest")
        per_socket = machine.l3s // int(machine["sockets"])
        for edge in range(per_socket, count, per_socket):
            axis.axhline(edge - 0.5, color="#D55E00", linewidth=1)
            axis.axvline(edge - 0.5, color="#D55E00", linewidth=1)
        ticks = range(0, count, max(1, count // 8))
        axis.set_xticks(ticks, [machine.l3_name(i) for i in ticks], fontsize=7)
        axis.set_yticks(ticks, [machine.l3_name(i) for i in ticks], fontsize=7)
        axis.set_xlabel("to L3 domain", fontsize=8)
        axis.set_ylabel("from L3 domain", fontsize=8)
        axis.set_title(
            f"{title(row)}\n{row['line_transfers']:,.0f} lines, {row['socket_transfers']:,.0f} between sockets",
            fontsize=8,
        )
        figure.colorbar(image, ax=axis, shrink=0.8)
    for axis in list(axes.flat)[len(shown) :]:
        axis.set_visible(False)
    figure.suptitle(f"{machine.name}: lines of one call", fontsize=10)
    figure.tight_layout()
    save(figure, path)
