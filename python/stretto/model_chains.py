# SPDX-License-Identifier: BSD-3-Clause
"""model best-k: a Reduce by k chains for every k, executed, beside other algorithms. Is the model's k the best one?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import fit, model, model_measure, profile as profiles, site
from stretto.bench import print_size
from stretto.cluster import simulate
from stretto.cluster.simulate import SELECTORS, Simulation
from stretto.console import fail, out, working, write_json
from stretto.profile import Profile

OTHERS = ("binomial", "binary", "flat")
OVERHEAD_US = 0.5
EAGER_BYTES = 64 << 10

Times = dict[str, float]  # ns by candidate: "kchain:7", "binomial", "mpi"
Executed = Callable[[int, Sequence[int]], Times]  # bytes, every k to try


# ---- on a simulated cluster --------------------------------------------------------------------------------------------------


def simulated_profile(simulation: Simulation, sizes: Sequence[int]) -> Profile:
    """Parameters of the simulated network, exact at these lengths: of one message, and of several that follow each other."""
    network = simulation.network
    overhead = network.overhead_us * 1e3
    peers = {"node": 1, "leaf": network.per_node, "top": network.ranks - 1}
    levels = [*(["node"] if network.per_node > 1 else []), *(["leaf"] if network.per_leaf > 1 else []), "top"]
    paths, last = [], 0.0
    for level in levels:
        for size in sorted(sizes):
            found = simulation.times([f"{name}:{size}:exercise:1:{peers[level]}" for name in ("oneway", "burst")])
            if found is None:
                fail("the simulation of a single message took too long: --patience")
            once, burst = (1e9 * time for time in found)
            interval = (burst - once) / (fit.BURST - 1)
            byte_gap = interval / size if interval > 1.01 * overhead else 0.0
            paths.append(
                {
                    "level": level,
                    "from_bytes": size if size > min(sizes) else 0,
                    "latency": max(once - 2 * overhead - byte_gap * (size - 1), 0.0),
                    "send_overhead": overhead,
                    "receive_overhead": overhead,
                    "gap": 0.0,
                    "byte_gap": byte_gap,
                }
            )
            last = byte_gap
    nothing = [{"from_bytes": 0, "fixed": 0.0, "per_byte": 0.0}]
    ports = [{"level": "node", "gap": 0.0, "byte_gap": last, "burst_bytes": 0}] if network.per_node > 1 else []
    return Profile(
        {"name": f"simulated, {network.nodes} nodes of {network.per_node} ranks"},
        paths,
        nothing,
        nothing,
        ports,
        port_rule="fair",
    )


def by_simulation(simulation: Simulation) -> Executed:
    def executed(size: int, ks: Sequence[int]) -> Times:
        names = [f"kchain:{k}" for k in ks] + list(OTHERS)
        jobs = [f"reduce:{size}:{name.partition(':')[0]}:1:{name.partition(':')[2] or 0}" for name in names]
        times = simulation.times([*jobs, f"reduce:{size}:mpi:1:0"], SELECTORS[0])
        other = simulation.times([f"reduce:{size}:mpi:1:0"], SELECTORS[1])
        if times is None or other is None:
            fail(f"the simulations of {print_size(size)} bytes took too long: --patience")
        mpi = {f"mpi ({SELECTORS[0]})": times.pop(), f"mpi ({SELECTORS[1]})": other[0]}
        return {name: 1e9 * time for name, time in [*zip(names, times), *mpi.items()]}

    return executed


# ---- on a cluster of namespaces ----------------------------------------------------------------------------------------------


def by_cluster(where: site.Site, ranks: int, repeat: int) -> Executed:
    program = model_measure.program(where.mpi)

    def executed(size: int, ks: Sequence[int]) -> Times:
        names = [f"kchain:{k}" for k in ks] + [*OTHERS, "mpi"]
        jobs = [
            model_measure.job_text("reduce", name.partition(":")[0], size, int(name.partition(":")[2] or 0), 1)
            for name in names
        ]
        with site.plain_errors():
            rows = where.timed(ranks, program, where.crowd(ranks), repeat, jobs, timeout=900)
        return {name: row["time"] for name, row in zip(names, rows)}

    return executed


# ---- judging -----------------------------------------------------------------------------------------------------------------


def judged(size: int, points: Sequence[dict[str, Any]], times: Times) -> dict[str, Any]:
    """The model's k, of those tried the one that it gives the least time, against the best."""
    of_k = {int(name.partition(":")[2]): time for name, time in times.items() if name.startswith("kchain:")}
    by_model = {p["k"]: p["time"] for p in points if p["k"] in of_k}
    chosen, best = min(by_model, key=lambda k: by_model[k]), min(of_k, key=lambda k: of_k[k])
    return {
        "bytes": size,
        "model_k": chosen,
        "model_k_time": of_k[chosen],
        "best_k": best,
        "best_time": of_k[best],
        "ratio": of_k[chosen] / of_k[best],
        "others": {name: time for name, time in times.items() if not name.startswith("kchain:")},
        "by_k": of_k,
        "by_model": by_model,
    }


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    others = list(rows[0]["others"])
    for name in ("bytes", "model's k", "its time", "best k", "its time", "model's / best", *others):
        table.add_column(name, justify="right")
    for r in rows:
        table.add_row(
            print_size(r["bytes"]),
            str(r["model_k"]),
            model.print_time(r["model_k_time"]),
            str(r["best_k"]),
            model.print_time(r["best_time"]),
            f"{r['ratio']:.2f}",
            *(model.print_time(r["others"][name]) for name in others),
        )
    out.print(table)


@model.app.command("best-k")
def best_k(
    simulated: Annotated[
        Optional[list[str]],
        typer.Option(
            "--simulate",
            metavar="CLUSTER",
            help="Simulated clusters (SimGrid), as [b]stretto cluster simulate[/] has "
            "them: [b]48x1[/], [b]16x8[/]. May be repeated.",
            show_default=False,
        ),
    ] = None,
    cluster: site.ClusterName = None,
    mpi: site.MpiName = None,
    bytes: model.Sizes = "8,8K,8M",
    profile: model.ProfileFile = None,
    ks: Annotated[
        Optional[str],
        typer.Option(
            "--k",
            metavar="LIST",
            help="Only these, as [b]1:64[/], doubled, or [b]1,2,3[/]. Default: every one.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each on a cluster of namespaces.")
    ] = 40,
    patience: Annotated[
        float, typer.Option("--patience", metavar="S", min=1, help="Seconds for the simulations of one length.")
    ] = 600,
    overhead: Annotated[
        float,
        typer.Option(
            "--overhead",
            metavar="US",
            min=0,
            help="Simulated: microseconds of a processor for each message, at either end.",
        ),
    ] = OVERHEAD_US,
    json: model.Json = None,
) -> None:
    """Execute a Reduce by k chains for every k, and other algorithms: is the model's k the best?"""
    if bool(simulated) == bool(cluster):
        fail("best-k: --simulate CLUSTER, or --cluster NAME")
    sizes = model.numbers(bytes, "--sizes")
    if ks:
        model.numbers(ks, "--k", 1)
    networks = [
        replace(simulate.network_of(text), overhead_us=overhead, eager_bytes=EAGER_BYTES) for text in simulated or []
    ]
    if cluster:
        profiles.load(profile, cluster)
    reports = []
    for network in networks:
        with (
            tempfile.TemporaryDirectory(prefix="stretto-simulated-") as folder,
            working(f"simulating {network.ranks} ranks"),
        ):
            simulation = Simulation(network, Path(folder), patience)
            costs = simulated_profile(simulation, sizes)
            rows = tried(costs, network.ranks, ["--levels", network.levels], sizes, ks, by_simulation(simulation))
        reports.append(
            {
                "network": asdict(network),
                "ranks": network.ranks,
                "title": f"reduce, {network.nodes} simulated nodes of {network.per_node} ranks",
                "rows": rows,
            }
        )
    if cluster:
        where = site.choose(mpi, cluster)
        assert where.cluster
        ranks = where.cluster.plan.ranks
        with working(f"measuring {where.name}"):
            rows = tried(
                profiles.load(profile, cluster),
                ranks,
                where.placement(ranks),
                sizes,
                ks,
                by_cluster(where, ranks, repeat),
            )
        reports.append(
            {
                "cluster": where.cluster.plan.as_json(),
                "ranks": ranks,
                "title": f"reduce, {where.name}, {ranks} ranks",
                "rows": rows,
            }
        )
    write_json(json, "model.best-k", {"reports": reports})
    if json and str(json) == "-":
        return
    for each in reports:
        show(each["title"], each["rows"])


def tried(
    costs: Profile, ranks: int, place: Sequence[str], sizes: Sequence[int], ks: str | None, executed: Executed
) -> list[dict[str, Any]]:
    curves = model.ask_json("chains", costs, ["--ranks", str(ranks), "--bytes", ",".join(map(str, sizes)), *place])[
        "curves"
    ]
    wanted = [k for k in model.numbers(ks, "--k") if 0 < k < ranks] if ks else list(range(1, ranks))
    return [judged(curve["bytes"], curve["points"], executed(curve["bytes"], wanted)) for curve in curves]
