# SPDX-License-Identifier: BSD-3-Clause
"""info: versions, MPIs, libraries, options and processors of this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table
from rich.text import Text

from stretto import __version__
from stretto.commands import topology, topology_plot
from stretto.core import machine
from stretto.core.console import fail, note, out, working
from stretto.core.output_files import check_outputs
from stretto.core.paths import build_root, root
from stretto.core.reports import write_json
from stretto.mpi import finding
from stretto.native import guarding, prebuilt, probe
from stretto.native.build import BuildError


def _library_facts(path: Path) -> dict[str, Any]:
    return {
        "path": path,
        "bytes": path.stat().st_size,
        "needs": machine.needed_by_libraries(path),
        "built": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime)),
    }


def gather() -> dict[str, Any]:
    folder = prebuilt.FOLDER if prebuilt.FOLDER.exists() else build_root() / "release"
    libraries = sorted(p for p in folder.glob("libstretto-*.so") if "faulty" not in p.name)
    facts: dict[str, Any] = {
        "version": __version__,
        "source": root(),
        "machine": machine.describe(),
        "mpis": [
            {
                "title": m.title,
                "kind": m.kind,
                "abi": m.abi,
                "version": m.version,
                "origin": m.origin,
                "mpiexec": m.mpiexec,
                "mpicc": m.mpicc,
                "library": m.library,
            }
            for m in finding.find_abis()
        ],
        "libraries": [_library_facts(p) for p in libraries],
        "ptrace_scope": machine.ptrace_scope(),
        "probe": None,
    }
    try:
        with working("building the probe"):
            facts["probe"] = probe.ask()
    except BuildError as error:
        facts["probe_error"] = str(error)
    return facts


def _grid(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _show_options(options: list[dict[str, Any]], everything: bool) -> None:
    table = _grid("Option", "Value", "From", "What it does")
    hidden = 0
    for option in options:
        default = option["origin"] == "default"
        if default and not everything and "who serves this collective" in option["help"]:
            hidden += 1
            continue
        style = "dim" if default else "bold"
        table.add_row(
            *map(Text, (option["name"], option["value"] or "-", option["origin"], option["help"])), style=style
        )
    out.print("\n[bold]Options[/] (environment, then stretto.toml, then default)")
    out.print(table)
    if hidden:
        out.print(
            f"[dim]and STRETTO_<COLLECTIVE>=auto|mpi|schedule for {hidden} collectives, all auto (--all lists them)[/]"
        )


def _show(facts: dict[str, Any], everything: bool) -> None:
    out.print(Text.assemble((f"Stretto {facts['version']}", "bold"), f", sources in {facts['source']}"))
    out.print(
        f"Machine: {machine.one_line()}, kernel {facts['machine']['kernel']}, {facts['machine']['numa_nodes']} "
        "NUMA node(s)",
        markup=False,
    )
    if probe := facts["probe"]:
        cpus = probe["cpus"]
        quota = "no cgroup quota" if cpus["quota"] is None else f"cgroup quota of {cpus['quota']:g} CPUs"
        cma = next(c for c in probe["checks"] if c["name"] == "cma")
        scope = facts["ptrace_scope"]
        out.print(f"CPUs: {cpus['usable']} usable of {cpus['online']} online, {quota}")
        out.print(
            f"CMA (reading another process's memory): {'works' if cma['ok'] else 'refused, ' + cma['error']}"
            + (f"; ptrace_scope {scope}" if scope else "")
        )
        for line in guarding.lines(probe["overlap"]):
            out.print(f"{line.subject[0].upper()}{line.subject[1:]}: {line.finding}", markup=False)
    out.print("\n[bold]MPIs[/] (the first is the default)")
    table = _grid("MPI", "ABI", "mpiexec", "library")
    for m in facts["mpis"]:
        table.add_row(m["title"], m["abi"], Text(str(m["mpiexec"])), Text(str(m["library"])))
    out.print(table if facts["mpis"] else "none: `stretto run` will fetch the Open MPI wheel")
    out.print("\n[bold]Libraries[/]")
    table = _grid("Library", "Size", "Built", "Needs at load time")
    for each in facts["libraries"]:
        table.add_row(
            Text(str(each["path"])), f"{each['bytes'] / 1024:.0f} KiB", each["built"], " ".join(each["needs"])
        )
    out.print(table if facts["libraries"] else "none built yet: `stretto env --library` builds one")
    if facts["probe"]:
        _show_options(facts["probe"]["options"], everything)
        for message in facts["probe"]["option_messages"]:
            out.print(message["text"], style="red" if message["error"] else "yellow", markup=False)
    else:
        note(facts["probe_error"])


def command(
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write everything as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also the options of single collectives.")] = False,
    show_topology: Annotated[
        bool,
        typer.Option(
            "--topology",
            help="Instead, the groups that schedules would use: of the ranks that STRETTO_PLACEMENT "
            "places, of the nodes in STRETTO_TOPOLOGY, or of this machine's processors.",
        ),
    ] = False,
    ranks: Annotated[
        Optional[int],
        typer.Option("--ranks", "-n", metavar="N", min=1, help="With --topology: so many ranks.", show_default=False),
    ] = None,
    tree_root: Annotated[
        Optional[int],
        typer.Option(
            "--root",
            metavar="RANK",
            min=0,
            help="With --topology: for calls with this root. Default: 0.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot",
            metavar="FILE",
            help="With --topology: draw the tree of groups ([b].svg[/], [b].png[/]).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show versions, MPIs, libraries, options and where they came from, and processors; or where ranks are."""
    of_ranks = {"--plot": plot, "--ranks": ranks, "--root": tree_root}
    if lone := [name for name, value in of_ranks.items() if value is not None and not show_topology]:
        fail(f"{lone[0]} needs --topology")
    check_outputs(json_file, picture=plot)
    if ranks is not None and tree_root is not None and tree_root >= ranks:
        fail(f"--root {tree_root}: there are ranks 0 to {ranks - 1}")
    facts = topology.find(ranks, tree_root or 0) if show_topology else gather()
    write_json(json_file, "topology" if show_topology else "info", facts)
    if plot:
        topology_plot.plot(facts, plot)
    if json_file is not None and str(json_file) == "-":
        return
    if show_topology:
        topology.show(facts)
    else:
        _show(facts, everything)
