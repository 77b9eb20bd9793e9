# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the C++ tests of a preset with ctest, and counts their cases."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stretto.core.console import err, out, working
from stretto.core.paths import build_root
from stretto.core.processes import child, stream
from stretto.native import build
from stretto.native.build import BuildError

# What a sanitizer says of a case, which has then failed even if it goes on.
SANITIZER = re.compile(r"(WARNING|ERROR): \w+Sanitizer|: runtime error: ")


@dataclass
class Tally:
    """Counts of tests, and how long each took, in seconds."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures
        self.seconds.update(other.seconds)

    def slowest(self, most: int) -> list[tuple[float, str]]:
        return sorted(((seconds, name) for name, seconds in self.seconds.items()), reverse=True)[:most]

    def __str__(self) -> str:
        text = f"{self.passed} passed, {len(self.failures)} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def read_report(path: Path, part: str) -> Tally:
    """Counts in a report of pytest or of a gtest program."""
    tally = Tally()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{part}: {case.get('classname')}.{case.get('name')}"
        tally.seconds[name] = float(case.get("time") or 0)
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failures.append(name)
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            tally.skipped += 1
        else:
            tally.passed += 1
    return tally


def read_ctest(junit: Path, reports: Path, preset: str) -> Tally:
    """Counts in the report of ctest. Its tests are parts of gtest programs, which have reports of
    their own unless they crash."""
    tally = Tally()
    for part in ElementTree.parse(junit).getroot().iter("testcase"):
        report = reports / f"{part.get('name')}.xml"
        found = read_report(report, preset) if report.exists() else Tally()
        if part.get("status") == "fail" and not found.failures:
            name = f"{preset}: {part.get('name')}"
            blamed = suspects(part.findtext("system-out") or "")
            found.failures += [f"{name}: {case}" for case in blamed] or [name]
        elif not report.exists():
            found.passed += 1
        tally.add(found)
    return tally


def suspects(said: str) -> list[str]:
    """The cases of a gtest program that a sanitizer complained of, and the one that did not end."""
    found: dict[str, None] = {}
    case = ""
    for line in said.splitlines():
        if begun := re.match(r"\[ RUN      \] (\S+)", line):
            case = begun[1]
        elif re.match(r"\[ +(OK|FAILED|SKIPPED) +\]", line):
            case = ""
        elif case and SANITIZER.search(line):
            found[case] = None
    return [*found, *({case} - {"", *found})]


def without_aslr() -> list[str]:
    """The start of a command line that turns address randomisation off. TSan of GCC 12 fails on
    kernels with 32 bits of mmap randomness."""
    setarch = shutil.which("setarch")
    line = [setarch, platform.machine(), "-R"] if setarch else []
    return line if line and subprocess.run([*line, "true"], capture_output=True).returncode == 0 else []


def run(preset: str, programs: Sequence[str], targets: Sequence[str], environment: dict[str, str]) -> Tally:
    """Builds `targets`, or everything, and runs the tests of `programs`, or all tests."""
    started = time.monotonic()
    try:
        with working(f"{preset}: building"):
            directory = build.ensure_built(preset, targets)
    except BuildError as error:
        err.print(str(error)[-6000:], markup=False)
        return Tally(failures=[f"{preset}: build"])
    junit, reports = directory / "ctest.xml", directory / "tests" / "results"
    junit.unlink(missing_ok=True)
    shutil.rmtree(reports, ignore_errors=True)
    line = [
        *(without_aslr() if preset == "tsan" else []),
        "ctest",
        "--test-dir",
        str(directory),
        "--output-on-failure",
        "--output-junit",
        str(junit),
        "-j",
        str(len(os.sched_getaffinity(0)) + 1),  # some tests only wait
    ]
    if programs:
        line += ["-R", rf"^({'|'.join(programs)})\."]
    begin = time.monotonic()
    status, output = stream(
        line,
        f"{preset}: testing",
        env=environment,
        log=build_root() / "logs" / f"ctest-{preset}.log",
        count=r"Test +#\d+:",
    )
    tally = read_ctest(junit, reports, preset) if junit.exists() else Tally()
    if status and not tally.failures:
        tally.failures.append(f"{preset}: ctest (exit status {status})")
    if tally.failures:
        err.print(output[-8000:], markup=False)
    took = f"built in {begin - started:.0f} s, run in {time.monotonic() - begin:.0f} s"
    out.print(f"{preset}: {tally} ({took})", markup=False)
    return tally


def run_cases(preset: str, program: str, cases: str, environment: dict[str, str]) -> Tally:
    """Builds one program and runs the cases of a filter of gtest, on the terminal."""
    try:
        with working(f"{preset}: building {program}"):
            directory = build.ensure_built(preset, [program])
    except BuildError as error:
        err.print(str(error)[-6000:], markup=False)
        return Tally(failures=[f"{preset}: build"])
    report = directory / "tests" / f"cases-{os.getpid()}.xml"
    line = [*(without_aslr() if preset == "tsan" else []), str(directory / "tests" / program)]
    line += [f"--gtest_filter={cases}", f"--gtest_output=xml:{report}", "--gtest_brief=1"]
    with child(line, env={**os.environ, **environment}) as tests:
        status = tests.wait()
    tally = read_report(report, preset) if report.exists() else Tally()
    report.unlink(missing_ok=True)
    if status and not tally.failures:
        tally.failures.append(f"{preset}: {program} (exit status {status})")
    return tally
