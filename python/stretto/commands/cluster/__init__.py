# SPDX-License-Identifier: BSD-3-Clause
"""The commands of `stretto cluster`."""

from __future__ import annotations

import typer

from stretto.commands.cluster import bench, down, run, simulate, status, up

HELP = """Clusters on this machine, for trying MPI programs between hosts.

Hosts are sets of Linux namespaces, each with its own name, network, processes and shared memory; \
switches are bridges; links
have rates. [b]stretto cluster up[/] makes one, [b]stretto cluster run -- ./app[/] starts a program on it.
No root is needed.
"""

app = typer.Typer(help=HELP, rich_markup_mode="rich", no_args_is_help=True)
app.command("up")(up.command)
app.command("down")(down.command)
app.command("bench")(bench.command)
app.command("simulate")(simulate.command)
app.command("status")(status.command)
app.command("run", context_settings={"allow_interspersed_args": False})(run.command)
