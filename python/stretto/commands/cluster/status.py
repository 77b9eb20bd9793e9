# SPDX-License-Identifier: BSD-3-Clause
"""cluster status: hosts and links."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from stretto.cluster.cluster import Cluster
from stretto.cluster.prerequisites import why_not
from stretto.commands.cluster.options import JSON, NAME, links_report, plain_errors, show_links
from stretto.core.console import fail, out
from stretto.core.reports import write_json


def report(cluster: Cluster) -> dict[str, Any]:
    plan, links = cluster.plan, cluster.links()
    return {
        **plan.as_json(),
        "network_file": str(cluster.network_file),
        "agent": str(cluster.agent),
        "hosts": [
            {"name": h.name, "address": h.address, "switch": h.leaf, "processes": len(cluster.processes(h.name))}
            for h in plan.hosts
        ],
        "links": links_report(cluster, links),
    }


def command(name: NAME = "default", json_file: JSON = None) -> None:
    """Show a cluster's hosts and links, and what has crossed them."""
    if reason := why_not():
        fail(reason)
    with plain_errors():
        found = report(Cluster.find(name))
    write_json(json_file, "cluster.status", found)
    if json_file and str(json_file) == "-":
        return
    table = Table(title=f"cluster {name}, network file {found['network_file']}", title_justify="left")
    for column in ("host", "address", "switch", "processes"):
        table.add_column(column, justify="right" if column == "processes" else "left")
    for host in found["hosts"]:
        table.add_row(host["name"], host["address"], host["switch"], str(host["processes"]))
    out.print(table)
    show_links(found["links"], "links", out.print)
