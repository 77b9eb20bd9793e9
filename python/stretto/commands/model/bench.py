# SPDX-License-Identifier: BSD-3-Clause
"""model bench: how fast the timer is."""

from __future__ import annotations

from rich.table import Table

from stretto.commands.model_options import JsonFile
from stretto.core.console import out
from stretto.core.reports import write_json
from stretto.model import profile_file, timer


def command(json_file: JsonFile = None) -> None:
    """How fast the timer is: big jobs, events per second, memory."""
    report = timer.ask_json("benchmark", profile_file.load(profile_file.EXAMPLE), [])
    write_json(json_file, "model.bench", report)
    if json_file and str(json_file) == "-":
        return
    table = Table(box=None, pad_edge=False)
    for name, justify in (
        ("job", "left"),
        ("ranks", "right"),
        ("steps", "right"),
        ("seconds", "right"),
        ("events/s", "right"),
        ("peak so far", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for run in report["runs"]:
        table.add_row(
            run["name"],
            str(run["ranks"]),
            f"{run['steps']:,}",
            f"{run['seconds']:.2f}",
            f"{run['events_per_second'] / 1e6:.1f} M",
            f"{run['peak_bytes'] / (1 << 20):.0f} MiB",
        )
    out.print(table)
