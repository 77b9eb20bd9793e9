# SPDX-License-Identifier: BSD-3-Clause
"""What dev/wheel.py makes for AArch64, and the C++ tests, run by qemu's user emulation.

The emulator runs threads as this machine orders memory, so it finds no missing fence.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from stretto.core.paths import build_root
from stretto.mpi import wheels
from stretto.mpi.abis import ABIS
from stretto.native import build, portable, programs
from stretto.packaging import parts

ROOT = Path(__file__).resolve().parents[2]
EMULATED = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
WITHOUT_MPI = '#include <stdio.h>\nint main(void) { return puts("runs") < 0; }\n'
PAGES_OF_64K = ["-p", "65536"]  # as some systems for AArch64 have them
# mremap of shared pages, RLIMIT_AS, ioctl(SIOCOUTQNSD), descriptors of a message that is cut off,
# processes that share memory and are no threads.
EMULATOR_LACKS = (
    "Segment.PeersMapMoreOfItAsItFills",
    "Memfd.ALongerMappingOfTheSamePagesNeedsNoDescriptor",
    "SysMemory.AddressSpaceIsTheLimitsRest",
    "Connected.WritableBelowTheMarkOnly",
    "SysMailbox.DropsMalformedLettersAndClosesTheirDescriptors",
    "Stacks.AThreadOfThisProcess",
    "Stacks.ThroughALibrary",
)
TAKE_MINUTES = ("ReduceForms.*", "Candidates.*")
OF_RANKS = ("Agreement", "Errors", "LongMessages", "ShmTransport", "TcpTransportTest", "Ranks/Collectives")
FILTERS = {
    "unit": f"-{':'.join([*EMULATOR_LACKS, *TAKE_MINUTES])}",
    "threads": ":".join(f"{name}.*" for name in OF_RANKS),
}
pytestmark = [
    pytest.mark.long,
    pytest.mark.xdist_group("binary wheel"),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not all(map(shutil.which, ("aarch64-linux-gnu-g++", EMULATED[0]))),
        reason="needs g++-aarch64-linux-gnu and qemu-user",
    ),
]


def run(*line: str | Path, status: int = 0) -> str:
    done = subprocess.run(line, capture_output=True, text=True, timeout=900)
    assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder prebuilt/ of the wheel."""
    folder = tmp_path_factory.mktemp("aarch64")
    subprocess.run([ROOT / "dev/wheel.py", "--machine", "aarch64", folder], check=True, timeout=1700)
    (made,) = folder.glob("*-manylinux_2_28_aarch64.whl")
    zipfile.ZipFile(made).extractall(folder)
    for path in (folder / "stretto/prebuilt").rglob("*"):
        path.chmod(0o755)
    return folder / "stretto/prebuilt"


def test_it_carries_what_the_other_wheel_does(ready: Path) -> None:
    names = {path.name for path in ready.iterdir()}
    assert {target for target in parts.NATIVE if not {target, f"lib{target}.so"} & names} == {"stretto-node-model"}
    for abi in ABIS:
        assert {path.name for path in (ready / abi).iterdir()} == set(programs.carried())
    for path in (path for path in ready.rglob("*") if path.is_file()):
        assert "AArch64" in run("readelf", "-h", path)
        assert max(portable.needed_versions(path)) <= (2, 28), path


def test_schedules_are_verified(ready: Path) -> None:
    run(*EMULATED, ready / "stretto-verify", "--max-ranks", "3", "--hierarchies", "0")


def test_a_program_without_mpi_runs_with_each_library(ready: Path, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(WITHOUT_MPI)
    run("aarch64-linux-gnu-gcc", tmp_path / "program.c", "-o", tmp_path / "program")
    for abi in ABIS:
        library = ready / f"libstretto-{abi}.so"
        assert run(*EMULATED, "-E", f"LD_PRELOAD={library}", tmp_path / "program") == "runs\n"


@pytest.mark.parametrize("pages", [[], PAGES_OF_64K], ids=["4K", "64K"])
def test_ranks_of_mpich_are_served(ready: Path, pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher is this machine's. It starts emulators."""
    mpi = wheels.install_wheel("mpich")
    library = build_root() / f"wheel/aarch64/mpich-{mpi.version}.data/data/lib"
    monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0")  # the emulator lacks process_vm_readv
    variables = {"LD_PRELOAD": ready / "libstretto-mpich.so", "LD_LIBRARY_PATH": library, "STRETTO_STATS": "text"}
    words = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    for ranks in ("2", "3"):
        program = [ready / "mpich/sample_sort", "--keys", "20000"]
        said = run(mpi.mpiexec, "-n", ranks, *EMULATED, *pages, *words, *program)
        assert "checksum" in said and "communicator 0" in said, said


@pytest.mark.parametrize(
    ("tests", "pages"),
    [("unit", []), ("threads", []), ("threads", PAGES_OF_64K)],
    ids=["unit", "threads", "threads, pages of 64K"],
)
def test_cpp_tests_pass(tests: str, pages: list[str]) -> None:
    if not Path("/usr/src/googletest").exists():
        pytest.skip("needs the sources of GoogleTest: googletest")
    program = build.ensure_built("aarch64", [tests]) / "tests" / tests
    said = run(*EMULATED, *pages, program, f"--gtest_filter={FILTERS[tests]}")
    assert re.search(r"\[  PASSED  \] \d{2,} tests", said), said[-2000:]
