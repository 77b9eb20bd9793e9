# SPDX-License-Identifier: BSD-3-Clause
"""MPI 5's standard ABI: programs that are linked to libmpi_abi, of any MPI that has it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import harness
import pytest
import typer
from oracle import SMALL_RING, seed
from stretto.mpi import Mpi, choosing, finding, wheels
from stretto.mpi.abis import STANDARD

pytestmark = [pytest.mark.only(abi="standard"), pytest.mark.every]
MPIS = [mpi for mpi in finding.find_abis() if mpi.is_standard and mpi.include]


def cc(*arguments: object) -> None:
    done = subprocess.run(["cc", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stderr}"


@pytest.fixture(scope="module")
def one_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that a plain compiler has built once, against the first MPI's mpi_abi.h. It has no path to any MPI."""
    folder = tmp_path_factory.mktemp("standard")
    (folder / "mpi.h").write_text(f'#include "{MPIS[0].include}/mpi_abi.h"\n')
    source, program = harness.PROGRAMS / "standard_abi.c", folder / "standard_abi"
    flags = ("-O1", "-D_GNU_SOURCE", f"-I{folder}", f"-I{harness.PROGRAMS}", "-Wl,--allow-shlib-undefined")
    cc(*flags, source, MPIS[0].library, "-o", program)
    return program


def digests(job: harness.Job) -> list[str]:
    return [result["digest"] for result in sorted(job.results(), key=lambda result: result["rank"])]


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(5, marks=pytest.mark.long)])
def test_one_binary_runs_on_every_mpi(run_mpi: Callable, one_binary: Path, ranks: int) -> None:
    plain = [digests(run_mpi(mpi, ranks, [one_binary], preload=False).ok()) for mpi in MPIS]
    for mpi in MPIS:
        job = run_mpi(mpi, ranks, [one_binary]).ok()
        assert all(result["calls"] == result["served"] > 200 for result in job.results()), job.describe()
        assert [digests(job)] * len(MPIS) == plain and job.messages() == [], job.describe()


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_against_oracle(mpi: Mpi, run_mpi: Callable, build_cxx: Callable, ranks: int) -> None:
    line = [build_cxx("differential.cpp"), "--cases", "300", "--seed", str(seed() + ranks), "--expect-native", "99"]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=120).ok()
    assert "300 cases ok, with us" in job.stdout


def test_reductions_against_oracle(mpi: Mpi, run_mpi: Callable, build_cxx: Callable) -> None:
    line = [build_cxx("reductions.cpp"), "--cases", "600", "--seed", str(seed()), "--expect-native", "100"]
    job = run_mpi(mpi, 3, line, env=SMALL_RING, timeout=120).ok()
    assert "600 cases ok, with us" in job.stdout


def test_errors_and_threads(mpi: Mpi, run_mpi: Callable, build_program: Callable) -> None:
    """Each rank's error has the class that the standard names, and threads have communicators of their own."""
    cases = ["truncate:bcast:40", "count:gather:50000", "type:bcast:50000", "root:bcast:50000", "op:allreduce:40"]
    job = run_mpi(mpi, 2, [build_program(mpi, "errors_calls.c"), *cases]).ok()
    seen = {(r["case"], r["rank"]): r["seen"] for r in job.results()}
    assert all(r["goes_on"] for r in job.results()) and {seen[case, 0] for case in cases} == {"SUCCESS"}
    assert [seen[case, 1] for case in cases] == ["TRUNCATE", "COUNT", "TYPE", "ROOT", "OP"]
    job = run_mpi(mpi, 2, [build_program(mpi, "thread_order.c")]).ok()
    assert all(result["path"] in ("inline", "cico") for result in job.results()), job.describe()


def test_explain_says_that_shared_memory_serves(mpi: Mpi, run_mpi: Callable, build_program: Callable) -> None:
    job = run_mpi(mpi, 3, [build_program(mpi, "some_ranks.c")], env={"STRETTO_EXPLAIN": "1"}).ok()
    assert "communicator 0 of 3 ranks, over shared memory" in job.stderr, job.describe()


def test_a_library_of_another_abi_stands_aside(mpi: Mpi, run_mpi: Callable, one_binary: Path) -> None:
    (native,) = (each for each in finding.find_all() if each.mpiexec == mpi.mpiexec)
    job = run_mpi(mpi, 2, [one_binary], preload=str(harness.library(native.abi))).ok()
    assert all(result["served"] == 0 for result in job.results())
    assert len(job.messages()) == 1 and "MPI 5 ABI" in job.messages()[0], job.describe()


def test_pmpi_names_in_a_library_of_their_own(mpi: Mpi, run_mpi: Callable, one_binary: Path, tmp_path: Path) -> None:
    """Some builds of MPICH have the PMPI_ names in libpmpi_abi, and libmpi_abi only calls them."""
    shown = subprocess.run(["nm", "-D", "--defined-only", mpi.library], capture_output=True, text=True, check=True)
    names = sorted(set(re.findall(r" PMPI_(\w+)$", shown.stdout, re.MULTILINE)))
    jumps = [f".globl MPI_{n}\n.type MPI_{n},@function\nMPI_{n}: jmp *PMPI_{n}@GOTPCREL(%rip)" for n in names]
    (tmp_path / "jumps.s").write_text("\n".join(jumps) + '\n.section .note.GNU-stack,"",@progbits\n')
    (tmp_path / "libpmpi_abi.so.1").symlink_to(mpi.library)
    soname = STANDARD.sonames[0]
    needed = tmp_path / "needed.so"
    cc("-shared", "-Wl,-soname,libpmpi_abi.so.1", "-x", "c", "/dev/null", "-o", needed)
    cc(
        *("-shared", "-Wl,--no-as-needed", f"-Wl,-soname,{soname}", f"-Wl,-rpath,{tmp_path}"),
        *(tmp_path / "jumps.s", needed, "-o", tmp_path / soname),
    )
    folder = mpi.library.parent
    paths = {"LD_LIBRARY_PATH": f"{tmp_path}:{folder}:{folder / mpi.kind}"}  # what the MPI itself needs is there
    job = run_mpi(mpi, 2, [one_binary], env=paths).ok()
    assert all(result["calls"] == result["served"] for result in job.results()), job.describe()
    assert job.messages() == []


def test_a_wrapper_of_another_mpi_is_not_served(mpi: Mpi, run_mpi: Callable, one_binary: Path, tmp_path: Path) -> None:
    """A library that has this ABI may call another MPI, and its calls would have handles of that MPI's ABI."""
    other, loader = tmp_path / "libmpi.so.99", tmp_path / "loader.so"
    cc("-shared", "-fPIC", "-DOTHER_POINTERS", "-DREST=", harness.PROGRAMS / "other_mpi.c", "-o", other)
    (tmp_path / "loader.c").write_text(
        "#include <dlfcn.h>\n__attribute__((constructor)) static void load(void) "
        f'{{ dlopen("{other}", RTLD_NOW | RTLD_LOCAL); }}\n'
    )
    cc("-shared", "-fPIC", tmp_path / "loader.c", "-o", loader)
    job = run_mpi(mpi, 2, [one_binary], preload=f"{loader}:{harness.library(mpi.abi)}").ok()
    assert all(result["served"] == 0 for result in job.results())
    assert len(job.messages()) == 1 and "wraps another MPI" in job.messages()[0], job.describe()


PYTHON_JOB = """
from mpi4py import MPI
import ctypes, numpy
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
for n in (1, 1000, 300_000):
    data = numpy.arange(n) if rank == 0 else numpy.empty(n, dtype=int)
    comm.Bcast(data)
    sums = numpy.empty(n)
    comm.Allreduce(numpy.full(n, rank + 1.0), sums)
    assert (data == numpy.arange(n)).all() and (sums == size * (size + 1) / 2).all()
assert comm.allreduce({rank}, op=lambda a, b: a | b) == set(range(size))
ours = ctypes.CDLL(None)
ours.stretto_last_path.restype = ctypes.c_char_p
comm.Barrier()
print("served by", ours.stretto_last_path().decode())
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_one_mpi4py_runs_on_every_mpi(run_mpi: Callable, tmp_path: Path) -> None:
    """Python's module is built once, from source, with the first MPI's mpicc_abi."""
    first = MPIS[0]
    python = first.prefix / "bin" / "python"
    if first.wrapper_words or not python.exists():
        pytest.skip("needs mpicc_abi and the Python of a wheel's environment")
    line = [python, *"-m pip install -q --no-deps --no-binary mpi4py --target".split(), tmp_path, wheels.MPI4PY]
    env = {**os.environ, **first.environment(), "MPICC": str(first.mpicc), "CFLAGS": "-O0 -g0"}
    built = subprocess.run(list(map(str, line)), capture_output=True, text=True, env=env, check=False)
    if built.returncode:
        pytest.skip(f"mpi4py cannot be built: {built.stderr[-300:]}")
    for mpi in MPIS:
        job = run_mpi(mpi, 3, [python, "-c", PYTHON_JOB], env={"PYTHONPATH": str(tmp_path)}).ok()
        assert job.stdout.count("served by inline") == 3, job.describe()


def test_the_mpi_of_a_program(mpi: Mpi, one_binary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tool finds the library by what the program is linked to, also where the user names the MPI."""
    found = choosing.mpi_of(one_binary)
    assert found and found.is_standard
    (native,) = (each for each in finding.find_all() if each.mpiexec == mpi.mpiexec)
    assert choosing.check_mpi(native, one_binary, []) == choosing.check_mpi(mpi, one_binary, []) == mpi
    assert finding.find(f"{mpi.kind}@standard").is_standard and not finding.find(mpi.kind).is_standard
    for other in [each for each in finding.find_all() if not finding.standard(each)][:1]:
        with pytest.raises(typer.Exit):
            choosing.check_mpi(other, one_binary, [])
        assert "--mpi" in (said := capsys.readouterr().err) and "@standard, or leave out --mpi" in said
