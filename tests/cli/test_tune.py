# SPDX-License-Identifier: BSD-3-Clause
"""tune: what it measures, what it leaves out, and that it may be stopped anywhere. A class here
takes the place of an MPI."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
PREDICTED = {"ring": 100.0, "bruck": 110.0, "recursive_doubling": 125.0, "linear": 180.0, "twin": 125.0}


def call(
    bytes_: int = 64, predicted: dict[str, float] | None = None, ranks: int = 4, op: str = "allgather", place: str = ""
) -> dict[str, Any]:
    candidates = [
        {"algorithm": n, "k": 0, "segments": 1, "name": n, "time": t} for n, t in (predicted or PREDICTED).items()
    ]
    return {
        "op": op,
        "ranks": ranks,
        "place": place,
        "bytes": bytes_,
        "candidates": sorted(candidates, key=lambda c: c["time"]),
    }


class Machine:
    """Takes the times that it is given, and 999 for all else, such as the built-in choice and the
    MPI's own. It can be stopped after some measurements."""

    def __init__(self, times: dict[str, float], stop_after: int = 1 << 30) -> None:
        self.times, self.left, self.asked = times, stop_after, []

    def __call__(self, ranks: int, jobs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[dict[str, float]]:
        for of_call, candidate in jobs:
            assert of_call["ranks"] == ranks
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            self.asked.append((of_call["bytes"], candidate["algorithm"]))
            time = self.times.get(candidate["algorithm"], 999.0)
            yield {"time": time, "low": time - 1, "high": time + 1}


def empty() -> Any:
    from stretto.model.profile import Profile

    return Profile({"name": "a test's"}, [{"level": "top", "from_bytes": 0}], [], [])


def run(
    profile: Any,
    machine: Machine,
    calls: list[dict[str, Any]],
    error: float | None = 0.3,
    most: int = 8,
    keep: Callable[[Any], None] = lambda p: None,
) -> None:
    from stretto.model import tuning

    tuning.tune(profile, calls, machine, keep, lambda decided, made: None, error, most)


def test_only_what_may_win_is_measured() -> None:
    """Times are as predicted. Ring, bruck and recursive doubling are within 30%, linear is not. A
    twin is not measured again. The built-in choice and the MPI's own are always measured."""
    machine = Machine(PREDICTED)
    run(empty(), machine, [call()])
    assert [a for _, a in machine.asked] == ["ring", "builtin", "mpi", "bruck", "recursive_doubling"]


@pytest.mark.parametrize("name", ["builtin", "mpi"])
def test_what_serves_calls_anyhow_must_be_beaten(name: str) -> None:
    """85 is too little for a ring of 100, but not for a bruck that may take 30% less than 110."""
    machine, profile = Machine({**PREDICTED, name: 85.0}), empty()
    run(profile, machine, [call()])
    assert [a for _, a in machine.asked] == ["ring", "builtin", "mpi", "bruck"]
    machine = Machine({**PREDICTED, name: 77.0})
    run(empty(), machine, [call()])
    assert [a for _, a in machine.asked] == ["ring", "builtin", "mpi"]


def test_what_is_measured_corrects_what_is_expected() -> None:
    """All take twice as long as predicted: that is no reason to try those that are twice as slow by the model."""
    machine = Machine({n: 2 * t for n, t in PREDICTED.items()})
    run(empty(), machine, [call()])
    assert [a for _, a in machine.asked] == ["ring", "builtin", "mpi", "bruck", "recursive_doubling"]


def test_a_slow_favourite_makes_others_worth_trying() -> None:
    from stretto.rules import measurements

    machine, profile = Machine({**PREDICTED, "ring": 300, "bruck": 120}), empty()
    run(profile, machine, [call()])
    assert {a for _, a in machine.asked} >= {"ring", "bruck", "recursive_doubling"}
    found = measurements.corrected(profile.measured, "allgather", call())
    tried = [c for c in found if c["measured"] is not None]
    assert tried[0]["algorithm"] == "bruck" and tried[-1]["algorithm"] == "ring" and tried[0]["expected"] == 120


def test_certain_calls_cost_little() -> None:
    """Certain: even if the one takes 30% longer than predicted, and the other so much less."""
    machine = Machine({"ring": 120})
    run(empty(), machine, [call(predicted={"ring": 100, "bruck": 170})])
    assert [a for _, a in machine.asked] == ["ring", "builtin", "mpi"]


def test_no_more_than_asked_for() -> None:
    machine = Machine({f"a{i}": 77.0 for i in range(30)})
    run(empty(), machine, [call(predicted={f"a{i}": 100.0 + i for i in range(30)})], most=5)
    assert len(machine.asked) == 7  # with the two that serve calls anyhow


@pytest.mark.parametrize("stop", range(15))
def test_stopped_anywhere_it_goes_on_to_the_same_end(tmp_path: Path, stop: int) -> None:
    """The file is whole whenever it stops, and nothing is measured twice."""
    from stretto.model import profile_file, tuning

    calls = [call(64), call(64, ranks=8), call(65536)]
    whole = Machine(PREDICTED)
    run(reference := empty(), whole, calls)
    assert len(whole.asked) == 15
    path = tmp_path / "p.toml"
    tuning.save(empty(), path)
    machine = Machine(PREDICTED, stop_after=stop)
    with pytest.raises(KeyboardInterrupt):
        run(profile_file.load(path), machine, calls, keep=lambda p: tuning.save(p, path))
    assert len(profile_file.load(path).measured) == stop
    rest = Machine(PREDICTED)
    run(again := profile_file.load(path), rest, calls, keep=lambda p: tuning.save(p, path))
    assert len(rest.asked) == 15 - stop

    def in_order(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(r, sort_keys=True) for r in rows)

    assert in_order(profile_file.load(path).measured) == in_order(again.measured) == in_order(reference.measured)
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_lucky_once_is_not_chosen() -> None:
    """The ring's first time is too good. A candidate that really is faster stays, by as much as it differs in turn."""
    from stretto.model import tuning
    from stretto.rules import stretto_rules

    class Lucky(Machine):
        def __call__(
            self, ranks: int, jobs: Sequence[tuple[dict[str, Any], dict[str, Any]]]
        ) -> Iterator[dict[str, float]]:
            for (of_call, candidate), row in zip(jobs, super().__call__(ranks, jobs)):
                first = self.asked.count((of_call["bytes"], candidate["algorithm"])) == 1
                yield {**row, "time": row["time"] / 2 if candidate["algorithm"] == "ring" and first else row["time"]}

    machine, profile = Lucky({**PREDICTED, "builtin": 80.0, "bruck": 70.0}), empty()
    calls, kept = [call(64), call(512, {"ring": 100.0}), call(64, ranks=8)], []
    run(profile, machine, calls, error=1.0)
    assert {
        stretto_rules.best([r for r in profile.measured if r["bytes"] == bytes_])["algorithm"] for bytes_ in (64, 512)
    } == {"ring"}
    tuning.confirm(profile, calls, machine, lambda p: kept.append(len(p.measured)))
    for bytes_, ranks, chosen, time_ in ((64, 4, "bruck", 70.0), (512, 4, "builtin", 80.0), (64, 8, "bruck", 70.0)):
        best = stretto_rules.best([r for r in profile.measured if (r["bytes"], r["ranks"]) == (bytes_, ranks)])
        assert (best["algorithm"], best["time"]) == (chosen, time_)
    assert kept == [len(profile.measured)] * 2
    asked = len(machine.asked)
    tuning.confirm(empty(), calls, machine, kept.append)
    assert len(machine.asked) == asked


def test_what_was_unlucky_once_is_tried_again() -> None:
    """Ring is close to the built-in choice, which was lucky. In turn, ring is faster in all turns
    but one, and bruck is not. What is far off is not measured again."""
    from stretto.model import tuning
    from stretto.rules import stretto_rules

    class Moody(Machine):
        def __call__(
            self, ranks: int, jobs: Sequence[tuple[dict[str, Any], dict[str, Any]]]
        ) -> Iterator[dict[str, float]]:
            for (of_call, candidate), row in zip(jobs, super().__call__(ranks, jobs)):
                name, times = candidate["algorithm"], self.asked.count((of_call["bytes"], candidate["algorithm"]))
                slow = name == "ring" and times == 3 or name == "bruck" and times in (3, 5, 8, 10)
                yield {
                    **row,
                    "time": 95.0 if name == "builtin" and times == 1 else 3 * row["time"] if slow else row["time"],
                }

    machine, profile = Moody({**PREDICTED, "builtin": 120.0, "linear": 180.0}), empty()
    run(profile, machine, [call()], error=1.0)
    assert stretto_rules.best(profile.measured)["algorithm"] == "builtin"
    tuning.confirm(profile, [call()], machine, lambda p: None)
    settled = {r["algorithm"]: r["time"] for r in profile.measured if r["turns"] == tuning.TURNS}
    assert (
        settled == {"builtin": 120.0, "ring": 100.0, "bruck": 120.0, "recursive_doubling": 125.0}
        and stretto_rules.best(profile.measured)["algorithm"] == "ring"
    )


def test_the_error_is_learned_without_what_all_share() -> None:
    from stretto.model import tuning

    rows = [{"time": 200 + (i % 5), "predicted": 100} for i in range(40)]
    assert tuning.usual_error(rows[:5]) == tuning.USUAL_ERROR and tuning.usual_error(rows) == tuning.LEAST_ERROR
    wild = [{"time": 100 * (2 if i % 4 == 0 else 1), "predicted": 100} for i in range(40)]
    assert tuning.usual_error(wild) == pytest.approx(1.0)


def test_neighbours_lend_their_corrections() -> None:
    """Half and twice the length count. Four times the length, other numbers of ranks and other
    places do not."""
    from stretto.rules import measurements

    row = {
        "op": "allgather",
        "ranks": 4,
        "place": "",
        "bytes": 1000,
        "algorithm": "ring",
        "k": 0,
        "segments": 1,
        "time": 300.0,
        "spread": 1.0,
        "predicted": 100.0,
    }

    def expected(**other: Any) -> dict[str, float]:
        return {
            c["algorithm"]: c["expected"]
            for c in measurements.corrected([row], "allgather", call(**{"bytes_": 1000, **other}))
        }

    assert expected()["ring"] == 300 and expected()["bruck"] == 330
    assert expected(bytes_=1999, predicted={"ring": 150.0})["ring"] == 450
    assert expected(bytes_=4000) == expected(ranks=5) == expected(bytes_=240) == expected(place="node:2") == PREDICTED


def test_twins_are_expected_to_take_as_long() -> None:
    from stretto.rules import measurements

    machine, profile = Machine({**PREDICTED, "recursive_doubling": 400}), empty()
    run(profile, machine, [call()])
    times = {c["algorithm"]: c["expected"] for c in measurements.corrected(profile.measured, "allgather", call())}
    assert times["recursive_doubling"] == times["twin"] == 400


@pytest.mark.parametrize("change", [{"time": 0}, {"k": 1.5}, {"op": 3}, {"ranks": True}, {"extra": 1}])
def test_bad_measurements_are_refused(inside: Tool, tmp_path: Path, change: dict[str, Any]) -> None:
    profile = empty()
    profile.measured.append(
        {
            "op": "bcast",
            "ranks": 2,
            "bytes": 8,
            "algorithm": "flat",
            "k": 0,
            "segments": 1,
            "time": 5,
            "spread": 1,
            "predicted": 4,
        }
        | change
    )
    (tmp_path / "p.toml").write_text(profile.toml())
    done = inside("explain", "--op", "bcast", "-n", "2", "--profile", tmp_path / "p.toml")
    assert done.returncode == 2 and "[[measured]]" in done.stderr and "Traceback" not in done.stderr


def test_explain_shows_what_was_measured(stretto: Tool, tmp_path: Path) -> None:
    """It decides, and the sentence says so."""
    from stretto.model import profile_file
    from stretto.rules.foreign_rules import forced

    profile = profile_file.load(profile_file.EXAMPLE)
    plain = json.loads(stretto("explain", "--op", "allgather", "-n", "6", "--bytes", "1024", "--json", "-").stdout)[
        "candidates"
    ]
    first, second = plain[0], next(c for c in plain if c["algorithm"] != plain[0]["algorithm"])

    def row(c: dict[str, Any], time: float) -> dict[str, Any]:
        candidate = {key: c[key] for key in ("algorithm", "k", "segments")}
        call = {"op": "allgather", "ranks": 6, "bytes": 1024}
        return {**call, **candidate, "time": time, "spread": 1.0, "predicted": round(c["time"], 1)}

    profile.measured += [
        row(first, 50000.0),
        row(second, 20000.0),
        row({"algorithm": "mpi", "k": 0, "segments": 1, "time": 0}, 33000.0),
        row({"algorithm": "builtin", "k": 0, "segments": 1, "time": 0}, 34000.0),
    ]
    (tmp_path / "p.toml").write_text(profile.toml())
    line = ["explain", "--op", "allgather", "-n", "6", "--bytes", "1024", "--profile", tmp_path / "p.toml"]
    shown = stretto(*line).stdout
    assert (
        "20 us" in shown
        and "50 us" in shown
        and "own: 33 us measured" in shown
        and "built in: 34 us measured" in shown
        and f"rules of this profile: by {second['name']}" in shown
        and "by the model alone: " + first["name"] in shown
    )
    found = json.loads(stretto(*line, "--json", "-").stdout)["candidates"]
    by_name = {c["name"]: c for c in found}
    assert (
        by_name[second["name"]]["measured"] == 20000
        and by_name[second["name"]]["expected"] < by_name[first["name"]]["expected"]
    )
    rules = tmp_path / "rules"
    asked = ["--op", "allgather", "-n", "6", "--bytes", "1024", "--profile", tmp_path / "p.toml"]
    assert stretto("model", "rules", "--to", rules, *asked).returncode == 0

    order = forced(rules.read_text(), "allgather", 6, 1024)
    assert order and order.algorithm != first["algorithm"]


# ---- with an MPI ---------------------------------------------------------------------------------


def test_the_profile_must_be_this_mpis(stretto: Tool, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(empty().toml())
    done = stretto("tune", "--profile", tmp_path / "p.toml")
    assert done.returncode == 2 and "of no MPI" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ranks", "1"], "--ranks: '1': 2 or more"),
        (["--bytes", "0,8"], "--sizes: '0': 1 or more"),
        (["--op", "scatter"], "--op: scatter: one of bcast"),
        (["--levels", "foo:2"], "no such level"),
        (["--json", "/nowhere/x"], "cannot write /nowhere/x"),
    ],
)
def test_what_cannot_be_tuned_is_said(inside: Tool, arguments: list[str], says: str) -> None:
    done = inside("tune", *arguments)
    assert done.returncode == 2 and says in " ".join(done.stderr.split())


def test_a_measurement_in_words() -> None:
    from stretto.model import tuning_report

    assert (
        tuning_report.told(row("chain", 1500, 4096, segments=4)) == "bcast, 8 ranks, 4K bytes, chain segments=4: 1.5 us"
    )
    assert tuning_report.told(row("mpi", 300)) == "bcast, 8 ranks, 64 bytes, the MPI's own: 300 ns"


def interrupted(line: Sequence[str | Path], path: Path) -> int:
    """Ctrl-C as soon as something has been measured."""
    process = subprocess.Popen(
        [sys.executable, "-m", "stretto", *map(str, line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while "[[measured]]" not in path.read_text() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    return process.wait(timeout=30)


@pytest.mark.alone
@pytest.mark.long
def test_a_real_run_decides_and_resumes(stretto: Tool, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    assert (
        stretto(
            "model", "measure", "--trials", "10", "--max", "65536", "--force", "--profile", path, timeout=250
        ).returncode
        == 0
    )
    line = [
        "tune",
        "--profile",
        path,
        "--op",
        "allreduce",
        "--op",
        "allgather",
        "--bytes",
        "8,4K,64K",
        "--repeat",
        "10",
        "--error",
        "0.5",
        "--json",
        "-",
    ]
    assert interrupted(line, path) in (130, 0)  # 0: it was done before
    from stretto.model import profile_file

    assert profile_file.load(path).measured
    done = stretto(*line, timeout=250)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("2 ranks") >= 1  # a line for each measurement
    first = json.loads(done.stdout)
    assert first["rows"] and all(
        r["mpi"] > 0 and r["tried"] >= 1 and r["measured"] <= min(r["by_model_measured"], r["mpi"], r["builtin"])
        for r in first["rows"]
    )
    assert (tmp_path / "p.rules").read_text().startswith("# by stretto tune")
    before = path.read_text()
    assert json.loads(stretto(*line, timeout=250).stdout)["rows"] == first["rows"] and path.read_text() == before


def test_choices_are_judged_by_other_times() -> None:
    """The chain was the fastest; it is no longer."""
    from stretto.model import tuning_report

    rows = [
        row("chain", 10),
        row("mpi", 20),
        row("builtin", 30),
        row("chain", 10, 4096),
        row("mpi", 9, 4096),
        row("builtin", 30, 4096),
        row("chain", 1, 8, place=""),
    ]
    found = tuning_report.verdict(rows, lambda ranks: "node:2,leaf:2", Machine({"chain": 15, "mpi": 12, "builtin": 30}))
    assert [(r["choice"], r["of_best"], r["of_mpi"]) for r in found] == [("chain", 1.25, 1.25), ("mpi", 1, 1)]


# ---- the rules that follow -----------------------------------------------------------------------


def row(
    algorithm: str,
    time: float,
    bytes_: int = 64,
    op: str = "bcast",
    ranks: int = 8,
    place: str = "node:2,leaf:2",
    k: int = 0,
    segments: int = 1,
) -> dict[str, Any]:
    return {
        "op": op,
        "ranks": ranks,
        "place": place,
        "bytes": bytes_,
        "algorithm": algorithm,
        "k": k,
        "segments": segments,
        "time": time,
        "spread": 1.0,
        "predicted": 0.0 if algorithm in ("mpi", "builtin") else 1.0,
    }


def test_rules_reach_halfway_to_the_next_length() -> None:
    from stretto.rules import stretto_rules

    rows = [
        each
        for bytes_, best in ((64, "mpi"), (1024, "chain"), (16384, "chain"), (65536, "builtin"), (1 << 20, "kchain"))
        for each in (
            row("mpi", 5 if best == "mpi" else 9, bytes_),
            row("builtin", 5 if best == "builtin" else 9, bytes_),
            row("chain", 5 if best == "chain" else 9, bytes_, segments=4),
            row("kchain", 5 if best == "kchain" else 9, bytes_, k=3),
        )
    ]
    assert stretto_rules.text(rows, "a test").splitlines() == [
        "# a test",
        "bcast ranks=8 nodes=4 bytes=0-256: mpi",
        "bcast ranks=8 nodes=4 bytes=257-4096: chain segment=256",
        "bcast ranks=8 nodes=4 bytes=4097-32768: chain segment=4096",
        "bcast ranks=8 nodes=4 bytes=262145-: kchain k=3",
    ]


def test_rules_need_what_they_are_to_be_better_than() -> None:
    from stretto.rules import stretto_rules

    assert stretto_rules.text([row("chain", 1), row("mpi", 2)], "a test") == "# a test\n"
    part = [
        row("ring", 1, 8, "allgather"),
        row("mpi", 2, 8, "allgather"),
        row("builtin", 2, 8, "allgather"),
        row("ring", 1, 80, "allgather"),
    ]
    assert stretto_rules.text(part, "").splitlines()[1:] == [
        "allgather ranks=8 nodes=4 bytes=0-: ring"
    ]  # lengths of all parts


def test_of_places_alike_the_later_one_counts() -> None:
    from stretto.rules import stretto_rules

    dealt = "; ".join(f"{rank}: node={rank % 4} leaf={rank % 2}" for rank in range(8))
    rows = [
        each
        for place, best in (("node:2,leaf:2", "chain"), (dealt, "flat"), ("", "binary"))
        for each in (row(best, 1, place=place), row("mpi", 2, place=place), row("builtin", 2, place=place))
    ]
    assert stretto_rules.text(rows, "").splitlines()[1:] == [
        "bcast ranks=8 nodes=4 bytes=0-: flat",
        "bcast ranks=8 nodes=1 bytes=0-: binary",
    ]


@pytest.mark.parametrize(
    ("place", "nodes"), [("", 1), ("socket:2,numa:2", 1), ("node:2", 4), ("socket:2,node:2,leaf:2", 2), ("node:3", 3)]
)
def test_nodes_of_a_place(place: str, nodes: int) -> None:
    from stretto.rules import stretto_rules

    assert stretto_rules.nodes_of(place, 8) == nodes


def test_rules_by_the_model(stretto: Tool, tmp_path: Path) -> None:
    """What is expected decides, against measured times of the others where there are some."""
    from stretto.model import profile_file

    profile = profile_file.load(profile_file.EXAMPLE)
    profile.measured += [row("mpi", 1.0, 8, "reduce", 16, "node:4"), row("builtin", 2.0, 8, "reduce", 16, "node:4")]
    (tmp_path / "p.toml").write_text(profile.toml())
    done = stretto(
        "model",
        "rules",
        "--format",
        "stretto",
        "--to",
        "-",
        "--op",
        "reduce",
        "-n",
        "16",
        "--levels",
        "node:4",
        "--bytes",
        "8,1M",
        "--profile",
        tmp_path / "p.toml",
    )
    lines = done.stdout.splitlines()
    assert lines[1] == "reduce ranks=16 nodes=4 bytes=0-2896: mpi" and lines[2].startswith(
        "reduce ranks=16 nodes=4 bytes=2897-: "
    ), done.stdout + done.stderr
