# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of the kit that are stopped, go on, or fail, with a program that only prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from machines import made_up
from stretto.kit import comparing, machine_file, measuring, plan, record, situation
from stretto.kit.plan import Job, Settings
from stretto.kit.record import Record
from stretto.model import machine as machines
from stretto.mpi import Mpi

PLAYED = Mpi(
    "mpich", "mpich", "5.0", Path("/opt"), Path("/opt/bin/mpiexec"), None, None, None, Path("/opt/lib/x.so"), "system"
)
# Prints what the measuring program prints. Its first word is what goes wrong, at which operation.
PROGRAM = """
import json, sys, time
wrong, at, cpus, rows = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
if wrong == "start":
    sys.exit("no interface")
def say(**event):
    print(json.dumps(event), flush=True)
say(event="plan", preloaded=True, bindings=[[0] for cpu in cpus] if wrong == "bind" else [[cpu] for cpu in cpus])
for op, size in rows:
    if op == at and wrong == "end":
        sys.exit("it broke")
    if op == at and wrong == "hang":
        time.sleep(60)
    say(event="row", op=op, bytes=size, ours_us=1.0, mpi_us=2.0, path="cico", calls=[1, 1, 0], flag_ns=100.0)
say(event="done")
"""
SETTINGS = Settings(ops=("bcast", "reduce", "scan"), min_bytes=8, max_bytes=64)


class Played:
    """A measurement on a made-up machine of 4 cores; `wrong` is what the program does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong = ("", "")
        self.starts: list[tuple[str, ...]] = []
        self.topology = made_up(folder / "sys", 1, 1, 1, 4)
        self.jobs = plan.jobs([PLAYED.tag], self.topology, SETTINGS, 1 << 30)
        monkeypatch.setattr(measuring, "command", self.command)
        monkeypatch.setattr(situation, "facts", lambda: {"cpu": "a processor"})
        monkeypatch.setattr(situation, "notes", lambda *_: [])
        self.record = Record(folder / "kit.json", measuring.new_data(self.topology, SETTINGS, [PLAYED]))

    def command(self, job: Job, _mpi: Mpi) -> list[str]:
        self.starts.append(job.request.ops)
        return [sys.executable, "-c", PROGRAM, *self.wrong, json.dumps(job.cpus), json.dumps(job.rows())]

    def run(self, show: Callable[[str, int], None] = lambda *_: None) -> dict[str, Any]:
        measuring.run(self.jobs, {PLAYED.tag: PLAYED}, self.record, show)
        return self.record.data


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


def calls(data: dict[str, Any]) -> list[tuple[int, str, int]]:
    return [(r["ranks"], r["op"], r["bytes"]) for r in data["results"]]


ALL = [(ranks, op, size) for ranks in (2, 4) for op in SETTINGS.ops for size in (8, 64)]


def test_each_number_of_ranks_is_one_start(played: Played) -> None:
    data = played.run()
    assert calls(data) == ALL and len(played.starts) == 2 and not data["failures"]
    assert {r["ratio"] for r in data["results"]} == {0.5}
    assert [(j["ranks"], j["cpus"], j["as_asked"]) for j in data["jobs"]] == [
        (2, [0, 1], True),
        (4, [0, 1, 2, 3], True),
    ]


def test_a_stopped_measurement_goes_on(played: Played) -> None:
    def stop(_text: str, _rows: int) -> None:
        if len(played.record.data["results"]) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        played.run(stop)
    played.record.write()
    played.record = Record(played.record.path, record.read(played.record.path))
    assert sorted(calls(played.run())) == sorted(ALL)
    # bcast was whole; reduce was not, and is measured again.
    assert played.starts == [SETTINGS.ops, ("reduce", "scan"), SETTINGS.ops]
    assert measuring.rows_left(played.jobs, played.record) == 0


@pytest.mark.parametrize("wrong, reason", [("end", "it broke"), ("hang", "nothing came")])
def test_an_operation_that_fails_costs_no_other(
    wrong: str, reason: str, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "PATIENCE_S", 3.0 if wrong == "hang" else 60.0)
    played.wrong = (wrong, "reduce")
    played.jobs = played.jobs[:1]
    data = played.run()
    assert calls(data) == [(2, op, size) for op in ("bcast", "scan") for size in (8, 64)]
    assert [(f["op"], f["ranks"]) for f in data["failures"]] == [("reduce", 2)]
    assert reason in data["failures"][0]["reason"]


def test_an_mpi_that_does_not_start_is_tried_once_for_each_number_of_ranks(played: Played) -> None:
    played.wrong = ("start", "")
    data = played.run()
    assert len(played.starts) == 2 and not data["results"]
    assert {f["op"] for f in data["failures"]} == set(SETTINGS.ops)
    ((_, ranks, reason), _ops), *_ = measuring.failures(data["failures"]).items()
    assert ranks == 2 and "no interface" in reason


def test_ranks_on_other_processors_are_noted(played: Played) -> None:
    played.wrong = ("bind", "")
    data = played.run()
    assert data["jobs"][0]["bindings"] == [[0], [0]]
    assert any("not on the processors" in note for note in data["notes"])


def test_the_file_has_a_line_for_each_result(played: Played) -> None:
    played.run()
    played.record.write()
    lines = played.record.path.read_text().splitlines()
    assert sum('"op": "bcast"' in line for line in lines) == 4
    assert record.read(played.record.path)["results"] == played.record.data["results"]


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", "no JSON"), ("b", '{"schema": "stretto.bench/1"}'), ("c", "[]")):
        (tmp_path / name).write_text(text)
        with pytest.raises(typer.Exit):
            record.read(tmp_path / name)
        assert str(tmp_path / name) in capsys.readouterr().err.replace("\n", "")


def test_a_file_of_another_machine_does_not_go_on(played: Played, tmp_path: Path) -> None:
    fresh = measuring.new_data(made_up(tmp_path / "other", 2, 1, 1, 2), SETTINGS, [PLAYED])
    assert measuring.mismatch(played.record.data, fresh) == "set of processors"
    assert measuring.mismatch(played.record.data, played.record.data) is None


def test_notes_name_what_is_bad(tmp_path: Path) -> None:
    good = {
        "cgroup_cpus": None,
        "cpus_usable": 8,
        "cpus_online": 8,
        "shm_bytes": 1 << 34,
        "refused": {},
        "ptrace_scope": "0",
        "smt": "0",
        "load_before": 0.1,
        "governor": "performance",
        "virtual": False,
    }
    here = made_up(tmp_path, 1, 1, 2, 4)
    assert list(situation.notes(good, here)) == []
    for change, word in (
        ({"cgroup_cpus": 2.5}, "2.5 processors' time to 8 cores"),
        ({"cpus_online": 16}, "8 of 16"),
        ({"shm_bytes": 64 << 20}, "/dev/shm has 64M"),
        ({"refused": {"cma": "EPERM"}, "ptrace_scope": "1"}, "EPERM; ptrace_scope 1"),
        ({"refused": {"memfd": "ENOSYS"}}, "memfd: ENOSYS"),
        ({"load_before": 3.0}, "3.0"),
        ({"governor": "powersave"}, "powersave"),
        ({"virtual": True}, "virtual"),
    ):
        (note,) = situation.notes({**good, **change}, here)
        assert word in note


def test_measured_times_stand_beside_the_model(played: Played) -> None:
    data = played.run()
    data["results"][0]["ours_us"] = 3.0  # bcast of 8 bytes, 2 ranks
    model = [
        {"op": "bcast", "ranks": ranks, "bytes": 8, "time_us": 2.0, "line_transfers": 14, "way": "flat"}
        for ranks in (2, 4, 8)
    ]
    rows = comparing.rows(comparing.of_mpi(data["results"], PLAYED.tag), model)
    assert [(r["ranks"], r["ratio"], r["step"]) for r in rows] == [(2, 1.5, None), (4, 0.5, 1 / 3)]
    doc = comparing.document({**data, "begun": "now"}, rows, PLAYED.tag, "epyc-2x64")
    assert doc["geomean"]["bcast"] == pytest.approx(0.75**0.5) and doc["most"]["bcast"] == 1.5
    assert comparing.table(doc).row_count == 2


def test_a_measured_machine_can_be_played(tmp_path: Path) -> None:
    here = made_up(tmp_path, sockets=2, numa=2, l3s=2, cores=4, threads=2)
    levels = {
        level: {"exchange_ns": ns} for level, ns in {"core": 9.0, "l3": 25.0, "numa": 90.0, "machine": 210.0}.items()
    }
    data = {"machine": {"cpu": "AMD EPYC"}, "topology": here.as_json(), "latencies": {"levels": levels}}
    played = machine_file.machine(data)
    assert played.cores == 32 and played.vendor == "amd" and played["l3_mib"] == 32
    assert [played[key] for key in ("sockets", "numa_per_socket", "l3_per_numa", "cores_per_l3")] == [2, 2, 2, 4]
    # No pair of nodes of one socket was measured.
    assert [played[key] for key in machine_file.LINES] == [25.0, 90.0, 90.0, 210.0]
    assert played["memory"] == machines.load("epyc-2x64")["memory"]
    assert machine_file.shape(made_up(tmp_path / "small", 1, 1, 1, 2))["cores_per_l3"] == 2
