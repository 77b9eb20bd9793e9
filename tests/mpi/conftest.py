# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests that run MPI programs.

    def test_something(mpi, run_mpi, build_program):          # on MPIs of both ABIs in turn
        run_mpi(mpi, 2, [build_program(mpi, "x.c")]).ok()

Markers: every runs on each MPI found, and so do all tests with --long or --mpi. few prefers MPIs that
start fast. one_mpi takes one of these: MPICH, which starts faster, or with one_mpi("openmpi") Open
MPI, whose waiting ranks leave more to others. only(kind=..., abi=..., origin=...) keeps some MPIs.
long needs --long. short_run.py says which case takes which MPI.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "python", Path(__file__).parent):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

import harness  # noqa: E402
import short_run  # noqa: E402
from stretto.mpi import Mpi, finding  # noqa: E402
from stretto.mpi.abis import STANDARD  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("stretto")
    for names, settings in (
        (("--long",), {"action": "store_true", "default": False, "help": "full counts: takes hours"}),
        (
            ("--mpi",),
            {"action": "append", "default": [], "metavar": "KIND", "help": "only MPIs whose id starts with KIND"},
        ),
    ):
        try:
            group.addoption(*names, **settings)
        except ValueError:  # another conftest has it already
            pass


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only(kind=None, abi=None, origin=None): run on these MPIs only")
    config.addinivalue_line("markers", "few: on the MPI of each ABI that starts fastest; on all with --long")
    config.addinivalue_line("markers", "long: only with --long (or STRETTO_TEST_LONG=1)")


@pytest.hookimpl(trylast=True)  # after -k has chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    short_run.choose(config, items)


def pytest_sessionfinish() -> None:
    harness.tidy_host_residue()


@functools.cache
def _found() -> tuple[Mpi, ...]:
    return tuple(m for m in finding.find_abis() if m.mpicc is not None)


def _one_of_each_abi(mpis: list[Mpi], preference: Callable[[Mpi], tuple]) -> list[Mpi]:
    best = {abi: min((m for m in mpis if m.abi == abi), key=preference) for abi in {m.abi for m in mpis}}
    return [m for m in mpis if m in best.values()]


def _usual(mpis: list[Mpi]) -> list[Mpi]:
    """The newest Open MPI and the newest MPICH."""
    return _one_of_each_abi(mpis, lambda mpi: (mpi.kind == "impi", mpi.origin != "wheel"))


def _few(mpis: list[Mpi]) -> list[Mpi]:
    """The Open MPI and the MPICH that start fastest: for tests of what does not depend on the version."""
    return _one_of_each_abi(
        mpis, lambda mpi: (mpi.kind == "impi", mpi.origin != ("system" if mpi.kind == "openmpi" else "wheel"))
    )


def _one(mpis: list[Mpi], abi: str) -> list[Mpi]:
    """One of the few, with this ABI if there is one: for tests of what does not depend on the ABI."""
    return sorted(_few(mpis), key=lambda mpi: mpi.abi != abi)[:1]


def _has_case_for_every(metafunc: pytest.Metafunc) -> bool:
    """Whether a case of a test, though not the test, is marked."""
    values = [value for marker in metafunc.definition.iter_markers("parametrize") for value in marker.args[1]]
    return any(mark.name == "every" for value in values for mark in getattr(value, "marks", ()))


def _wanted(metafunc: pytest.Metafunc) -> list[Mpi]:
    names = metafunc.config.getoption("--mpi", default=[]) or []
    chosen = [m for m in _found() if not names or any(m.tag.startswith(n) for n in names)]
    if names and not chosen:
        raise pytest.UsageError(f"--mpi {' '.join(names)}: no MPI has such an id: {', '.join(m.tag for m in _found())}")
    only = list(metafunc.definition.iter_markers("only"))
    if not names and not any(marker.kwargs.get("abi") == STANDARD.name for marker in only):
        chosen = [m for m in chosen if not m.is_standard]
    for marker in only:
        for key, value in marker.kwargs.items():
            allowed = (value,) if isinstance(value, str) else tuple(value)
            chosen = [m for m in chosen if getattr(m, key) in allowed]
    mark = metafunc.definition.get_closest_marker
    if names or short_run.is_long(metafunc.config) or mark("every") or _has_case_for_every(metafunc):
        return chosen
    if one := mark("one_mpi"):
        return _one(chosen, *(one.args or ("mpich",)))
    return _few(chosen) if mark("few") else _usual(chosen)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mpi" in metafunc.fixturenames:
        metafunc.parametrize("mpi", _wanted(metafunc), ids=lambda m: m.tag, scope="session")


@pytest.fixture(scope="session")
def long_mode(request: pytest.FixtureRequest) -> bool:
    """Whether full counts were asked for."""
    return short_run.is_long(request.config)


@pytest.fixture(scope="session")
def run_mpi() -> Callable[..., harness.Job]:
    """run_mpi(mpi, np, argv, env=None, preload=True|False|"faulty", timeout=60, extra=()) -> finished job."""
    return harness.run_job


@pytest.fixture(scope="session")
def build_program() -> Callable[..., Path]:
    """build_program(mpi, "name.c", name=None, flags=()) -> executable."""
    return harness.build_program


@pytest.fixture
def build_cxx(mpi: Mpi) -> Callable[[str], Path]:
    """build_cxx("name.cpp") -> executable for this test's MPI."""
    return functools.partial(harness.build_cxx, mpi)


@pytest.fixture
def on_nodes(tmp_path) -> Callable[[int], Path]:
    """on_nodes(ranks) -> a wrapper of a program: so many ranks each see a boot id of their own."""
    if not harness.can_pretend_nodes():
        pytest.skip("needs root and unshare")
    return functools.partial(harness.pretended_nodes, tmp_path)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test may leave files or shared memory of ours; run_mpi itself watches for processes."""
    with harness.nothing_left():
        yield
