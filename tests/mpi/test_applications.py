# SPDX-License-Identifier: BSD-3-Clause
"""Programs that others wrote and built, as Debian ships them, with the library in front of them: their own checks pass, and what they print is
what they print without it. `--long`, where they are installed:

    apt-get install --no-install-recommends hpcc lammps scalapack-mpi-test
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi

RANKS = 4
LIBRARIES = Path("/usr/lib")
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 25
run 100
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def installed(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}: apt-get install {package}")
    return found


def served(job) -> str:
    """What the ranks printed; the library says at their end that it had a part in it."""
    job.ok()
    assert re.search(r"allreduce +[1-9]", job.stdout + job.stderr), job.describe()
    return job.stdout


@pytest.mark.only(abi="openmpi", origin="system")
def test_hpcc(mpi: Mpi, run_mpi: Callable, tmp_path: Path) -> None:
    """HPL, PTRANS, RandomAccess, FFT and b_eff check their own results."""
    program = installed("hpcc", "hpcc")
    text = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text()
    (tmp_path / "hpccinf.txt").write_text(re.sub(r"^1000 +Ns", "600 Ns", text, flags=re.MULTILINE))
    served(run_mpi(mpi, RANKS, [program], {"STRETTO_STATS": "text"}, timeout=900, cwd=tmp_path))
    report = (tmp_path / "hpccoutf.txt").read_text()
    assert "Success=1" in report and "MPIRandomAccess_Errors=0" in report and "FAILED" not in report
    assert report.count("PASSED") >= 11, report[-3000:]


@pytest.mark.only(abi="openmpi", origin="system")
def test_lammps(mpi: Mpi, run_mpi: Callable, tmp_path: Path) -> None:
    """A Lennard-Jones melt: temperatures, energies and pressures to all digits printed."""
    program = installed("lmp", "lammps")
    (tmp_path / "in.melt").write_text(MELT)

    def states(text: str) -> list[str]:
        return re.findall(r"^ +\d+(?: +-?[\d.]+){5} *$", text, re.MULTILINE)

    line = [program, "-in", "in.melt"]
    plain = states(run_mpi(mpi, RANKS, line, preload=False, timeout=300, cwd=tmp_path).ok().stdout)
    ours = states(served(run_mpi(mpi, RANKS, line, {"STRETTO_STATS": "text"}, timeout=300, cwd=tmp_path)))
    assert len(plain) == 5 and ours == plain


@pytest.mark.only(origin="system")
@pytest.mark.parametrize("program", ["xdlu", "xzlu", "xdllt", "xdqr", "xdls", "xdsep"])
def test_scalapack(mpi: Mpi, run_mpi: Callable, program: str) -> None:
    """ScaLAPACK's own tests: factorisations, least squares and eigenvalues, on all grids of up to four processes."""
    folder = next(LIBRARIES.glob(f"*/scalapack/{mpi.kind}-tests"), None)
    if folder is None:
        pytest.skip("no tests of ScaLAPACK: apt-get install scalapack-mpi-test")
    text = served(run_mpi(mpi, RANKS, [folder / program], {"STRETTO_STATS": "text"}, timeout=900, cwd=folder))
    counts = {what: int(n) for n, what in re.findall(r"^ *(\d+) tests completed and (passed|failed)", text, re.MULTILINE)}
    assert counts.get("passed", 0) > 100 and counts["failed"] == 0, text[-2000:]


@pytest.mark.only(origin="system")
@pytest.mark.parametrize("program", [f"{kind}pb{level}tst" for kind in "dz" for level in (1, 2, 3)])
def test_parallel_blas(mpi: Mpi, run_mpi: Callable, program: str) -> None:
    folder = next(LIBRARIES.glob(f"*/scalapack/{mpi.kind}-tests/PBLAS"), None)
    if folder is None:
        pytest.skip("no tests of PBLAS: apt-get install scalapack-mpi-test")
    text = served(run_mpi(mpi, RANKS, [folder / program], {"STRETTO_STATS": "text"}, timeout=900, cwd=folder))
    rows = re.findall(r"^ *[|]? *P\w+ +(\d+) +(\d+) +(\d+) +(\d+) *$", text, re.MULTILINE)
    assert rows and all(int(failed) == 0 for _, _, failed, _ in rows), text[-2000:]
    assert sum(int(passed) for _, passed, _, _ in rows) > 100
