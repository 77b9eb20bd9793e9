# SPDX-License-Identifier: BSD-3-Clause
"""kit: an archive that measures on a bigger machine without network and compiler, and its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from stretto.bench.request import OPS, Method, parse_ops, parse_ranks
from stretto.commands.options import checked
from stretto.core import arguments, processors
from stretto.core.console import err, fail, note, out, working
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.core.units import format_size, parse_sizes
from stretto.kit import comparing, latencies, machine_file, making, measuring, plan, record
from stretto.kit.plan import Settings
from stretto.kit.record import Record
from stretto.model import machine as machines
from stretto.model import node
from stretto.mpi import Mpi, choosing, launching
from stretto.mpi.choosing import MPI_HELP
from stretto.native import prebuilt

app = typer.Typer(help="Measure on a machine that is bigger than this one.", no_args_is_help=True)


@app.command("make")
def make(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The archive: .tar.gz, or .tar.xz, which takes longer."),
    ] = Path(f"{making.NAME}.tar.gz"),
) -> None:
    """Make an archive that measures on another machine: x86-64 Linux, glibc 2.28, Python 3.9 or newer.

    It holds the libraries, the tool, the measuring programs and two MPIs. Unpack it there and run
    [b]./measure[/] in its folder.
    """
    if not making.suffix_of(output):
        fail(f"--output {output}: the name of an archive ends in {' or '.join(making.SUFFIXES)}")
    check_outputs(output)
    with working("making the kit"):
        making.make(output)
    note(f"made: {output}, {output.stat().st_size / 2**20:.1f} MiB; unpack it elsewhere and run {making.NAME}/measure")


@app.command("measure")
def measure(
    file: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Results. A file of an interrupted measurement is completed."),
    ] = Path("stretto-kit.json"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes, shorter: to see that it works.")] = False,
    op: Annotated[str, typer.Option("--op", metavar="LIST", help=f"Of {', '.join(OPS)}; or all.")] = "all",
    sizes: Annotated[
        Optional[str],
        typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: from A to B.", show_default=False),
    ] = None,
    method: Annotated[
        Method, typer.Option("--method", help="What the buffers are, as of [b]stretto bench[/].")
    ] = Method.imb,
    budget: Annotated[
        Optional[float], typer.Option("--budget", metavar="S", min=0.001, help="Seconds for one contender at one size.")
    ] = None,
    mpi: Annotated[
        Optional[list[str]],
        typer.Option("--mpi", metavar="MPI", help="May be repeated. Default: the kit's own. " + MPI_HELP),
    ] = None,
    far: Annotated[
        bool, typer.Option("--spread", help="Also ranks that are far apart: each in an L3 cache of its own.")
    ] = False,
) -> None:
    """Measure this machine: the times between its cores, and 17 collectives beside the MPI's own at
    2, 4, 8, ... ranks.

    Nothing is sent anywhere. Ctrl-C stops it; the same command goes on.
    """
    check_outputs(file)
    settings = _settings(quick, op, sizes, method, budget, far)
    here = processors.read()
    if len(here.cores()) < 2:
        fail("this process may use one core only: there is nothing to measure")
    launching.leave_allocation()  # this node is measured, whatever else a job has
    mpis = [choosing.choose(name, fetch=False) for name in mpi or _default_mpis()]
    results = _record(file, here, settings, mpis)
    jobs = measuring.all_jobs(here, settings, mpis)
    known = len(results.data["notes"])
    for text in results.data["notes"]:
        note(text)
    try:
        _run(results, here, jobs, {m.tag: m for m in mpis})
    except BaseException:
        results.data["state"] = "interrupted"
        results.write()
        note(f"kept in {file}: {len(results.data['results'])} results; the same command goes on")
        raise
    _show(results, known)


@app.command("compare")
def compare(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Results of [b]stretto kit measure[/].")],
    machine: Annotated[
        Optional[str],
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME|FILE",
            help="A machine of [b]stretto model node[/]. Default: the one that FILE describes.",
            show_default=False,
        ),
    ] = None,
    op: Annotated[
        str, typer.Option("--op", metavar="LIST", help=f"Of {', '.join(node.COLLECTIVES)}; or all.")
    ] = "barrier,bcast,reduce,allreduce",
    sizes: Annotated[str, typer.Option("--sizes", metavar="A:B", help="Of those measured.")] = "8:4K",
    ranks: Annotated[
        Optional[str], typer.Option("--ranks", "-n", metavar="LIST", help="Default: all measured.", show_default=False)
    ] = None,
    model: Annotated[
        Optional[list[Path]],
        typer.Option(
            "--model", metavar="FILE", help="What [b]stretto model node --json[/] has written; the model does not run."
        ),
    ] = None,
    mpi: Annotated[
        Optional[str],
        typer.Option("--mpi", metavar="TAG", help="Beside which MPI it was measured. Default: the first one in FILE."),
    ] = None,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="The comparison as JSON into FILE (- for stdout), no table."),
    ] = None,
) -> None:
    """Put what was measured on a machine beside what the model of a node says."""
    check_outputs(json_file)
    data = record.read(file)
    tags = [each["tag"] for each in data["mpis"]]
    if mpi and mpi not in tags:
        fail(f"--mpi {mpi}: {file} has {', '.join(tags)}")
    chosen = comparing.chosen(
        comparing.of_mpi(data["results"], mpi or tags[0]),
        arguments.checked_ops([op], node.COLLECTIVES),
        checked(parse_sizes, sizes, "--sizes"),
        checked(parse_ranks, ranks) if ranks else None,
    )
    played = machines.load(machine) if machine else machine_file.machine(data)
    if model:
        predicted = [row for path in model for row in comparing.read_model(path)]
    else:
        predicted = comparing.predict(played, chosen)
    rows = comparing.rows(chosen, predicted)
    if not rows:
        fail(f"{file} and the model have no call in common: the same operation, ranks and bytes")
    doc = comparing.document(data, rows, mpi or tags[0], played.name)
    if not json_file:
        out.print(comparing.table(doc))
        for name, value in doc["geomean"].items():
            out.print(f"{name}: measured / model {value:.2f}, from {doc['least'][name]:.2f} to {doc['most'][name]:.2f}")
    write_json(json_file, "kit.compare", doc)


@app.command("machine")
def machine_of(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Results of [b]stretto kit measure[/].")],
    like: Annotated[
        Optional[str], typer.Option("--like", metavar="NAME|FILE", help="The machine that gives what is not measured.")
    ] = None,
) -> None:
    """Print the measured machine as a file for [b]stretto model node --machine[/]."""
    data = record.read(file)
    other = machines.load(like or machine_file.nearest(data))
    typer.echo(json.dumps(machine_file.document(data, other), indent=2))


def _settings(
    quick: bool, op: str, sizes: Optional[str], method: Method, budget: Optional[float], far: bool
) -> Settings:
    base = plan.QUICK if quick else Settings()
    least, most = checked(parse_sizes, sizes, "--sizes") if sizes else (base.min_bytes, base.max_bytes)
    return Settings(
        checked(parse_ops, op), least, most, base.factor, budget or base.budget_s, method.value, base.spread or far
    )


def _default_mpis() -> list[Optional[str]]:
    return [f"{kind}@wheel" for kind in making.MPIS] if prebuilt.FOLDER.exists() else [None]


def _record(file: Path, here: processors.Topology, settings: Settings, mpis: list[Mpi]) -> Record:
    """A new record, or the one in the file, if that is not complete."""
    fresh = measuring.new_data(here, settings, mpis)
    if not file.exists():
        return Record(file, fresh)
    data = record.read(file)
    if data["state"] == "complete":
        fail(f"{file} is complete; name another file with --out to measure again")
    if what := measuring.mismatch(data, fresh):
        fail(f"{file} is of a measurement with another {what}; name another file with --out")
    note(f"going on with {file}, which has {len(data['results'])} results")
    data["notes"] += [f"It was interrupted, and went on at {fresh['begun']}."]
    data["notes"] += [text for text in fresh["notes"] if text not in data["notes"]]
    return Record(file, data)


def _run(results: Record, here: processors.Topology, jobs: list[plan.Job], mpis: dict[str, Mpi]) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        if not results.data["latency_pairs"]:
            pairs, _ = latencies.pairs_of(here)
            task = bar.add_task("from core to core", total=len(pairs))
            if not err.is_terminal:
                note(f"measuring {len(pairs)} pairs of processors")
            measuring.measure_latencies(results, here, lambda *_: bar.advance(task))
        task = bar.add_task("starting", total=measuring.rows_left(jobs, results))
        plain = _PlainProgress(measuring.rows_left(jobs, results))

        def show(text: str, rows: int) -> None:
            bar.update(task, advance=rows, description=text)
            plain.show(text, rows)

        measuring.run(jobs, mpis, results, show)
    measuring.complete(results)


class _PlainProgress:
    """Progress without a terminal: a line now and then, with the time left."""

    def __init__(self, rows: int) -> None:
        self._clock = measuring.Clock(rows)
        self._shown = ""

    def show(self, text: str, rows: int) -> None:
        self._clock.advance(rows)
        job = text.rpartition(":")[0]
        if not err.is_terminal and job != self._shown:
            self._shown = job
            note(f"{job}; {self._clock.left()}")


def _show(results: Record, known_notes: int) -> None:
    data = results.data
    for text in data["notes"][known_notes:]:
        note(text)
    for level, times in data["latencies"]["levels"].items():
        out.print(f"a flag's way within one {level}: {times['flag_ns']:.0f} ns, median of {times['pairs']} pairs")
    for (mpi, ranks, reason), ops in measuring.failures(data["failures"]).items():
        note(f"failed: {mpi}, {ranks} ranks, {', '.join(ops)}: {reason[-600:]}")
    for (mpi, ranks), value in measuring.geomeans(data["results"]).items():
        out.print(f"{mpi}, {ranks} ranks: Stretto takes {value:.2f} of the MPI's time, geometric mean")
    out.print(f"{len(data['results'])} results in {results.path} ({format_size(results.path.stat().st_size)} bytes)")
