# SPDX-License-Identifier: BSD-3-Clause
"""bench/programs.toml says what the MPI programs of commands are made of."""

from __future__ import annotations

import pytest
from stretto.core.paths import root
from stretto.mpi import Mpi, finding
from stretto.native import programs

ALL = programs.programs()
FOUND = [m for m in finding.find_all() if m.mpicxx]


def test_every_source_of_bench_belongs_to_a_program() -> None:
    listed = {source for each in ALL.values() for source in each.sources}
    cmake = "".join(path.read_text() for path in (root() / "CMakeLists.txt", *(root() / "cmake").glob("*.cmake")))
    for path in (root() / "bench").rglob("*.cpp"):
        name = str(path.relative_to(root()))
        assert (name in listed) != (name in cmake), f"{name}: bench/programs.toml or CMake builds it, not both"


def test_programs_of_tests_have_other_names() -> None:
    """All of them are built into one folder."""
    sources = [path for folder in ("mpi", "cli") for path in (root() / "tests" / folder / "programs").glob("*.*")]
    assert sorted({path.stem for path in sources} & set(ALL)) == []


@pytest.mark.parametrize("name", ALL)
def test_a_program_is_described_in_full(name: str) -> None:
    program = ALL[name]
    for path in program.source_paths():
        assert path.exists(), path
    assert program.language == "c++" or program.sources[0].startswith("examples/")
    assert any(flag.startswith("-std=c++") for flag in program.all_flags()) == (program.language == "c++")


@pytest.mark.parametrize("mpi", {m.abi: m for m in FOUND}.values(), ids=lambda m: m.tag)
@pytest.mark.parametrize("name", [name for name in ALL if name != "simulated"])  # which needs SimGrid
def test_a_program_is_built_once(name: str, mpi: Mpi) -> None:
    if ALL[name].language == "fortran" and (not mpi.mpifort or mpi.kind == "impi"):
        pytest.skip("Fortran with mpi_f08 cannot be built for this MPI here")
    path = programs.compiled(mpi, name)
    made = path.stat().st_mtime_ns
    assert path.name == name and programs.compiled(mpi, name).stat().st_mtime_ns == made
