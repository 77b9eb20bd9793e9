# SPDX-License-Identifier: BSD-3-Clause
"""info --topology: the tree of groups of ranks."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from rich.markup import escape
from rich.tree import Tree

from stretto.core.console import fail, note, out, working
from stretto.core.units import ranges
from stretto.native import build


def find(ranks: int | None, root: int) -> dict[str, Any]:
    """The groups that the library would make, by its own code and options."""
    with working("building the topology tool"):
        program = build.ensure_built("release", ["stretto-topology"]) / "stretto-topology"
    done = subprocess.run([str(program), str(ranks or 0), str(root)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(done.stderr.strip())
    facts = json.loads(done.stdout)
    if ranks and ranks > facts["ranks"]:
        note(
            f"-n {ranks}: only {facts['ranks']} have a place on this machine's processors or the nodes of "
            "STRETTO_TOPOLOGY; STRETTO_PLACEMENT places more"
        )
    return facts


def title(group: dict[str, Any]) -> str:
    """The level of a group, and the name of its switch."""
    return " ".join(filter(None, (group["level"], group.get("name"))))


def _branch(tree: Tree, group: dict[str, Any]) -> None:
    for below in group["groups"]:
        text = f"{escape(title(below))}: {ranges(below['ranks'])}"
        if len(below["ranks"]) > 1:
            text += f"  [dim]led by {below['leader']}[/]"
        if below["groups"] and below["members"] != below["ranks"]:
            text += f"[dim], leaders {ranges(below['members'])}[/]"
        if "carriers" in below:
            text += f"[dim], carriers {ranges(sorted(below['carriers']))}[/]"
        _branch(tree.add(text), below)


def show(facts: dict[str, Any]) -> None:
    top = facts["tree"]
    leaders = f"  [dim]leaders {ranges(top['members'])}[/]" if top["groups"] else ""
    carriers = f"  [dim]carriers {ranges(sorted(top['carriers']))}[/]" if "carriers" in top else ""
    tree = Tree(f"[bold]{facts['ranks']} ranks[/], root {facts['root']}{leaders}{carriers}")
    _branch(tree, top)
    out.print(tree)
    out.print("\n[bold]Groups of each rank[/] (groups of one are left out)")
    for rank, groups in enumerate(facts["groups_of_ranks"]):
        out.print(f"rank {rank}: " + "  ".join(f"{{{ranges(g)}}}" for g in groups), highlight=False)
