# SPDX-License-Identifier: BSD-3-Clause
"""The commands of `stretto model`."""

from __future__ import annotations

import typer

from stretto.commands.model import (
    bench,
    best_k,
    chains,
    compare,
    diagram,
    export,
    job,
    measure,
    node,
    predict,
    rules,
    scale,
)

app = typer.Typer(
    help="Predict, draw and export collectives by a model of the machine.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("predict")(predict.command)
app.command("scale")(scale.command)
app.command("chains")(chains.command)
app.command("diagram")(diagram.command)
app.command("export")(export.command)
app.command("rules")(rules.command)
app.command("bench")(bench.command)
app.command("measure")(measure.command)
app.command("compare")(compare.command)
app.command("best-k")(best_k.command)
app.command("node")(node.command)
app.command("job")(job.command)
