# SPDX-License-Identifier: BSD-3-Clause
"""The library in other people's processes: what it needs, what it shows, and where it stays quiet."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import harness
import pytest
from stretto.mpi import finding

pytestmark = pytest.mark.every

ABIS = sorted({m.abi for m in finding.find_abis()})


def _tool(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture(params=ABIS)
def library(request):
    return str(harness.library(request.param))


def test_needs_libc_only(library):
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", _tool("readelf", "-d", library)))
    assert needed <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}, needed


def test_undefined_symbols_name_no_mpi_and_no_cxx_library(library):
    undefined = {line.split()[-1].split("@")[0] for line in _tool("nm", "-D", "--undefined-only", library).splitlines()}
    foreign = {s for s in undefined if re.match(r"P?MPI_|ompi_|MPIR?_|_ZSt|_ZNSt|__cxa_throw|_Znw|_Zdl|hwloc", s)}
    assert not foreign, foreign


def test_exports_mpi_names_and_ours_only(library):
    exported = {line.split()[-1].split("@")[0] for line in _tool("nm", "-D", "--defined-only", library).splitlines()}
    assert {"MPI_Bcast", "PMPI_Bcast", "MPI_Allgatherv", "PMPI_Scatterv", "stretto_last_path"} <= exported
    extensions = () if "openmpi" in os.path.basename(library) else ("Request_is_complete", "Stream_progress")
    strange = {s for s in exported if not re.match(r"P?MPI_[A-Z][a-z]|stretto_", s)}
    strange -= {f"{prefix}{name}" for prefix in ("MPIX_", "PMPIX_") for name in extensions}
    assert not strange, strange
    if "openmpi" in os.path.basename(library):
        assert not {s for s in exported if s.endswith("_c")}, "Open MPI 4 and 5 have no _c functions"


def test_no_more_than_the_compilers_own_constructors(library):
    """frame_dummy in .init_array: nothing of ours runs when the library is loaded, nothing when it is unloaded."""
    sections = dict(
        re.findall(r"\] (\.(?:init|fini)_array)\s+\S+\s+\S+\s+\S+\s+(\S+)", _tool("readelf", "-SW", library))
    )
    symbols = _tool("nm", library)
    assert int(sections.get(".init_array", "0"), 16) <= 8, sections
    assert int(sections.get(".fini_array", "0"), 16) <= 8, sections
    assert "_GLOBAL__sub_" not in symbols, "an object with a constructor or destructor of its own"


@pytest.mark.parametrize(
    "argv",
    [["sh", "-c", "echo fine; ls / >/dev/null"], [sys.executable, "-c", "print('fine')"], ["env", "echo", "fine"]],
    ids=["sh", "python", "env"],
)
def test_inert_where_there_is_no_mpi(library, argv):
    """No output, no threads, no files: even with options that are wrong."""
    env = os.environ | {"LD_PRELOAD": library, "STRETTO_NONSENSE": "1", "STRETTO_WAIT": "nonsense"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=30, check=True)
    assert done.stdout == "fine\n" and done.stderr == ""


def test_makes_nothing_in_a_process_without_mpi(library):
    """Neither descriptors nor shared mappings nor threads beyond what the process has without us."""
    script = (
        "import os; print(sorted(os.listdir('/proc/self/fd')), len(os.listdir('/proc/self/task')), "
        "[l for l in open('/proc/self/maps') if 'memfd' in l])"
    )
    plain = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    ours = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LD_PRELOAD": library},
    ).stdout
    assert ours == plain


def test_asking_us_before_mpi_is_loaded(library, tmp_path):
    """stretto_ functions answer in a process without MPI, and calling an MPI function there says what is wrong."""
    script = (
        "import ctypes; l = ctypes.CDLL(None); l.stretto_version.restype = ctypes.c_char_p; "
        "l.stretto_last_path.restype = ctypes.c_char_p; print(l.stretto_version().decode(), "
        "l.stretto_last_path().decode(), l.stretto_active())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=os.environ | {"LD_PRELOAD": library},
    )
    assert re.fullmatch(r"\d+\.\d+\S* \w+ 0\n", done.stdout), done


def test_the_wrong_abi_says_so_once_and_stands_aside(mpi, run_mpi, build_program):
    others = [abi for abi in ABIS if abi != mpi.abi]
    if not others:
        pytest.skip("only one ABI here")
    job = run_mpi(
        mpi, 3, [build_program(mpi, "options_check.c"), 1, 20_000], preload=str(harness.library(others[0]))
    ).ok()
    assert len(job.results()) == 3
    assert {r["bcast"] for r in job.results()} <= {"host", "none"}
    messages = job.messages()
    assert len(messages) == 1 and "standing aside" in messages[0], job.describe()


def test_both_abis_at_once(mpi, run_mpi, build_program):
    """A job script that preloads everything: the right one serves whichever comes first."""
    if len(ABIS) < 2:
        pytest.skip("only one ABI here")
    for order in (ABIS, ABIS[::-1]):
        chain = ":".join(str(harness.library(abi)) for abi in order)
        job = run_mpi(mpi, 2, [build_program(mpi, "options_check.c"), 1, 20_000], preload=chain).ok()
        assert len(job.results()) == 2 and len(job.messages()) < len(ABIS), job.describe()


def test_a_launcher_that_is_preloaded_itself(mpi, run_mpi, build_program):
    """LD_PRELOAD set in the user's shell reaches mpiexec and its helpers too."""
    prefix = ["env", f"LD_PRELOAD={harness.library(mpi.abi)}"]
    job = run_mpi(mpi, 2, [build_program(mpi, "options_check.c"), 1, 20_000], prefix=prefix).ok()
    assert {r["bcast"] for r in job.results()} == {"cico"} and job.messages() == [], job.describe()


PYTHON_JOB = """
from mpi4py import MPI
import numpy, ctypes
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
for n in (1, 1000, 300_000):
    data = numpy.arange(n) if rank == 0 else numpy.empty(n, dtype=int)
    comm.Bcast(data, root=0)
    assert (data == numpy.arange(n)).all()
    rows = numpy.empty((size, n), dtype=int)
    comm.Allgather(data + rank, rows)
    assert all((rows[r] == numpy.arange(n) + r).all() for r in range(size))
counts = [3 * r + 1 for r in range(size)]
whole = numpy.arange(sum(counts), dtype='d')
part = numpy.empty(counts[rank])
comm.Scatterv([whole, counts], part, root=size - 1)
back = numpy.empty(sum(counts))
comm.Gatherv(part, [back, counts], root=0)
assert rank or (back == whole).all()
assert comm.bcast({"a": [rank]} if rank == 1 else None, root=1) == {"a": [1]}
assert comm.allgather("x" * rank) == ["x" * r for r in range(size)]
ask = ctypes.CDLL(None).stretto_last_path
ask.restype = ctypes.c_char_p
print('RESULT {"path": "%s"}' % ask().decode(), flush=True)
"""


def test_python_that_loads_its_mpi_locally(mpi, run_mpi):
    if mpi.python is None:
        pytest.skip("this MPI has no Python with mpi4py")
    job = run_mpi(mpi, 2, [mpi.python, "-c", PYTHON_JOB], timeout=60).ok()
    assert [r["path"] in ("inline", "cico") for r in job.results()] == [True, True], job.describe()
    assert job.messages() == [], job.describe()
