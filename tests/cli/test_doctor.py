# SPDX-License-Identifier: BSD-3-Clause
"""doctor on set-ups that are broken on purpose: it names what is broken, and says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi, finding
from stretto.mpi.abis import ABI_OF_SONAME
from stretto.native import build

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "mpi" / "programs"
KEPT = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("STRETTO")}
KEPT |= {k: os.environ[k] for k in ("STRETTO_MPI_VENVS",) if k in os.environ}
KEPT |= {"XDG_CONFIG_HOME": "/dev/null", "PYTHONPATH": str(ROOT / "python")}
Doctor = Callable[..., dict[str, str]]
Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def doctor(stretto: Tool, tmp_path: Path) -> Doctor:
    """doctor(..., env={}, inside=[]) -> what is broken or worth a note: a text with the advice, by its subject."""

    def call(*arguments: str | Path, env: dict[str, str] | None = None, inside: list[str] | None = None):
        words = ["doctor", "--json", "-", *map(str, arguments)]
        if inside is None:
            done = stretto(*words, env=env, cwd=tmp_path)
        else:
            line = [*inside, "env", *(f"{k}={v}" for k, v in (env or {}).items()), sys.executable, "-m", "stretto"]
            done = subprocess.run([*line, *words], env=KEPT, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode in (0, 1), done.stderr
        verdicts = json.loads(done.stdout)["verdicts"]
        assert done.returncode == any(v["level"] == "bad" for v in verdicts)
        return {v["subject"]: f"{v['level']}: {v['finding']}. {v['advice']}" for v in verdicts if v["level"] != "good"}

    return call


def compiled(tmp_path: Path, text: str, *flags: str) -> Path:
    (tmp_path / "program.c").write_text(text)
    subprocess.run(["gcc", str(tmp_path / "program.c"), "-o", str(tmp_path / "program"), *flags], check=True)
    return tmp_path / "program"


@pytest.fixture(scope="module")
def mpis() -> dict[str, Mpi]:
    """An Open MPI and an MPICH."""
    found = {mpi.kind: mpi for mpi in reversed(finding.find_all()) if mpi.mpicc}
    if not {"openmpi", "mpich"} <= found.keys():
        pytest.skip("needs Open MPI and MPICH")
    return found


def a_program(mpi: Mpi) -> Path:
    return build.compile_program(mpi, [ROOT / "tests/cluster/programs/hello.c"], "cluster-hello", flags=["-O1", "-g"])


def own_mounts(tmp_path: Path, script: str) -> list[str]:
    """Words before a command that runs it with mounts of its own. Skips the test where that is forbidden."""
    flags = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    if subprocess.run(["unshare", *flags, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mount namespaces")
    return ["unshare", *flags, "sh", "-ec", script + '\nexec "$@"', "sh"]


# ---- LD_PRELOAD ----------------------------------------------------------------------------------


def test_the_library_for_another_mpi(doctor: Doctor, mpis: dict[str, Mpi]) -> None:
    said = doctor("--", a_program(mpis["openmpi"]), env={"LD_PRELOAD": str(build.library("mpich"))})
    assert "has the library for MPICH" in said["LD_PRELOAD"] and "stretto env --mpi openmpi" in said["LD_PRELOAD"]


def test_a_library_that_does_not_exist(doctor: Doctor) -> None:
    said = doctor("--", "true", env={"LD_PRELOAD": "/nowhere/libstretto-openmpi.so"})
    assert "/nowhere/libstretto-openmpi.so, which does not exist" in said["LD_PRELOAD"]
    assert "stretto env --library" in said["LD_PRELOAD"]


def test_a_library_on_a_file_system_without_programs(doctor: Doctor, tmp_path: Path) -> None:
    folder, library = tmp_path / "noexec", build.library("openmpi")
    folder.mkdir()
    inside = own_mounts(tmp_path, f"mount -t tmpfs -o noexec tmpfs {folder}; cp {library} {folder}")
    said = doctor("--", "true", env={"LD_PRELOAD": str(folder / library.name)}, inside=inside)
    assert "cannot be loaded" in said["LD_PRELOAD"] and "mounted noexec" in said["LD_PRELOAD"]


# ---- programs ------------------------------------------------------------------------------------


def test_a_static_program(doctor: Doctor, tmp_path: Path) -> None:
    text = "int MPI_Init(int* c, char*** v) { return !c || !v; }\nint main(void) { return MPI_Init(0, 0); }\n"
    program = compiled(tmp_path, text, "-static")
    assert "static MPI program" in (said := doctor("--", program)[str(program)]) and "without -static" in said
    program = compiled(tmp_path, text, "-rdynamic")
    assert "linked into the program" in (said := doctor("--", program)[str(program)]) and "no libmpi.a" in said


def test_an_mpi_that_is_not_found(doctor: Doctor, tmp_path: Path) -> None:
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    soname = next(name for name in ABI_OF_SONAME if name not in known)
    (tmp_path / "mpi.c").write_text("int MPI_Init(int* c, char*** v) { return !c || !v; }\n")
    line = ["gcc", "-shared", "-fPIC", "mpi.c", "-o", "libmpi.so", f"-Wl,-soname,{soname}"]
    subprocess.run(line, cwd=tmp_path, check=True)
    text = "int MPI_Init(int*, char***);\nint main(void) { return MPI_Init(0, 0); }\n"
    program = compiled(tmp_path, text, f"-L{tmp_path}", "-lmpi")
    said = doctor("--", program)[str(program)]
    assert f"needs {soname}, which the dynamic linker does not find" in said and "Load the module" in said


def test_no_mpi_program(doctor: Doctor, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexec app\n")
    script.chmod(0o755)
    (said,) = [text for subject, text in doctor("--", script).items() if subject == str(script)]
    assert "is not linked to an MPI" in said and "not a script around it" in said


def test_a_program_that_gets_privileges(doctor: Doctor, tmp_path: Path, mpis: dict[str, Mpi]) -> None:
    program = shutil.copy(a_program(mpis["mpich"]), tmp_path / "privileged")
    program.chmod(0o4755)
    said = doctor("--", program)[str(program)]
    assert "set-user-ID" in said and "chmod ug-s" in said


def test_the_launcher_of_another_mpi(doctor: Doctor, mpis: dict[str, Mpi]) -> None:
    path = f"{mpis['mpich'].mpiexec.parent}:{KEPT['PATH']}"
    said = doctor("--", a_program(mpis["openmpi"]), env={"PATH": path})
    if mpis["mpich"].mpiexec.name == "mpiexec":
        assert "MPICH" in said["mpiexec in PATH"] and "stretto run" in said["mpiexec in PATH"]


# ---- ranks ---------------------------------------------------------------------------------------


@pytest.fixture
def launcher(tmp_path: Path) -> Callable[..., str]:
    """launcher("words", ...) -> a launcher that starts a rank of Open MPI behind each of the words."""

    def make(*ranks: str, numbers: bool = True) -> str:
        lines = []
        for rank, words in enumerate(ranks):
            job = f"OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE={len(ranks)}" if numbers else ""
            lines.append(f'{words} env {job} "$@" &')
        script = tmp_path / "launcher.sh"
        script.write_text("\n".join(["#!/bin/sh", *lines, "wait", ""]))
        script.chmod(0o755)
        return str(script)

    return make


def test_ranks_that_are_well(doctor: Doctor, launcher: Callable[..., str]) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    said = doctor("--launch", launcher(*(f"taskset -c {cpu}" for cpu in cpus)))
    assert not {"one job", "the library in the ranks"} & said.keys() and not any("processors on" in s for s in said)


def test_a_launcher_that_drops_the_variable(doctor: Doctor, launcher: Callable[..., str]) -> None:
    said = doctor("--launch", launcher("", "env -u LD_PRELOAD", "env -u LD_PRELOAD"))["the library in the ranks"]
    assert "LD_PRELOAD does not reach ranks 1-2 on" in said and "mpiexec -x LD_PRELOAD" in said and "srun" in said


def test_ranks_with_different_versions(doctor: Doctor, launcher: Callable[..., str], tmp_path: Path) -> None:
    library = build.library("openmpi")
    other = tmp_path / library.name
    other.write_bytes(library.read_bytes() + b"\0")
    line = launcher("", f"env LD_PRELOAD={other}")
    said = doctor("--launch", line, env={"LD_PRELOAD": str(library)})["the library in the ranks"]
    assert "different libraries" in said and str(other) in said and "Install one version" in said


def test_all_ranks_on_one_processor(doctor: Doctor, launcher: Callable[..., str]) -> None:
    if os.cpu_count() == 1:
        pytest.skip("needs two processors")
    cpu = min(os.sched_getaffinity(0))
    said = doctor("--launch", launcher(*3 * [f"taskset -c {cpu}"]))
    (said,) = [text for subject, text in said.items() if subject.startswith("processors on")]
    assert f"may use 1 of {os.cpu_count()}: processor {cpu}" in said and "--bind-to core" in said


@pytest.mark.parametrize(("variable", "advice"), [("", "stretto run"), ("env SLURM_PROCID=0", "srun --mpi=pmix")])
def test_each_process_is_a_job_of_its_own(
    doctor: Doctor, launcher: Callable[..., str], variable: str, advice: str
) -> None:
    said = doctor("--launch", launcher(variable, variable, numbers=False))["one job"]
    assert "2 processes were started, and each is a job of its own" in said and advice in said


def test_a_launcher_that_starts_nothing(doctor: Doctor) -> None:
    assert "starts no process. /nowhere/srun: No such file" in doctor("--launch", "/nowhere/srun -n 2")["launcher"]


def test_hosts_with_one_name(doctor: Doctor, launcher: Callable[..., str], tmp_path: Path) -> None:
    own_mounts(tmp_path, "")
    (tmp_path / "boot_id").write_text("another")
    other = f"unshare --mount sh -c 'mount --bind {tmp_path}/boot_id /proc/sys/kernel/random/boot_id; exec \"$@\"' sh"
    assert "several hosts are called" in doctor("--launch", launcher("", other))["host names"]


# ---- the machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "subject", "cure"),
    [
        ("memfd", "shared memory files", "a profile that allows memfd_create"),
        ("cma", "reading a peer's memory (CMA)", "--cap-add=SYS_PTRACE"),
        ("userfaultfd", "guarding pages (userfaultfd)", "/etc/udev/rules.d"),
    ],
)
def test_system_calls_that_a_container_forbids(
    doctor: Doctor, tmp_path: Path, calls: str, subject: str, cure: str
) -> None:
    program = tmp_path / "seccomp"
    subprocess.run(["gcc", "-D_GNU_SOURCE", str(PROGRAMS / "namespace_seccomp.c"), "-o", str(program)], check=True)
    inside = own_mounts(tmp_path, "[ ! -e /dev/userfaultfd ] || mount --bind /dev/null /dev/userfaultfd")
    said = doctor("--", "true", inside=[*inside, str(program), calls])[subject]
    assert "refused: Operation not permitted" in said and cure in said


@pytest.mark.parametrize(
    ("script", "finding", "cure"),
    [
        ("mount -t tmpfs -o size=64k,mode=1777 tmpfs /dev/shm", "only 0 MiB free", "--shm-size"),
        ("mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm", "only 64 MiB free", "--shm-size"),
        ("mount -t tmpfs -o ro tmpfs /dev/shm", "is not writable", "mount -t tmpfs"),
    ],
)
def test_shared_memory(doctor: Doctor, tmp_path: Path, script: str, finding: str, cure: str) -> None:
    said = doctor("--", "true", inside=own_mounts(tmp_path, script))["/dev/shm"]
    assert finding in said and cure in said and said.startswith("warn" if "64m" in script else "bad")


def test_a_mistake_in_the_options_file(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "stretto.toml").write_text("wait = often\n")
    said = doctor("--", "true")["options"]
    assert "stretto.toml" in said and "stretto info" in said


def test_a_mistake_in_the_rules(doctor: Doctor, tmp_path: Path) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text("bcast: no_such_algorithm\n")
    said = doctor("--", "true", env={"STRETTO_RULES": str(rules)})["rules"]
    assert "mine.rules:1:8" in said and "stretto tune" in said
