# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPI jobs under test, with or without the preload library, in bounded time, without residue."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from job_processes import TOKEN, end_processes, processes_of, ranks_of, stacks_of
from stretto.mpi import Mpi
from stretto.native import build

os.environ["XDG_CONFIG_HOME"] = "/dev/null"  # tests do not use the results of `stretto tune` on this machine

PROGRAMS = Path(__file__).parent / "programs"
Preload = bool | str  # False, True, "faulty", or the value of LD_PRELOAD itself


@dataclass
class Job(subprocess.CompletedProcess):
    """A finished job: CompletedProcess with text output, its time and the files that it left."""

    args: list[str]
    returncode: int
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    left_files: list[str] = field(default_factory=list)

    @property
    def output(self) -> str:
        return self.stdout + self.stderr

    def ok(self) -> Job:
        """Returns this job if it ended well. Otherwise fails and shows the job's output."""
        assert self.returncode == 0, f"exit code {self.returncode}\n{self.describe()}"
        return self

    def describe(self) -> str:
        line = " ".join(self.args)
        return f"$ {line}\n--- stdout\n{self.stdout[-6000:]}\n--- stderr\n{self.stderr[-6000:]}"

    def results(self, tag: str = "RESULT") -> list[dict]:
        """The JSON objects after `RESULT`, in the order of the output.

        Launchers may join lines of several ranks.
        """
        decoder = json.JSONDecoder()
        return [decoder.raw_decode(self.stdout, m.end())[0] for m in re.finditer(rf"\b{tag} (?=\{{)", self.stdout)]

    def messages(self) -> list[str]:
        """The lines that the library itself wrote. All of them carry its name."""
        return [line for line in self.stderr.splitlines() if re.search(r"\bstretto\b.*:", line, re.IGNORECASE)]


class JobTimeout(AssertionError):
    """A job did not end in time."""


@functools.cache
def library(abi: str, faulty: bool = False) -> Path:
    """The preload library, which each session builds once if it is out of date.

    STRETTO_TEST_LIBRARIES names a directory of libraries. Tests then take those as they are.
    """
    folder = os.environ.get("STRETTO_TEST_LIBRARIES")
    if folder:
        return Path(folder, f"libstretto-{abi}{'-faulty' if faulty else ''}.so")
    return build.library(abi, faulty=faulty)


def preload_path(mpi: Mpi, preload: Preload) -> str | None:
    if preload is False:
        return None
    if preload is True or preload == "faulty":
        return str(library(mpi.abi, preload == "faulty"))
    return str(preload)


def clean_environment() -> dict[str, str]:
    """This process' environment without Stretto's options, which would change what a test tests."""
    kept = {"STRETTO_MPI_VENVS"}
    return {k: v for k, v in os.environ.items() if (not k.startswith("STRETTO") or k in kept) and k != "LD_PRELOAD"}


def _no_core_dumps() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def wait_for_job(process: subprocess.Popen, token: str, timeout: float) -> str | None:
    """Returns None when the job has ended. After `timeout` seconds kills it, and returns its stacks.

    A job has also ended if only its launcher is left. Its status is then that of a killed process.
    Open MPI 4's launcher hangs in one of 150 jobs whose ranks leave without MPI_Finalize.
    """
    try:
        process.wait(timeout=timeout)
    except subprocess.TimeoutExpired:
        stacks = stacks_of(token) if ranks_of(token) else None
        process.kill()
        end_processes(token)
        process.wait(timeout=10)
        return stacks
    return None


def _end_when_told(process: subprocess.Popen, stream: int, enough: Callable[[str], bool], token: str, timeout: float):
    """Ends a job as soon as what it has written to `stream` is enough, or after `timeout` seconds."""
    end = time.monotonic() + timeout
    while process.poll() is None and time.monotonic() < end:
        text = os.pread(stream, os.fstat(stream).st_size, 0).decode(errors="replace")
        if enough(text):
            break
        time.sleep(0.1)
    process.kill()
    end_processes(token)
    process.wait(timeout=10)


def _hangs_by_itself(mpi: Mpi, stacks: str) -> bool:
    """Whether all ranks are in MPI_Finalize of an MPI that sometimes stays there, also without Stretto.

    MPICH 4.0.2 does so once UCX has opened TCP connections, as it does between nodes.
    """
    ranks = stacks.count("Thread 1 (")
    in_finalize = len(re.findall(r"^#\d+ .* PMPI_Finalize ", stacks, re.MULTILINE))
    is_ours = "libstretto" in stacks
    return (mpi.kind, mpi.version) == ("mpich", "4.0.2") and in_finalize == ranks > 0 and not is_ours


def _tell_of_hang(mpi: Mpi, job: Job, what: str, stacks: str) -> None:
    if _hangs_by_itself(mpi, stacks):
        pytest.skip(f"{mpi.title} does not return from MPI_Finalize, as without Stretto")
    raise JobTimeout(f"{what} on {mpi.title}\n{job.describe()}\n--- stacks\n{stacks}")


def _gone(token: str, seconds: float = 5.0) -> list[str]:
    """Waits for launchers' daemons to end. Kills and names the processes that do not."""
    end = time.monotonic() + seconds
    while processes_of(token):
        if time.monotonic() > end:
            return end_processes(token)
        time.sleep(0.05)
    return []


def _scratch_root() -> str:
    """A folder in memory, if there is room: MPI-IO tests and launchers often sync files to the disk."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage("/dev/shm").free > 1 << 30:
            return "/dev/shm"
    return "/tmp"


def _of_ranks(mpi: Mpi, preload: Preload, env: Mapping[str, str]) -> dict[str, str]:
    library = preload_path(mpi, preload)
    # Stretto serves every call from the first one on. An empty value restores the default.
    served = {"STRETTO_AGREE": "first", "LD_PRELOAD": library} if library else {}
    return served | dict(env)


def _prepare(more: Callable[[], None] | None) -> None:
    _no_core_dumps()
    if more:
        more()


def _whole_text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def run_job(
    mpi: Mpi,
    np: int,
    argv: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    preload: Preload = True,
    timeout: float = 60,
    extra: Sequence[str] = (),
    *,
    prefix: Sequence[str] = (),
    preexec: Callable[[], None] | None = None,
    cwd: Path | None = None,
    ranks_may_stay: bool = False,
    until: Callable[[str], bool] | None = None,
) -> Job:
    """Runs `argv` on `np` ranks.

    `prefix` goes before the launcher. `preexec` runs in the launcher's process, to set a limit or
    enter a control group. `until` is asked of the standard error so far: a job that hangs is ended
    when it says yes.
    """
    token = uuid.uuid4().hex
    scratch = Path(tempfile.mkdtemp(prefix="mpitest-", dir=_scratch_root()))
    # Each job measures for itself, without what others have kept.
    launcher = clean_environment() | mpi.environment() | {TOKEN: token, "TMPDIR": str(scratch)}
    launcher["XDG_CACHE_HOME"] = "/dev/null"
    line = [*prefix, *mpi.command(np, [str(a) for a in argv], _of_ranks(mpi, preload, env or {}), extra)]

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=launcher,
            cwd=cwd or scratch,
            start_new_session=True,
            preexec_fn=lambda: _prepare(preexec),
        )
        try:
            if until is not None:
                _end_when_told(process, err.fileno(), until, token, timeout)
            stacks = wait_for_job(process, token, timeout)
            strays = [] if stacks is not None else _gone(token)
        except BaseException:
            process.kill()
            end_processes(token)
            raise
        seconds = time.monotonic() - start
        texts = [_whole_text(stream) for stream in (out, err)]
    left = sorted(str(p.relative_to(scratch)) for p in scratch.rglob("*") if "stretto" in p.name.lower())
    shutil.rmtree(scratch, ignore_errors=True)
    job = Job([str(a) for a in line], process.returncode, texts[0], texts[1], seconds, left)
    if stacks is not None:
        _tell_of_hang(mpi, job, f"not done after {timeout} s", stacks)
    assert ranks_may_stay or not strays, f"processes outlived the job: {strays}\n{job.describe()}"
    assert not left, f"files left behind: {left}"
    return job


# ---- no test may leave anything behind -----------------------------------------------------------
@dataclass(frozen=True)
class Residue:
    """Stretto's files that outlive their processes if no process removes them."""

    shm: frozenset[str]
    tmp: frozenset[str]

    @classmethod
    def now(cls) -> Residue:
        # Files and sockets only. Folders in /tmp belong to tools that run beside the tests.
        def ours(folder: str) -> frozenset[str]:
            with contextlib.suppress(OSError):
                entries = [e for e in os.scandir(folder) if not e.is_dir(follow_symlinks=False)]
                return frozenset(e.name for e in entries if re.search("stretto", e.name, re.IGNORECASE))
            return frozenset()

        return cls(ours("/dev/shm"), ours("/tmp"))

    def since(self, before: Residue) -> list[str]:
        return sorted({f"/dev/shm/{n}" for n in self.shm - before.shm} | {f"/tmp/{n}" for n in self.tmp - before.tmp})


def tidy_host_residue() -> None:
    """Unlinks what killed jobs of the host MPIs left in /dev/shm.

    It takes files that are older than two minutes and that no process maps. A younger file may
    belong to another job that is just starting.
    """
    pattern = r"^(vader_segment|sm_segment|mpich_|ucx_shm|Intel_MPI|psm2|osc_)"
    old = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir("/dev/shm"):
            if re.match(pattern, entry.name) and time.time() - entry.stat().st_mtime > 120:
                old[entry.path] = True
    if not old:
        return
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for path in re.findall(r"(/dev/shm/\S+)", maps.read_text()):
                old.pop(path, None)
    for path in old:
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fails if new files of Stretto are there afterwards."""
    before = Residue.now()
    yield
    left = set(Residue.now().since(before))
    end = time.monotonic() + 20
    while left and time.monotonic() < end:  # jobs of tests that run beside this one remove theirs
        time.sleep(0.1)
        left &= set(Residue.now().since(before))
    assert not left, f"left behind: {sorted(left)}"


# ---- programs ------------------------------------------------------------------------------------
def build_program(
    mpi: Mpi, source: str, name: str | None = None, flags: Sequence[str] = (), language: str = "c"
) -> Path:
    """Compiles tests/mpi/programs/<source> for this MPI."""
    path = PROGRAMS / source
    wanted = ["-O1", "-g", "-pthread", "-D_GNU_SOURCE", f"-I{PROGRAMS}", *flags]
    return build.compile_program(mpi, [path], name or path.stem, language=language, flags=wanted)


def build_cxx(mpi: Mpi, source: str) -> Path:
    """Does the same for C++. Skips the test if the MPI has no compiler wrapper."""
    if mpi.mpicxx is None:
        pytest.skip(f"{mpi.title} has no C++ compiler wrapper")
    flags = ["-O1", "-g0", "-std=gnu++20", "-ldl"]
    return build_program(mpi, source, flags=flags, language="c++")


def per_rank_script(folder: Path, cases: Mapping[int, Mapping[str, str]], name: str = "per-rank.sh") -> Path:
    """A wrapper that sets environment variables of single ranks: `per-rank.sh program args`."""
    lines = ["#!/bin/sh", "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}", 'case "$rank" in']
    for rank, variables in cases.items():
        exports = "; ".join(f"export {key}='{value}'" for key, value in variables.items())
        lines.append(f"{rank}) {exports} ;;")
    lines += ["esac", 'exec "$@"', ""]
    script = folder / name
    script.write_text("\n".join(lines))
    script.chmod(0o755)
    return script


def pretended_nodes(folder: Path, ranks_of_a_node: int) -> Path:
    """A wrapper of a program: so many ranks each see a boot id of their own. Needs root."""
    for node in range(8):
        (folder / f"boot_id.{node}").write_text(f"00000000-0000-4000-8000-{node:012d}\n")
    script = folder / f"on_nodes_{ranks_of_a_node}.sh"
    script.write_text(
        "#!/bin/sh\n"
        "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n"
        'exec unshare -m sh -c \'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"\' '
        f'x {folder}/boot_id.$((rank / {ranks_of_a_node})) "$@"\n'
    )
    script.chmod(0o755)
    return script


def can_pretend_nodes() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


def has(mpi: Mpi, symbol: str) -> bool:
    """Whether the MPI library itself has `symbol`."""
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", str(mpi.library)], capture_output=True, text=True, check=False
    )
    return re.search(rf" {symbol}(@|$)", shown.stdout, re.MULTILINE) is not None


def without_cma(mpi: Mpi) -> tuple[dict[str, str], list[str]]:
    """Environment and launcher arguments that switch the host's single-copy transfers off.

    A rendezvous then needs the sender's own progress.
    """
    if mpi.kind == "openmpi":
        if mpi.version.startswith("4"):
            # Without single copy, Open MPI 4's other one-sided component cannot make a window.
            return {}, ["--mca", "btl_vader_single_copy_mechanism", "none", "--mca", "osc", "pt2pt"]
        return {}, ["--mca", "smsc", "^cma,xpmem,knem"]
    if mpi.kind == "impi":
        return {"I_MPI_SHM_CMA": "0"}, []
    # Debian's MPICH leaves large messages between processes of a node to UCX.
    return {"MPIR_CVAR_CH4_CMA_ENABLE": "0", "MPIR_CVAR_CH4_XPMEM_ENABLE": "0", "UCX_TLS": "^cma"}, []
