# SPDX-License-Identifier: BSD-3-Clause
"""Every JSON report of a command names its schema. Slow parts are replaced, and processes of the
tool are forks of this one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stretto.bench import (
    beside_host,
    between_hosts,
    kind,
    locks,
    overlap,
    overlap_pages,
    overlap_programs,
    pagerank,
    pagerank_report,
    program,
)
from stretto.cluster import Plan, jobs, simulated_calls
from stretto.cluster.cluster import Cluster
from stretto.cluster.target import Target
from stretto.commands import demo, doctor, env, run, suites, tune
from stretto.commands.cluster import down, simulate, status
from stretto.commands.cluster import run as cluster_run
from stretto.commands.model import best_k as best_k_command
from stretto.commands.model import calibrate, compare, measure
from stretto.commands.top import command as top
from stretto.commands.top import jobs as top_jobs
from stretto.core import reports
from stretto.demo import graph
from stretto.model import best_k, exercises, node, timer, tuning
from stretto.mpi import Mpi, choosing

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]
LOGP = ("--logp", "o=1,L=2,g=0.5,gamma=0.1")
KIT = ROOT / "tests/fixtures/kit"
CALIBRATED = {"op": "barrier", "bytes": 0, "loop_us": 1.0}
COUNTED = {
    **{"op": "bcast", "way": "shm:board", "ranks": 2, "bytes": 8, "between": [[1.0]], "loop_us": 1.0, "time_us": 1.0},
    **dict.fromkeys(("line_transfers", "most_readers", "crowded_lines", "socket_transfers"), 1),
}
CALL = ("--op", "bcast", "-a", "binomial")
PLAYED = Mpi(
    "openmpi",
    "openmpi",
    "4.1.4",
    Path("/opt"),
    Path("/opt/bin/mpiexec"),
    None,
    None,
    None,
    Path("/opt/lib/libmpi.so.40"),
    "system",
)

LINES = {
    "bench": ("bench", "--op", "bcast"),
    "cluster.bench": ("cluster", "bench", "--op", "bcast", "--map", "slot"),
    "cluster.run": ("cluster", "run", "--without", "--", "true"),
    "cluster.simulate": ("cluster", "simulate", "4x2", "--op", "bcast", "--sizes", "8"),
    "cluster.status": ("cluster", "status"),
    "demo": ("demo", "--only", "pagerank", "--no-bench"),
    "doctor": ("doctor",),
    "explain": ("explain", "--op", "bcast", *LOGP),
    "info": ("info",),
    "kit.compare": ("kit", "compare", KIT / "measured.json", "--model", KIT / "node.json"),
    "kv.bench": ("bench", "--suite", "kv"),
    "kind": ("bench", "--suite", "kind", "-n", "2"),
    "model.bench": ("model", "bench"),
    "model.best-k": ("model", "best-k", "--simulate", "4x1"),
    "model.chains": ("model", "chains", "-n", "4", *LOGP),
    "model.compare": ("model", "compare", *CALL, "--sizes", "8"),
    "model.job": ("model", "job", ROOT / "tests/fixtures/job/two.stretto"),
    "model.measure": ("model", "measure", "--force"),
    "model.node": ("model", "node", "-n", "2", "--op", "bcast"),
    "model.node.calibrate": ("model", "node", "--calibrate"),
    "model.predict": ("model", "predict", *CALL, *LOGP),
    "model.scale": ("model", "scale", *CALL, "-n", "2:8", *LOGP),
    "neighbors": ("bench", "--suite", "neighbors"),
    "nonblocking": ("bench", "--suite", "nonblocking"),
    "overlap.bench": ("bench", "--suite", "overlap", "--op", "alltoall"),
    "overlap.pages": ("bench", "--suite", "pages"),
    "overlap.programs": ("bench", "--suite", "programs"),
    "papers": ("bench", "--suite", "paper", "--budget", "0"),
    "overlap.report": ("report", "--overlap", "--from", ROOT / "tests/fixtures/overlap_stats.json"),
    "top": ("top", "--once"),
    "top.stacks": ("top", "--stacks", "1"),
    "topology": ("info", "--topology", "-n", "1"),
    "tune": ("tune", "--op", "bcast", "--sizes", "8"),
    "tune.job": ("tune", "--job", ROOT / "tests/fixtures/job/two.stretto", "-o", "/dev/null"),
    "tune.judge": ("tune", "--judge", "--op", "bcast"),
    "verify": ("verify", "--max-ranks", "2", "--hierarchies", "0"),
}


def commands_with_json(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if any("--json" in parameter.opts for parameter in command.params):
        yield name
    for each, of_group in getattr(command, "commands", {}).items():
        yield from commands_with_json(of_group, (*name, each))
    for typed, part in getattr(command, "parts", {}).items():
        yield from commands_with_json(part, (*name, *typed.split()))


def test_all_commands_that_write_json_are_here(command_tree: Any) -> None:
    """`run` has the library write its statistics (test_launch.py). `kit measure` always writes its
    file (test_kit.py)."""
    lines = [tuple(map(str, line)) for line in LINES.values()]
    found = set(commands_with_json(command_tree)) - {("run",), ("kit", "measure")}
    assert {name for name in found if not any(line[: len(name)] == name for line in lines)} == set()
    assert set(LINES) | {"stats", "kit"} == set(reports.SCHEMAS)


def test_the_page_lists_all_schemas() -> None:
    listed = re.findall(r"^\| `stretto\.([\w.-]+)/(\d+)` ", (ROOT / "docs/json.md").read_text(), re.MULTILINE)
    assert {name: int(version) for name, version in listed} == reports.SCHEMAS and len(listed) == len(reports.SCHEMAS)
    assert f"stretto.stats/{reports.SCHEMAS['stats']}" in (ROOT / "src/observe/stats_json.cpp").read_text()


def row(**more: Any) -> dict[str, Any]:
    return {
        "np": 2,
        "op": "bcast",
        "bytes": 64,
        "ours_us": 1.0,
        "mpi_us": 2.0,
        "bound_us": 1.0,
        "path": "inline",
        "flag_ns": 50.0,
        **more,
    }


class PlayedTarget(Target):
    def timed(
        self, ranks: int, program: Path, options: Any, repeat: int, texts: Any, timeout: float
    ) -> list[dict[str, Any]]:
        return [{"time": 1000.0, "low": 990.0, "high": 1010.0, "first": 500.0} for _ in texts]


class PlayedRun:
    stdout = ""

    def __init__(self, *_: Any) -> None:
        pass

    def checksums(self) -> set[str]:
        return {"1"}


def nothing(*_: Any, **__: Any) -> None:
    pass


EXERCISES = ("oneway", "roundtrip", "exchange", "burst", "late", "send", "combine", "local", "nothing")


def timed_exercises(*_: Any) -> list[dict[str, Any]]:
    return [
        {"bytes": n, **{name: [100.0 + n * 0.1, 1.0] for name in EXERCISES}} for n in exercises.numbers_of_bytes(4096)
    ]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands build, start and look at is played."""

    def play(where: Any, **names: Any) -> None:
        for name, value in names.items():
            monkeypatch.setattr(where, name, value)

    play(choosing, choose=lambda *_, **__: PLAYED, mpi_of=nothing)
    for command in (run, demo, doctor, cluster_run, env, suites.overlap, suites.pages, suites.programs):
        play(command, library_for=lambda abi: Path("/x.so"))
    play_programs(play)
    play_models(play)
    play_clusters(play)


EVENTS = [{"event": "plan", "np": 2, "preloaded": True}, {"event": "row", **row()}, {"event": "done"}]


def play_programs(play: Callable[..., None]) -> None:
    play(program, run_all=lambda *_: [EVENTS])
    play(pagerank, compile_pagerank=nothing, Run=PlayedRun, measure=nothing)
    play(pagerank_report, show=nothing, conclude=nothing)
    play(demo, draw=nothing)
    play(graph, library_for=lambda abi: Path("/x.so"))
    times = {"mpi_ms": 2.0, "stretto_ms": 1.0, "ratios": [0.5]}
    play(pagerank, summarise=lambda runs: {"total": times, "collectives": times})
    play(doctor, examine=lambda *_: iter([doctor.Verdict(doctor.GOOD, "x", "works")]))
    play(locks, run_program=lambda *_: (0, {"checks": [], "samples": []}))
    play(
        top_jobs,
        looker=lambda: "",
        choose=lambda *_: [{"job": "1", "ranks": 1, "host": "h", "version": "0", "command": "c", "pid": 1}],
        frames=nothing,
    )
    play(top.stacks, show=lambda *_: [])
    play(
        top.figures,
        snapshot=lambda frames: {"seconds": 1.0, "rows": [], "held_up": [], "contradictions": [], "cycles": []},
    )
    play(kind, measure=lambda *_: [])
    play(beside_host, measure=lambda *_: [])


def play_models(play: Callable[..., None]) -> None:
    for command in (measure, compare, tune, best_k_command):
        play(command, choose_target=lambda *_: PlayedTarget(PLAYED))
    play(exercises, program=lambda mpi: Path("/x"), exercises=timed_exercises)
    play(
        tuning, measurer=lambda *_: lambda ranks, jobs: iter([{"time": 100.0, "low": 90.0, "high": 110.0}] * len(jobs))
    )
    play(node, program=lambda *_: Path("/x"), run=lambda *_: [COUNTED])
    play(calibrate, measure=lambda *_: {"exchange_ns": 1.0, "flag_ns": 1.0, "calls": [CALIBRATED]})
    play(simulate, Simulation=lambda *_: SimpleNamespace(key=lambda: "", stop=nothing))
    play(
        simulated_calls, measure=lambda *_: lambda: [simulated_calls.Result("bcast", 8, 1.0, "binomial:1:0", 2.0, 2.0)]
    )
    play(best_k_command, Simulation=lambda *_: None)
    play(best_k, simulated_profile=nothing, tried=lambda *_: [])


def play_clusters(play: Callable[..., None]) -> None:
    plan = Plan("default", 1, 1, 2)
    cluster = SimpleNamespace(plan=plan, links=dict, network_file="x", directory=Path("/"), shared=Path("/"))
    for command in (down, status, cluster_run):
        play(command, why_not=nothing)
    play(Cluster, find=classmethod(lambda cls, name="default": cluster))
    play(status, report=lambda of: {"network_file": "x", "hosts": [], "links": []})
    play(cluster_run, attend=lambda *_: 0, links_report=lambda *_: [])
    play(jobs, command=lambda *_: ["true"], start=nothing)
    play(overlap, runner=nothing, measure=lambda *_: {})
    play(overlap_pages, measure=lambda *_: [])
    play(overlap_programs, runner=nothing, measure=lambda *_: [])
    play(between_hosts, measure=lambda *_: {("slot", "tuned"): [EVENTS]})


@pytest.mark.parametrize("schema", LINES)
def test_every_json_has_its_schema(
    schema: str, played: None, stretto: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    if schema == "model.bench":
        monkeypatch.setattr(timer, "ask_json", lambda *_: {"runs": []})
    if schema == "tune.judge":
        assert stretto(*LINES["tune"], env=env).returncode == 0
    words, file = LINES[schema], tmp_path / "x.json"
    cut = words.index("--") if "--" in words else len(words)
    to_stdout = schema == "model.best-k"  # whose table would have no rows
    done = stretto(*words[:cut], "--json", "-" if to_stdout else file, *words[cut:], env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout if to_stdout else file.read_text())
    assert list(found)[0] == "schema" and found["schema"] == f"stretto.{schema}/{reports.SCHEMAS[schema]}"
