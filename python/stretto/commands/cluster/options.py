# SPDX-License-Identifier: BSD-3-Clause
"""Options of several commands of `stretto cluster`, and what they print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import PlanError, format_rate
from stretto.cluster.registry import ClusterError
from stretto.cluster.wiring import Traffic
from stretto.core.console import fail

NAME = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
JSON = Annotated[
    Optional[Path], typer.Option("--json", metavar="FILE", help="Write it as JSON into FILE ([b]-[/]: stdout).")
]


@contextmanager
def plain_errors():
    """Turns errors of clusters into messages."""
    try:
        yield
    except (ClusterError, PlanError) as error:
        fail(str(error))


def links_report(cluster: Cluster, links: Mapping[str, Traffic]) -> list[dict[str, Any]]:
    return [
        {
            "name": link.name,
            "upper": link.upper,
            "uplink": link.is_uplink,
            "rate_bps": link.rate_bps,
            "up_bytes": links[link.name].up_bytes,
            "down_bytes": links[link.name].down_bytes,
        }
        for link in cluster.plan.links
    ]


def show_links(rows: list[dict[str, Any]], title: str, print_: Callable[[Any], None]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("link", "rate", "bytes up", "bytes down"):
        table.add_column(column, justify="left" if column == "link" else "right")
    for row in rows:
        table.add_row(
            f"{row['name']} - {row['upper']}",
            format_rate(row["rate_bps"]),
            f"{row['up_bytes']:,}",
            f"{row['down_bytes']:,}",
        )
    print_(table)
