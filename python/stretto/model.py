# SPDX-License-Identifier: BSD-3-Clause
"""model: collectives in virtual time. What the library would execute, run in LogGP by tools/model, and drawn."""

from __future__ import annotations

import json as jsons
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import arguments, build, outputs, profile as profiles, site
from stretto.bench import parse_size, print_size
from stretto.console import child, fail, note, out, working, write_json
from stretto.profile import Profile

app = typer.Typer(
    help="Predict, draw and export collectives by a model of the machine.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Op = Annotated[
    str, typer.Option("--op", metavar="NAME", help="Collective, as [b]reduce[/].", callback=arguments.collective)
]
Algorithms = Annotated[
    list[str],
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME",
        help="As [b]kchain[/], or [b]reduce:kchain[/] (docs/model.md lists them); "
        "[b]hierarchy[/], [b]hierarchy:nodes[/], [b]hierarchy:stripes[/], [b]hierarchy:rails[/], [b]hierarchy:reduce_bcast[/], [b]hierarchy:line[/] and [b]hierarchy:line_and_back[/] compose over levels, with [b]by=ring[/] behind them by this one on each. May be repeated.",
    ),
]
Ranks = Annotated[
    str,
    typer.Option(
        "--ranks", "-n", metavar="LIST", help="As [b]16[/], [b]100,200[/], or [b]16:4096[/]: doubled from 16 on."
    ),
]
Sizes = Annotated[
    str,
    typer.Option(
        "--sizes",
        "-b",
        "--bytes",
        metavar="LIST",
        help="Bytes of the vector, or of one rank's part, as [b]8,64K[/] or [b]64:1M[/], doubled.",
    ),
]
ProfileFile = Annotated[
    Optional[Path],
    typer.Option(
        "--profile",
        metavar="FILE",
        help="Parameters of the machine. Default: this machine's own, if it has been measured, else an example.",
        show_default=False,
    ),
]
LogP = Annotated[
    Optional[str],
    typer.Option(
        "--logp",
        metavar="o=N,L=N,..",
        help="Instead of a profile: o, os, or, L, g, G, gamma, lambda, in any unit.",
        show_default=False,
    ),
]
Levels = Annotated[
    Optional[str],
    typer.Option(
        "--levels",
        metavar="NAME:N,..",
        help="Domains from the lowest up, as [b]numa:4,node:2,leaf:16[/]: four "
        "ranks to a NUMA node, two of these to a node, 16 of those to a switch.",
        show_default=False,
        callback=site.checked_levels,
    ),
]
Topology = Annotated[
    Optional[Path],
    typer.Option(
        "--topology",
        metavar="FILE",
        help="Switches of the network, as Slurm's topology.conf or lines of [b]NODE SWITCH[/].",
        show_default=False,
        callback=arguments.readable,
    ),
]
PerNode = Annotated[int, typer.Option("--per-node", metavar="N", min=1, help="Ranks on each node of --topology.")]
Root = Annotated[int, typer.Option("--root", metavar="N", min=0, help="Root rank.")]
K = Annotated[
    Optional[str],
    typer.Option(
        "--k",
        metavar="N|best",
        help="Arity, number of chains or radix; [b]best[/]: chains by the model.",
        show_default=False,
    ),
]
Segments = Annotated[int, typer.Option("--segments", metavar="N", min=1, help="Pieces of the vector.")]
Ordered = Annotated[bool, typer.Option("--ordered", help="An operation that does not commute.")]
Json = Annotated[
    Optional[Path],
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write everything as JSON into FILE ([b]-[/]: stdout).",
        show_default=False,
        callback=outputs.writable,
    ),
]


# ---- asking stretto-model ----------------------------------------------------------------------------------------------------


def ask(command: str, profile: Profile, arguments: Sequence[str]) -> str:
    """What stretto-model says; its errors are ours."""
    with working("building the model"):
        program = build.ensure_built("release", ["stretto-model"]) / "stretto-model"
    with (
        tempfile.NamedTemporaryFile("w", suffix=".costs") as costs,
        tempfile.TemporaryFile("w+") as answer,
        working("timing schedules"),
    ):
        costs.write(profile.costs())
        costs.flush()
        said = []
        with child(
            [str(program), command, "--costs", costs.name, *arguments], stdout=answer, stderr=subprocess.PIPE, text=True
        ) as timer:
            for line in timer.stderr:
                if line.startswith("note "):
                    note(line[5:].strip())
                else:
                    said.append(line)
        if timer.returncode:
            fail("".join(said).strip() or f"stretto-model ended with status {timer.returncode}")
        answer.seek(0)
        return answer.read()


def ask_json(command: str, profile: Profile, arguments: Sequence[str]) -> dict[str, Any]:
    return jsons.loads(ask(command, profile, arguments))


def load(profile: Path | None, logp: str | None) -> Profile:
    if profile and logp:
        fail("--profile or --logp, not both")
    return profiles.logp(logp) if logp is not None else profiles.load(profile)


def numbers(text: str, name: str, least: int = 0) -> list[int]:
    """`16`, `100,200`, `16:4096` (doubled); sizes with K, M, G."""
    result: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low = parse_size(first)
            high = parse_size(last) if colon else low
        except (ValueError, typer.BadParameter):
            fail(f"{name}: '{part}': a number, a list or FIRST:LAST expected")
        if high < low or (low == 0 and high > 0):
            fail(f"{name}: '{part}': the first must be positive and not above the last")
        if low < least:
            fail(f"{name}: '{part}': {least} or more")
        while low < high:
            result.append(low)
            low *= 2
        result.append(high)
    return result


def only(found: list[int], name: str, command: str) -> int:
    """Of a list that some commands cannot take."""
    if len(found) != 1:
        fail(f"{command}: one number in {name}, not {len(found)}")
    return found[0]


MOST_SEGMENTS = 0xFFFF  # that the library makes


def checked_parameters(k: str | None, segments: int, ranks: Sequence[int], most_units: int, unit: str = "byte") -> int:
    """Whether k makes sense; so many segments as there can be."""
    if k is not None and k != "best" and not (k.isdecimal() and 1 <= int(k) <= max(ranks)):
        fail(f"--k: '{k}': a number from 1 to that of ranks, {max(ranks)}, or best")
    most = min(max(most_units, 1), MOST_SEGMENTS)
    if segments > most:
        note(
            f"--segments {segments}: there are no more than {most}"
            + (f", of a {unit} each" if most < MOST_SEGMENTS else "")
        )
    return min(segments, most)


def call_of(
    op: str,
    algorithms: Iterable[str],
    ranks: str,
    bytes_: str,
    *,
    root: int = 0,
    k: str | None = None,
    segments: int = 1,
    ordered: bool = False,
    alone: str | None = None,
) -> list[str]:
    """What the options of a command ask for; `alone`: of a command that takes one number of ranks and one length."""
    counts, sizes = numbers(ranks, "--ranks", 1), numbers(bytes_, "--sizes")
    if alone:
        only(counts, "--ranks", alone)
        only(sizes, "--bytes", alone)
    segments = checked_parameters(k, segments, counts, max(sizes))
    if root >= min(counts):
        fail(f"--root {root}: there are ranks 0 to {min(counts) - 1}")
    return shape(
        op, arguments.algorithm_names(op, algorithms), counts, sizes, root=root, k=k, segments=segments, ordered=ordered
    )


def shape(
    op: str,
    algorithms: Iterable[str],
    ranks: Sequence[int],
    sizes: Sequence[int],
    *,
    root: int = 0,
    k: str | None = None,
    segments: int = 1,
    ordered: bool = False,
) -> list[str]:
    line = [
        "--op",
        op,
        "--ranks",
        ",".join(map(str, ranks)),
        "--bytes",
        ",".join(map(str, sizes)),
        "--root",
        str(root),
        "--segments",
        str(segments),
    ]
    for name in algorithms:
        line += ["--algorithm", name]
    return line + (["--k", k] if k else []) + (["--ordered"] if ordered else [])


def place(levels: str | None, topology: Path | None, per_node: int) -> list[str]:
    if levels and topology:
        fail("--levels or --topology, not both")
    if topology:
        return ["--network", str(topology), "--per-node", str(per_node)]
    return ["--levels", levels] if levels else []


# ---- saying it ----------------------------------------------------------------------------------------------------------------

PARTS = ("latency", "bytes", "overhead", "reduce", "copy", "gap", "port", "crowd")


def print_time(time: float, unit: str = "ns") -> str:
    """Three digits, as 1.25 us; a plain number where the unit is the user's own."""
    if unit != "ns":
        return f"{time:.6g}"
    for limit, factor, name in ((1e3, 1, "ns"), (1e6, 1e-3, "us"), (1e9, 1e-6, "ms")):
        if time < limit * 0.9995:
            return f"{time * factor:.3g} {name}"
    return f"{time * 1e-9:.3g} s"


def print_parts(critical: dict[str, float], most: int = 3) -> str:
    """Where the time of a critical path went, the biggest parts first."""
    total = sum(critical[part] for part in PARTS) or 1
    parts = sorted(PARTS, key=lambda part: -critical[part])[:most]
    return ", ".join(f"{part} {critical[part] / total:.0%}" for part in parts if critical[part] / total >= 0.005)


def call_text(op: str, bytes_: int) -> str:
    """A barrier has no length."""
    return op if op == "barrier" else f"{op}, {print_size(bytes_)} bytes"


def ranks_text(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def say_profile(profile: Profile) -> None:
    name = profile.about.get("name", "without a name")
    if profile.is_example:
        out.print(
            f"profile: an example, not this machine: {name}; `stretto model measure` writes this machine's own",
            markup=False,
            style="yellow",
        )
    else:
        out.print(f"profile: {name}", markup=False, style="dim")


@app.command()
def predict(
    op: Op,
    algorithm: Algorithms,
    ranks: Ranks = "16",
    bytes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    root: Root = 0,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
    per_rank: Annotated[bool, typer.Option("--per-rank", help="Start, end and idle time of every rank.")] = False,
    json: Json = None,
) -> None:
    """The time of a collective, what it goes into, and with --per-rank what each rank does meanwhile."""
    costs = load(profile, logp)
    line = call_of(op, algorithm, ranks, bytes, root=root, k=k, segments=segments, ordered=ordered)
    report = ask_json(
        "predict", costs, [*line, *place(levels, topology, per_node), *(["--per-rank"] if per_rank else [])]
    )
    write_json(json, "model.predict", {"profile": costs.origin, **report})
    if json and str(json) == "-":
        return
    say_profile(costs)
    out.print(prediction_table(op, report["predictions"], costs.unit))
    if per_rank:
        for each in report["predictions"]:
            out.print(rank_table(op, each, costs.unit))


def prediction_table(op: str, predictions: list[dict[str, Any]], unit: str) -> Table:
    table = Table(title=op, title_justify="left", box=None, pad_edge=False)
    for name, justify in (
        ("algorithm", "left"),
        ("ranks", "right"),
        ("bytes", "right"),
        ("time", "right"),
        ("messages", "right"),
        ("critical path", "left"),
        ("mean idle", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for each in predictions:
        mean = each["mean"]
        idle = 1 - mean["busy"] / each["time"] if each["time"] else 0
        table.add_row(
            each["name"],
            str(each["ranks"]),
            "-" if op == "barrier" else print_size(each["bytes"]),
            print_time(each["time"], unit),
            str(each["critical"]["messages"]),
            print_parts(each["critical"]),
            f"{max(idle, 0):.0%}",
        )
    return table


def rank_table(op: str, prediction: dict[str, Any], unit: str, most: int = 64) -> Table:
    title = f"{call_text(op, prediction['bytes'])}, {prediction['name']}, {ranks_text(prediction['ranks'])}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("rank", "end", "busy", "waits: partner", "wire", "port", "gap", "crowd"):
        table.add_column(name, justify="right")
    for each in prediction["per_rank"][:most]:
        idle = [
            print_time(each["idle"][cause], unit) if each["idle"][cause] else "-"
            for cause in ("partner", "wire", "port", "gap", "crowd")
        ]
        table.add_row(str(each["rank"]), print_time(each["end"], unit), print_time(each["busy"], unit), *idle)
    if len(prediction["per_rank"]) > most:
        table.caption = f"{len(prediction['per_rank']) - most} more: --json has them all"
    return table


@app.command()
def scale(
    op: Op,
    algorithm: Algorithms,
    ranks: Ranks = "2:4096",
    bytes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot", metavar="FILE", help="Draw it (PNG, SVG or PDF).", show_default=False, callback=outputs.drawable
        ),
    ] = None,
    json: Json = None,
) -> None:
    """How the time grows with the number of ranks: fitted with log P, sqrt P and P."""
    from stretto import model_plot

    costs = load(profile, logp)
    size = only(numbers(bytes, "--sizes"), "--bytes", "scale")
    line = call_of(op, algorithm, ranks, bytes, k=k, segments=segments, ordered=ordered)
    report = ask_json("predict", costs, [*line, *place(levels, topology, per_node)])
    curves = model_plot.curves_of(report["predictions"])
    write_json(
        json, "model.scale", {"profile": costs.origin, "op": op, "bytes": size, "unit": costs.unit, "curves": curves}
    )
    if plot:
        model_plot.plot_scale(curves, call_text(op, size), costs, plot)
    if json and str(json) == "-":
        return
    say_profile(costs)
    table = Table(title=call_text(op, size), title_justify="left", box=None, pad_edge=False)
    for name in ("algorithm", "growth", "formula", "off by at most", f"at P = {curves[0]['ranks'][-1]}"):
        table.add_column(name)
    for curve in curves:
        fit = curve["fit"]
        growth = (fit["growth"], model_plot.formula(fit, costs.unit), f"{fit['worst']:.0%}") if fit else ("-", "-", "-")
        table.add_row(curve["algorithm"], *growth, print_time(curve["times"][-1], costs.unit))
    out.print(table)
    if not all(curve["fit"] for curve in curves):
        note(why_no_growth(curves[0]["ranks"]))


def why_no_growth(ranks: Sequence[int]) -> str:
    from stretto import model_plot

    if len(set(ranks)) < model_plot.LEAST_POINTS:
        return f"to say how the time grows takes {model_plot.LEAST_POINTS} numbers of ranks, as -n 2:4096"
    return "how the time grows cannot be said where a call takes none"


@app.command()
def chains(
    ranks: Ranks = "100,200,300,400",
    bytes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw time against the number of chains.",
            show_default=False,
            callback=outputs.drawable,
        ),
    ] = None,
    json: Json = None,
) -> None:
    """A Reduce by k chains for every k: estimate, timer, the best k and the practical rule's."""
    from stretto import model_plot

    costs = load(profile, logp)
    counts, sizes = numbers(ranks, "--ranks", 2), numbers(bytes, "--sizes")
    if plot and min(counts) < model_plot.LEAST_CHAINED:
        fail(f"chains: to draw it takes {model_plot.LEAST_CHAINED} ranks or more")
    report = ask_json(
        "chains",
        costs,
        ["--ranks", ",".join(map(str, counts)), "--bytes", ",".join(map(str, sizes)), *place(levels, None, 1)],
    )
    write_json(json, "model.chains", {"profile": costs.origin, **report})
    if plot:
        if not all(p["time"] for curve in report["curves"] for p in curve["points"]):
            fail("chains: nothing to draw: by this profile some of them take no time")
        (model_plot.plot_chains if len(sizes) == 1 else model_plot.plot_chains_of_lengths)(
            report["curves"], costs, plot
        )
    if json and str(json) == "-":
        return
    say_profile(costs)
    table = Table(title="reduce, k chains", title_justify="left", box=None, pad_edge=False)
    for name in (
        "ranks",
        "bytes",
        "best k",
        "time",
        "estimate's best k",
        "practical k",
        "time",
        "of the best",
        "staggered chains",
    ):
        table.add_column(name, justify="right")
    for curve in report["curves"]:
        times = {p["k"]: p["time"] for p in curve["points"]}
        best, practical = min(times, key=lambda k: times[k]), curve["practical_k"]
        table.add_row(
            str(curve["ranks"]),
            print_size(curve["bytes"]),
            str(best),
            print_time(times[best], costs.unit),
            str(curve["estimate_best_k"]),
            str(practical),
            print_time(times[practical], costs.unit),
            f"{times[practical] / times[best]:.2f}" if times[best] else "-",
            "-" if levels else print_time(curve["staggered"], costs.unit),
        )
    out.print(table)


@app.command()
def diagram(
    op: Op,
    algorithm: Algorithms,
    plot: Annotated[Path, typer.Option("--plot", metavar="FILE", help="SVG, PNG or PDF.", callback=outputs.drawable)],
    ranks: Ranks = "16",
    bytes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    root: Root = 0,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
    title: Annotated[
        Optional[str], typer.Option("--title", metavar="TEXT", help="Instead of what is drawn.", show_default=False)
    ] = None,
) -> None:
    """Draw who does what when: the space-time diagram of a collective, with its critical path."""
    from stretto import diagram as diagrams

    costs = load(profile, logp)
    line = call_of(op, algorithm, ranks, bytes, root=root, k=k, segments=segments, ordered=ordered, alone="diagram")
    if (number := numbers(ranks, "--ranks")[0]) > diagrams.MOST_RANKS:
        fail(
            f"diagram: {number} ranks: more than {diagrams.MOST_RANKS} cannot be told apart in a picture; `predict --per-rank` lists them"
        )
    job = ask_json("trace", costs, [*line, *place(levels, topology, per_node)])
    diagrams.draw(
        job,
        costs,
        plot,
        title
        or f"{call_text(op, numbers(bytes, '--sizes')[0])}, {job['name']}: {ranks_text(job['ranks'])}, {print_time(job['time'], costs.unit)}",
    )


@app.command()
def export(
    op: Op,
    algorithm: Algorithms,
    goal: Annotated[
        Path,
        typer.Option(
            "--goal",
            metavar="FILE",
            help="GOAL text, for LogGOPSim and its kin ([b]-[/]: stdout).",
            callback=outputs.writable,
        ),
    ],
    ranks: Ranks = "16",
    bytes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    root: Root = 0,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
) -> None:
    """Write the schedules of all ranks for other simulators."""
    line = call_of(op, algorithm, ranks, bytes, root=root, k=k, segments=segments, ordered=ordered, alone="export")
    text = ask("goal", load(profile, logp), [*line, *place(levels, topology, per_node)])
    write_text(goal, text)


RULE_FORMATS = ("classic", "json", "mpich", "stretto")


@app.command("rules")
def write_rules(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="The file to write ([b]-[/]: stdout).", callback=outputs.writable),
    ],
    op: Annotated[
        Optional[list[str]],
        typer.Option("--op", metavar="LIST", help="Only these collectives, with commas.", show_default=False),
    ] = None,
    ranks: Ranks = "2:64",
    bytes: Sizes = "8,64,512,4K,32K,256K,1M",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="[b]classic[/]: Open MPI's dynamic rules. [b]json[/]: the same, of Open MPI 6. "
            "[b]mpich[/]: MPICH's selection tree. [b]stretto[/]: for STRETTO_RULES.",
        ),
    ] = "classic",
    mpi: Annotated[
        Optional[str],
        typer.Option("--mpi", metavar="MPI", help="The MPICH in whose tree the rules are written.", show_default=False),
    ] = None,
) -> None:
    """Write the choices as rules for an MPI's own collectives, or for the library."""
    from stretto import choices, measured, rules, rules_mpich

    if format not in RULE_FORMATS:
        fail(f"--format: one of {', '.join(RULE_FORMATS)}")
    known = list(rules_mpich.ALGORITHMS if format == "mpich" else rules.COLLECTIVES)
    ops = arguments.checked_ops(op or [], known)
    counts, sizes = numbers(ranks, "--ranks", 2), numbers(bytes, "--sizes")
    costs = load(profile, logp)
    base = mpich_tree(mpi) if format == "mpich" else {}
    calls: dict[str, list[dict[str, Any]]] = {}
    with working("timing candidates"):
        for name in ops or known:
            found = ask_json("explain", costs, [*shape(name, [], counts, sizes), *place(levels, None, 1)])["calls"]
            calls[name] = [
                {**call, "candidates": measured.corrected(costs.measured, name, {**call, "place": levels or ""})}
                for call in found
            ]
    if format == "mpich":
        return write_text(to, rules_mpich.write(base, calls))
    about = f"by the model, {'an example profile, ' if costs.is_example else ''}{costs.about.get('name', '')}"
    if format == "stretto":
        return write_text(
            to,
            choices.whole_text(
                (
                    each
                    for name, of_op in calls.items()
                    for each in choices.by_model(name, of_op, costs.measured, levels or "")
                ),
                about,
            ),
        )
    chosen = {name: rules.rules_of(name, of_op) for name, of_op in calls.items()}
    write_text(to, rules.as_json(chosen) if format == "json" else rules.classic(chosen, about))


def mpich_tree(mpi: str | None) -> dict[str, Any]:
    from stretto import launch, rules_mpich

    found = launch.choose(mpi or "mpich")
    if found.kind != "mpich":
        fail(f"{found.title} reads no selection trees of MPICH's")
    try:
        return rules_mpich.built_in_tree(found.library)
    except (OSError, ValueError) as error:
        fail(f"{found.title}: {error}")


def write_text(to: Path, text: str) -> None:
    if str(to) == "-":
        print(text, end="")
        return
    try:
        to.write_text(text)
    except OSError as error:
        fail(f"cannot write {to}: {error.strerror}")


@app.command("bench")
def benchmark(json: Json = None) -> None:
    """How fast the timer is: big jobs, events per second, memory."""
    report = ask_json("benchmark", profiles.load(profiles.EXAMPLE), [])
    write_json(json, "model.bench", report)
    if json and str(json) == "-":
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
