# SPDX-License-Identifier: BSD-3-Clause
"""Executes a Reduce by k chains for every k, beside other algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto.cluster.simulated_calls import SELECTORS
from stretto.cluster.simulation import Simulation
from stretto.cluster.target import Target, plain_errors
from stretto.core.console import fail
from stretto.core.units import format_size
from stretto.model import exercises, fit, timer
from stretto.model.profile import Profile

OTHERS = ("binomial", "binary", "flat")
OVERHEAD_US = 0.5
EAGER_BYTES = 64 << 10

Times = dict[str, float]  # ns by candidate: "kchain:7", "binomial", "mpi"
Executed = Callable[[int, Sequence[int]], Times]  # arguments: bytes, every k to try


# ---- on a simulated cluster ----------------------------------------------------------------------


def simulated_profile(simulation: Simulation, sizes: Sequence[int]) -> Profile:
    """Parameters of the simulated network, exact at these lengths, for one message and for several
    that follow each other."""
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
    """Executes on a simulated cluster."""

    def executed(size: int, ks: Sequence[int]) -> Times:
        names = [f"kchain:{k}" for k in ks] + list(OTHERS)
        jobs = [f"reduce:{size}:{name.partition(':')[0]}:1:{name.partition(':')[2] or 0}" for name in names]
        times = simulation.times([*jobs, f"reduce:{size}:mpi:1:0"], SELECTORS[0])
        other = simulation.times([f"reduce:{size}:mpi:1:0"], SELECTORS[1])
        if times is None or other is None:
            fail(f"the simulations of {format_size(size)} bytes took too long: --patience")
        mpi = {f"mpi ({SELECTORS[0]})": times.pop(), f"mpi ({SELECTORS[1]})": other[0]}
        return {name: 1e9 * time for name, time in [*zip(names, times), *mpi.items()]}

    return executed


# ---- on a cluster of namespaces ------------------------------------------------------------------


def by_cluster(target: Target, ranks: int, repeat: int) -> Executed:
    """Executes on a cluster of namespaces."""
    program = exercises.program(target.mpi)

    def executed(size: int, ks: Sequence[int]) -> Times:
        names = [f"kchain:{k}" for k in ks] + [*OTHERS, "mpi"]
        jobs = [
            exercises.job_text("reduce", name.partition(":")[0], size, int(name.partition(":")[2] or 0), 1)
            for name in names
        ]
        with plain_errors():
            rows = target.timed(ranks, program, target.crowd(ranks), repeat, jobs, timeout=900)
        return {name: row["time"] for name, row in zip(names, rows)}

    return executed


# ---- judging -------------------------------------------------------------------------------------


def judged(size: int, points: Sequence[dict[str, Any]], times: Times) -> dict[str, Any]:
    """The model's k, which has the least predicted time of those tried, beside the best k."""
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


def tried(
    costs: Profile, ranks: int, place: Sequence[str], sizes: Sequence[int], ks: Sequence[int] | None, executed: Executed
) -> list[dict[str, Any]]:
    """The results for every length. `ks` None: every k."""
    curves = timer.ask_json("chains", costs, ["--ranks", str(ranks), "--bytes", ",".join(map(str, sizes)), *place])[
        "curves"
    ]
    wanted = [k for k in ks if k < ranks] if ks else list(range(1, ranks))
    return [judged(curve["bytes"], curve["points"], executed(curve["bytes"], wanted)) for curve in curves]
