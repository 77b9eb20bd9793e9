# SPDX-License-Identifier: BSD-3-Clause
"""Applications as Debian ships them, with the library preloaded.

Their own checks pass, and they print the same as without the library. These tests need `--long` and
these packages:

    apt-get install --no-install-recommends hpcc lammps scalapack-mpi-test cp2k
    apt-get install --no-install-recommends quantum-espresso nwchem-openmpi mumps-test
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi

RANKS = 4
LIBRARIES = Path("/usr/lib")
MELT = Path(__file__).resolve().parents[1] / "fixtures/melt.lammps"
LAMMPS = ["lmp", "-var", "size", "10", "-var", "steps", "100", "-var", "thermo", "25"]

WATER = """start water
geometry units angstrom
 O 0.0 0.0 0.117
 H 0.0 0.757 -0.469
 H 0.0 -0.757 -0.469
end
basis
 * library cc-pvdz
end
scf; thresh 1e-8; end
dft; xc b3lyp; end
tce; ccsd(t); end
task scf gradient
task dft energy
task mp2 energy
task tce energy
"""
DIAMOND = """&control
 calculation='scf', pseudo_dir='.', outdir='tmp', tprnfor=.true., tstress=.true.
/
&system
 ibrav=2, celldm(1)=6.64245, nat=2, ntyp=1, ecutwfc=40, occupations='smearing', smearing='mp', degauss=0.02
/
&electrons
 conv_thr=1e-10
/
ATOMIC_SPECIES
 C 12.01078 C_3.98148.UPF
ATOMIC_POSITIONS alat
 C 0 0 0
 C 0.25 0.25 0.26
K_POINTS automatic
 4 4 4 0 0 0
"""
DIMER = """&GLOBAL
  PROJECT dimer
  RUN_TYPE MD
  PRINT_LEVEL LOW
&END GLOBAL
&MOTION
  &MD
    STEPS 3
    TIMESTEP 0.5
  &END MD
&END MOTION
&FORCE_EVAL
  METHOD QS
  &DFT
    BASIS_SET_FILE_NAME BASIS_MOLOPT
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 6 6 6
    &END CELL
    &COORD
      O 0.0 0.0 0.0655
      H 0.0 0.757 -0.52
      H 0.0 -0.757 -0.52
      O 2.9 0.0 0.0655
      H 2.9 0.757 -0.52
      H 2.9 -0.757 -0.52
    &END COORD
    &KIND H
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-MOLOPT-SR-GTH
      POTENTIAL GTH-PADE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def installed(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}: apt-get install {package}")
    return found


def served(job, collective: str = "allreduce") -> str:
    """Returns the ranks' output. The library's statistics must show that it served calls."""
    job.ok()
    assert re.search(rf"\b{collective} +[1-9]", job.stdout + job.stderr), job.describe()
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


@pytest.fixture
def same_with_it(mpi: Mpi, run_mpi: Callable, tmp_path: Path) -> Callable:
    """same_with_it(argv, pattern, n) runs the program with and without the library.

    The program must print n matches of the pattern, and the same ones in both runs.
    """

    def check(argv: list, pattern: str, n: int) -> None:
        def found(text: str) -> list:
            return re.findall(pattern, text, re.MULTILINE)

        env = {"OMP_NUM_THREADS": "1", "STRETTO_STATS": "text"}
        plain = run_mpi(mpi, RANKS, argv, env, preload=False, timeout=300, cwd=tmp_path).ok()
        ours = served(run_mpi(mpi, RANKS, argv, env, timeout=300, cwd=tmp_path))
        assert len(found(plain.stdout)) == n, plain.describe()
        assert found(ours) == found(plain.stdout)

    return check


@pytest.mark.only(abi="openmpi", origin="system")
@pytest.mark.parametrize(
    ("package", "argv", "text", "pattern", "n"),
    [
        # A Lennard-Jones melt. All printed digits of temperatures, energies and pressures count.
        pytest.param(
            "lammps", [*LAMMPS, "-in", "in.melt"], MELT.read_text(), r"^ +\d+(?: +-?[\d.]+){5} *$", 5, id="lammps"
        ),
        # Energies of water by four methods. One-sided communication reads and writes the arrays
        # while their owners are in collectives.
        pytest.param(
            "nwchem-openmpi",
            ["nwchem.openmpi", "water.nw"],
            WATER,
            r"(?:Total \w+ energy|total energy / hartree) *=? +(-\d+\.\d{10})",
            8,
            id="nwchem",
        ),
        # Molecular dynamics of two molecules of water. The program makes and frees hundreds of
        # communicators.
        pytest.param(
            "cp2k", ["cp2k.psmp", "-i", "dimer.inp"], DIMER, r"Total FORCE_EVAL .*: +(-\d+\.\d{12})", 4, id="cp2k"
        ),
    ],
)
def test_prints_the_same(
    same_with_it: Callable, tmp_path: Path, package: str, argv: list[str], text: str, pattern: str, n: int
) -> None:
    """The last argument names the input."""
    program = installed(argv[0], package)
    (tmp_path / argv[-1]).write_text(text)
    same_with_it([program, *argv[1:]], pattern, n)


@pytest.mark.only(abi="openmpi", origin="system")
def test_quantum_espresso(same_with_it: Callable, tmp_path: Path) -> None:
    """Energy, forces and stress of diamond. Two pools of k-points have a communicator each."""
    program = installed("pw.x", "quantum-espresso")
    potential = Path("/usr/share/doc/quantum-espresso/examples/EPW/diamond/pp/C_3.98148.UPF.gz")
    if not potential.exists():
        pytest.skip("no pseudopotentials: apt-get install quantum-espresso-data")
    (tmp_path / "C_3.98148.UPF").write_bytes(gzip.decompress(potential.read_bytes()))
    (tmp_path / "diamond.in").write_text(DIAMOND)
    same_with_it(
        [program, "-nk", "2", "-in", "diamond.in"], r"^(!.*Ry|.*atom +\d+ type.*force =.*|.*total +stress.*)$", 4
    )


@pytest.mark.only(abi="openmpi", origin="system")
@pytest.mark.parametrize("kind", ["d", "z"])
def test_mumps(mpi: Mpi, run_mpi: Callable, kind: str) -> None:
    folder = LIBRARIES / "mumps"
    if not folder.is_dir():
        pytest.skip("no tests of MUMPS: apt-get install mumps-test")
    matrix = folder / f"input_simpletest_{'cmplx' if kind == 'z' else 'real'}"
    text = served(
        run_mpi(mpi, RANKS, ["sh", "-c", f"exec {folder}/{kind}simpletest < {matrix}"], {"STRETTO_STATS": "text"}),
        "reduce",
    )
    solution = re.search(r"Solution is +(.*)", text)
    assert solution, text[-2000:]
    numbers = [float(x) for x in re.findall(r"-?\d\.\d+(?:E[-+]\d+)?", solution[1])]
    assert [round(x, 9) for x in numbers if abs(x) > 1e-9] == [1, 2, 3, 4, 5]


@pytest.mark.only(origin="system")
@pytest.mark.parametrize("program", ["xdlu", "xzlu", "xdllt", "xdqr", "xdls", "xdsep"])
def test_scalapack(mpi: Mpi, run_mpi: Callable, program: str) -> None:
    """ScaLAPACK's own tests of factorisations, least squares and eigenvalues.

    They run on all grids of up to four processes.
    """
    folder = next(LIBRARIES.glob(f"*/scalapack/{mpi.kind}-tests"), None)
    if folder is None:
        pytest.skip("no tests of ScaLAPACK: apt-get install scalapack-mpi-test")
    text = served(run_mpi(mpi, RANKS, [folder / program], {"STRETTO_STATS": "text"}, timeout=900, cwd=folder))
    counts = {
        what: int(n) for n, what in re.findall(r"^ *(\d+) tests completed and (passed|failed)", text, re.MULTILINE)
    }
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
