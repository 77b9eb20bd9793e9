# SPDX-License-Identifier: BSD-3-Clause
"""info, doctor and test: what they say must agree with what is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from job_processes import TOKEN, end_processes, processes_of
from stretto.commands import test
from stretto.core import parts
from stretto.diagnosis import machine, mpis, verdict
from stretto.mpi import finding
from stretto.native import build, cpp_tests, programs

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    "command", ["run", "env", "info", "doctor", "demo", "bench", "test", "verify", "model", "explain", "tune"]
)
def test_every_command_explains_itself(inside: Tool, command: str) -> None:
    done = inside(command, "--help")
    assert done.returncode == 0 and "Usage: stretto " + command in done.stdout and len(done.stdout.splitlines()) > 5


@pytest.mark.parametrize("old", parts.OLD_SPELLINGS, ids=" ".join)
def test_an_old_spelling_says_the_new_one_and_works(inside: Tool, command_tree: Any, old: tuple[str, ...]) -> None:
    new = parts.OLD_SPELLINGS[old]
    done = inside(*old, "--help") if new[-7:] != "--check" else inside(*old, "/nonexistent")
    assert f"stretto: `stretto {' '.join(old)}` is now `stretto {new}`" in done.stderr.splitlines()
    if new.endswith("--check"):
        assert "cannot read /nonexistent" in done.stderr
    else:
        assert (
            done.returncode == 0 and f"Usage: stretto {new.split(' --library')[0].split(' --pmix')[0]}" in done.stdout
        )
    assert old[0] not in command_tree.commands


@pytest.mark.parametrize("line", [("--suite=kind",), ("-n", "4", "--suite", "kind"), ("--suite", "kind")])
def test_a_suite_has_options_of_its_own(inside: Tool, line: tuple[str, ...]) -> None:
    assert "Usage: stretto bench --suite kind" in inside("bench", *line, "--help").stdout
    done = inside("bench", *line, "--method", "imb")
    assert done.returncode == 2 and "No such option: --method" in done.stderr


def test_words_of_a_program_choose_no_part() -> None:
    words = ["-n", "2", "--", "./app", "--overlap", "--suite=kind"]
    assert parts.split_value(words, "--suite") == words and parts.before_program(words) == ["-n", "2"]


def test_unknown_command_is_an_error(inside: Tool) -> None:
    done = inside("modle")
    assert done.returncode == 2 and "modle" in done.stderr


@pytest.mark.parametrize(
    ("line", "begun", "processes"),
    [(["verify"], b"/stretto-verify\0", 1), (["bench", "--sizes", "8:16M", "--mpi", "FOUND"], b"/collectives\0", 3)],
    ids=["verify", "bench"],
)
def test_what_is_asked_to_end_ends_with_all_it_has_begun(line: list[str], begun: bytes, processes: int) -> None:
    """The benchmark's launcher names it, too."""
    token = uuid.uuid4().hex
    mpi = finding.find_all()[0]
    line = [str(mpi.mpiexec) if word == "FOUND" else word for word in line]
    build.ensure_built("release", [f"stretto-{mpi.abi}", "stretto-verify"])  # building takes longer than we wait below
    programs.compiled(mpi, "collectives")
    process = subprocess.Popen(
        [sys.executable, "-m", "stretto", *line],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, TOKEN: token, "XDG_CONFIG_HOME": "/dev/null"},
    )
    try:
        until = time.monotonic() + 60
        while sum(begun in command_line(pid) for pid in processes_of(token)) < processes:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
        until = time.monotonic() + 10
        while processes_of(token) and time.monotonic() < until:
            time.sleep(0.05)
        assert processes_of(token) == []
    finally:
        end_processes(token)
        process.wait()


def command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""  # it has ended


def test_info_tells_options_and_their_origin(stretto: Tool, tmp_path: Path) -> None:
    (tmp_path / "stretto.toml").write_text('# mine\nslot_bytes = "16K"\n')
    done = stretto("info", "--json", "-", env={"STRETTO_SLOTS": "5", "STRETTO_SLTO": "1"}, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    options = {o["name"]: o for o in facts["probe"]["options"]}
    assert options["STRETTO_SLOTS"]["value"] == "5" and options["STRETTO_SLOTS"]["origin"] == "environment"
    assert options["STRETTO_SLOT_BYTES"]["value"] == "16K" and "stretto.toml" in options["STRETTO_SLOT_BYTES"]["origin"]
    assert options["STRETTO_WAIT"]["origin"] == "default"
    assert any("STRETTO_SLTO" in m["text"] for m in facts["probe"]["option_messages"])
    assert facts["probe"]["cpus"]["usable"] == len(os.sched_getaffinity(0))
    assert {m["library"] for m in facts["mpis"]} == {str(m.library) for m in finding.find_abis()}


def test_info_for_people(stretto: Tool) -> None:
    done = stretto("info", env={"STRETTO_WAIT": "nap"})
    assert done.returncode == 0
    assert re.search(r"STRETTO_WAIT +nap +environment", done.stdout)
    for found in finding.find_abis():
        assert found.title in done.stdout


def test_probe_sees_the_affinity_it_has() -> None:
    program = build.ensure_built("release", ["stretto-probe"]) / "stretto-probe"
    cpu = min(os.sched_getaffinity(0))
    done = subprocess.run(["taskset", "-c", str(cpu), str(program)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["cpus"]["usable"] == 1


def test_doctor_passes_on_a_machine_that_works(stretto: Tool) -> None:
    done = stretto("doctor", "--json", "-", timeout=240)
    verdicts = {v["subject"]: v for v in json.loads(done.stdout)["verdicts"]}
    assert done.returncode == 0, done.stdout
    for found in finding.find_abis():
        served, total = map(
            int, re.search(r"(\d+) of (\d+) collective calls served", verdicts[found.title]["finding"]).groups()
        )
        assert 0 < served <= total


def fake_probe(**changes: Any) -> dict[str, Any]:
    names = ("memfd", "proc", "mailbox", "cma")
    broken = changes.pop("broken", {})
    return {
        "options": [],
        "option_messages": [],
        "cpus": {"usable": 4, "online": 8, "quota": None},
        "overlap": {
            "guard": "kernel",
            "guard_error": None,
            "move": True,
            "move_error": None,
            "calls": True,
            "calls_error": None,
            "segv": True,
            "segv_error": None,
        },
        "checks": [{"name": n, "ok": n not in broken, "error": broken.get(n)} for n in names],
        **changes,
    }


def levels(verdicts: Any) -> dict[str, str]:
    return {v.subject: v.level for v in verdicts}


def test_doctor_judges_what_the_probe_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(**changes: Any) -> None:
        found = fake_probe(**changes)
        monkeypatch.setattr(machine.probe, "ask", lambda: found)

    probe()
    assert set(levels(machine.check_mechanisms()).values()) == {verdict.GOOD}
    probe(broken={"memfd": "Operation not permitted"})
    assert levels(machine.check_mechanisms())["shared memory files"] == verdict.BAD
    probe(broken={"proc": "Permission denied", "cma": "Operation not permitted"})
    assert verdict.BAD not in levels(machine.check_mechanisms()).values()
    probe(broken={"proc": "Permission denied", "mailbox": "Connection refused"})
    assert levels(machine.check_mechanisms())["reaching a peer's memory"] == verdict.BAD
    probe(overlap=fake_probe()["overlap"])
    assert set(levels(machine.check_guarding()).values()) == {verdict.GOOD}
    probe(overlap={**fake_probe()["overlap"], "guard": "user", "calls": False, "calls_error": "Device busy"})
    assert list(levels(machine.check_guarding()).values()) == [verdict.WARN, verdict.GOOD] + 3 * [verdict.WARN]
    assert "/etc/udev/rules.d" in next(machine.check_guarding()).advice
    probe(cpus={"usable": 4, "online": 8, "quota": 0.5})
    assert levels(machine.check_processors()) == {"cgroup quota": verdict.WARN}
    probe(option_messages=[{"error": True, "text": "STRETTO_SLOTS: bad"}])
    assert levels(machine.check_options())["options"] == verdict.BAD


def test_doctor_sees_a_library_that_is_not_active(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A preloaded library that does nothing must not pass for ours."""
    source = tmp_path / "nothing.c"
    source.write_text("int nothing;\n")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "nothing.so")], check=True)
    monkeypatch.setattr(mpis.build, "library", lambda abi: tmp_path / "nothing.so")
    found = mpis.check_mpi(finding.find())
    assert found.level == verdict.BAD and "not active" in found.finding


# ---- test ----------------------------------------------------------------------------------------

CTEST = """<?xml version="1.0"?><testsuite tests="4" failures="3">
<testcase name="unit.0" time="1" status="fail"><failure/><system-out>[ RUN      ] A.b</system-out></testcase>
<testcase name="unit.1" time="1" status="fail"><failure/><system-out>
[ RUN      ] A.c
[       OK ] A.c (0 ms)
[ RUN      ] A.d
WARNING: ThreadSanitizer: data race (pid=1)
[       OK ] A.d (0 ms)
[ RUN      ] A.e
</system-out></testcase>
<testcase name="unit.2" time="1" status="fail"><failure/><system-out>no case</system-out></testcase>
<testcase name="reduce.objects.avx2" time="1" status="run"/></testsuite>"""
GTEST = """<?xml version="1.0"?><testsuites tests="4" failures="1"><testsuite name="A" tests="4">
<testcase name="a" status="run" result="completed" classname="A"/>
<testcase name="b" status="run" result="completed" classname="A"><failure message="x"/></testcase>
<testcase name="c" status="run" result="skipped" classname="A"><skipped message="s"/></testcase>
<testcase name="d" status="notrun" result="suppressed" classname="A"/></testsuite></testsuites>"""
PYTEST = """<?xml version="1.0"?><testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
<testcase classname="tests.a" name="one" time="0"/>
<testcase classname="tests.a" name="two" time="2.5"><failure message="x"/></testcase>
<testcase classname="tests.a" name="three"><skipped message="x"/></testcase>
<testcase classname="tests.b" name="four"><error message="x"/></testcase></testsuite></testsuites>"""


def test_totals_are_counted_from_reports(tmp_path: Path) -> None:
    (tmp_path / "unit.0.xml").write_text(GTEST)
    junit = tmp_path / "junit.xml"
    junit.write_text(CTEST)
    total = cpp_tests.read_ctest(junit, tmp_path, "asan")
    assert total.failures == ["asan: A.b", "asan: unit.1: A.d", "asan: unit.1: A.e", "asan: unit.2"]
    assert str(total) == "2 passed, 4 failed, 2 skipped"
    junit.write_text(PYTEST)
    tally = cpp_tests.read_report(junit, "pytest")
    assert (tally.passed, tally.skipped) == (1, 1)
    assert tally.failures == ["pytest: tests.a.two", "pytest: tests.b.four"]
    total.add(tally)
    assert str(total) == "3 passed, 6 failed, 3 skipped"
    assert total.slowest(1) == [(2.5, "pytest: tests.a.two")]
    assert str(cpp_tests.Tally(passed=3)) == "3 passed, 0 failed"


def test_sanitized_programs_are_built_beside_tests_but_not_beside_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    ended = threading.Event()

    def built(preset: str, targets: Sequence[str], prefix: Sequence[str]) -> None:
        begun.append(f"{' '.join(prefix)} {preset}")
        if preset == "tsan":
            time.sleep(0.1)
            ended.set()
            raise build.BuildError("the build before the tests says so")

    def ran(arguments: Sequence[str], quick: bool, environment: object, marks: Sequence[str] = ()) -> cpp_tests.Tally:
        begun.append(marks[0])
        assert ended.is_set() or marks != ["alone"]
        return cpp_tests.Tally(passed=1)

    monkeypatch.setattr(test, "install_mpis", list)
    monkeypatch.setattr(test.build, "headers", lambda abi: True)
    monkeypatch.setattr(test.build, "ensure_built", built)
    monkeypatch.setattr(test, "pytest_once", ran)
    monkeypatch.setattr(test.cpp_tests, "run", lambda preset, *_: begun.append(preset) or cpp_tests.Tally(passed=1))
    assert test.run_parts([*test.PARTS], [], False, {}).passed == 5
    assert begun[0] == "release" and begun[-3:] == ["alone", "asan", "tsan"]
    assert sorted(begun[1:-3]) == ["nice -n 19 asan", "nice -n 19 tsan", "not alone"]


def test_a_suite_that_does_not_even_start_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(test, "build_root", lambda: tmp_path)
    tally = test.run_pytest(["--no-such-option"], quick=True, environment={})
    assert tally.passed == 0 and len(tally.failures) == 1 and "exit status" in tally.failures[0]


def test_fails_and_says_so_when_a_test_fails(stretto: Tool, tmp_path: Path) -> None:
    """The last line is the total, whatever else is printed."""
    suite = tmp_path / "test_sample.py"
    suite.write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\n@pytest.mark.skip\ndef test_c(): pass\n"
    )
    done = stretto("test", "--part", "pytest", str(suite), "-p", "no:cacheprovider", timeout=280)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed, 1 skipped"
    done = stretto("test", "--part", "pytest", str(suite), "-k", "test_a", timeout=280)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "1 passed, 0 failed"
