# SPDX-License-Identifier: BSD-3-Clause
"""MPIs that Stretto does not serve, by any name: stubs, wrappers, the standard ABI.

Programs give right results, and Stretto writes at most one message about it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from stretto.mpi import finding

ABIS = sorted({m.abi for m in finding.find_abis()})
ROOT = Path(__file__).resolve().parents[2]
OTHERS = {"stub": [], "numbers": ["-DOTHER_NUMBERS"], "pointers": ["-DOTHER_POINTERS"]}
OWN = '"other_mpi.h"'


def cc(*arguments: object) -> None:
    line = ["cc", "-O1", "-g", f"-I{harness.PROGRAMS}", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"


def rest() -> str:
    """The functions of the host that Stretto looks up and that other_mpi.c does not define itself."""
    table = (ROOT / "src/mpi/host/host.hpp").read_text()
    required = re.search(r"#define STRETTO_HOST_REQUIRED\(X\)(.*?)\n\n", table, re.DOTALL).group(1)
    written = {
        "Init",
        "Finalize",
        "Comm_rank",
        "Comm_size",
        "Barrier",
        "Bcast",
        "Allreduce",
        "Info_create",
        "Info_free",
        "Initialized",
    }
    return " ".join(f"UNUSED({name})" for name in re.findall(r"X\((\w+)\)", required) if name not in written)


def runs_right(argv: list[object], abi: str, **env: str) -> None:
    full = harness.clean_environment() | {"LD_PRELOAD": str(harness.library(abi))} | env
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, env=full, timeout=30, check=False)
    assert done.returncode == 0 and done.stdout == 'RESULT {"right": true}\n', done
    lines = done.stderr.splitlines()
    assert len(lines) <= 1 and all("standing aside" in line for line in lines), done


@pytest.fixture(params=OTHERS)
def other(request, tmp_path) -> tuple[Path, list[str]]:
    flags = OTHERS[request.param]
    library = tmp_path / "libother.so"
    cc("-shared", "-fPIC", *flags, f"-DREST={rest()}", harness.PROGRAMS / "other_mpi.c", "-o", library)
    return library, flags


@pytest.mark.parametrize("abi", ABIS)
class TestOfOneProcess:
    def test_linked(self, other, abi, tmp_path):
        library, flags = other
        program = tmp_path / "user"
        cc(
            *flags,
            f"-DHEADER={OWN}",
            harness.PROGRAMS / "other_mpi_user.c",
            library,
            f"-Wl,-rpath,{tmp_path}",
            "-o",
            program,
        )
        runs_right([program], abi)
        runs_right([program], abi, STRETTO="off")

    def test_loaded_locally(self, other, abi, tmp_path):
        """Like a Python module, neither the caller nor its MPI is in the global scope."""
        library, flags = other
        user = tmp_path / "libuser.so"
        cc(
            "-shared",
            "-fPIC",
            "-DUSER=user",
            *flags,
            f"-DHEADER={OWN}",
            harness.PROGRAMS / "other_mpi_user.c",
            library,
            f"-Wl,-rpath,{tmp_path}",
            "-o",
            user,
        )
        runs_right([sys.executable, "-c", f"import ctypes; raise SystemExit(ctypes.CDLL('{user}').user())"], abi)

    def test_part_of_the_program(self, other, abi, tmp_path):
        """The MPI is linked into the program, and one of the program's libraries calls it."""
        _, flags = other
        user, program = tmp_path / "libuser.so", tmp_path / "program"
        cc(
            "-shared",
            "-fPIC",
            "-DUSER=user",
            *flags,
            f"-DHEADER={OWN}",
            harness.PROGRAMS / "other_mpi_user.c",
            "-o",
            user,
        )
        cc(
            "-rdynamic",
            *flags,
            f"-DREST={rest()}",
            harness.PROGRAMS / "other_mpi_main.c",
            harness.PROGRAMS / "other_mpi.c",
            user,
            f"-Wl,-rpath,{tmp_path}",
            "-o",
            program,
        )
        runs_right([program], abi)

    def test_a_stub_beside_an_mpi(self, abi, tmp_path):
        """The program calls its stub, although a real MPI is loaded, too."""
        library, program = tmp_path / "libother.so", tmp_path / "user"
        cc("-shared", "-fPIC", harness.PROGRAMS / "other_mpi.c", "-o", library)
        cc(f"-DHEADER={OWN}", harness.PROGRAMS / "other_mpi_user.c", library, f"-Wl,-rpath,{tmp_path}", "-o", program)
        real = tmp_path / "libmpi.so.999"
        cc(
            "-shared",
            "-fPIC",
            "-DOTHER_POINTERS",
            f"-DREST={rest()}",
            "-Wl,-soname,libmpi.so.999",
            harness.PROGRAMS / "other_mpi.c",
            "-o",
            real,
        )
        loader = tmp_path / "loader.so"
        (tmp_path / "loader.c").write_text(
            "#include <dlfcn.h>\n__attribute__((constructor)) static void load(void) "
            f'{{ dlopen("{real}", RTLD_NOW | RTLD_LOCAL); }}\n'
        )
        cc("-shared", "-fPIC", tmp_path / "loader.c", "-o", loader)
        runs_right([program], abi, LD_PRELOAD=f"{loader}:{harness.library(abi)}")


@pytest.mark.parametrize("abi", ABIS)
def test_the_stubs_of_mumps(abi, tmp_path):
    """Debian's libmumps-seq has MPI_Init, a few other C names, and no PMPI_ names."""
    found = sorted(Path("/usr/lib").glob("*/libmpiseq_seq*.so"))
    if not found:
        pytest.skip("libmumps-seq is not installed")
    source, program = tmp_path / "user.c", tmp_path / "user"
    source.write_text(
        "#include <stdio.h>\nint MPI_Init(int*, char***), MPI_Finalize(void);\n"
        'int main(void) { MPI_Init(0, 0); MPI_Finalize(); puts("RESULT {\\"right\\": true}"); return 0; }\n'
    )
    cc(source, found[0], "-o", program)
    runs_right([program], abi)
    runs_right([program], abi, STRETTO="off")


@pytest.mark.only(abi="mpich")
def test_programs_of_the_standard_abi(mpi, run_mpi, tmp_path):
    folder = mpi.prefix / "lib"
    if not (mpi.prefix / "include" / "mpi_abi.h").exists() or not (folder / "libmpi_abi.so.1").exists():
        pytest.skip("this MPI has no standard ABI")
    program = tmp_path / "user"
    cc(
        f"-I{mpi.prefix / 'include'}",
        "-DHEADER=<mpi_abi.h>",
        harness.PROGRAMS / "other_mpi_user.c",
        folder / "libmpi_abi.so.1",
        f"-Wl,-rpath,{folder}",
        "-Wl,--allow-shlib-undefined",
        "-o",
        program,
    )
    job = run_mpi(mpi, 2, [program]).ok()
    assert job.results() == [{"right": True}] * 2, job.describe()
    assert len(job.messages()) == 1 and "MPI 5 ABI" in job.messages()[0], job.describe()
