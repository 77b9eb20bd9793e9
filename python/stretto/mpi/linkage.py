# SPDX-License-Identifier: BSD-3-Clause
"""The MPI that a program is linked to, as the dynamic linker says.

For a wrapper or an interpreter, it is the MPI of the program that it starts.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.mpi.abis import ABI_OF_SONAME

# Programs that start the program in their arguments.
WRAPPERS = (
    "env",
    "nice",
    "nohup",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "setarch",
    "setsid",
    "prlimit",
    "stdbuf",
    "time",
    "timeout",
    "catchsegv",
    "valgrind",
    "strace",
    "ltrace",
    "perf",
    "gdb",
    "hwloc-bind",
    "likwid-pin",
)
IMPORT = re.compile(r"^(?:import|from)\s+mpi4py\b", re.MULTILINE)  # only an import that no condition guards
WHERE_MPI4PY = "import importlib.util as u; print(u.find_spec('mpi4py.MPI').origin)"


@dataclass(frozen=True)
class Linked:
    program: Path  # the program that loads the library
    soname: str
    library: Path | None  # None: the dynamic linker does not find it

    @property
    def abi(self) -> str:
        return ABI_OF_SONAME[self.soname]


def linked(program: Path, env: Mapping[str, str] | None = None) -> Linked | None:
    """The MPI library that a program itself loads. None: no MPI that Stretto knows, or the program
    is not dynamic."""
    match = re.search(
        rf"^\s*({'|'.join(map(re.escape, ABI_OF_SONAME))}) => (/\S+|not found)",
        _output(["ldd", str(program)], env),
        re.MULTILINE,
    )
    if not match:
        return None
    return Linked(program, match[1], None if match[2] == "not found" else Path(os.path.realpath(match[2])))


def find(program: Path, arguments: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Linked | None:
    """The MPI library of what a command line starts, where that is certain."""
    if own := linked(program, env):
        return own
    runs = interpreter(program)
    if re.fullmatch(r"python[\d.]*", runs.name):
        return _of_python(runs, [str(program), *arguments] if runs != program else arguments, env)
    if program.name in WRAPPERS:
        for number, word in enumerate(arguments):
            path = shutil.which(word) if word and not word.startswith("-") else None
            if path and (found := find(Path(os.path.abspath(path)), arguments[number + 1 :], env)):
                return found
    return None


def interpreter(program: Path) -> Path:
    """The program that runs a script, by its first line. A program runs itself."""
    try:
        with open(program, "rb") as file:
            first = file.readline(300)
    except OSError:
        return program
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    if not words:
        return program
    name = words[1] if words[0].endswith("/env") and len(words) > 1 else words[0]
    return Path(shutil.which(name) or name)


def sanitizer_runtimes(program: Path) -> list[str]:
    """Sanitizer runtimes of a program, or of a script's interpreter, built by gcc -fsanitize=...
    They must be loaded before any other library. Statically linked ones (clang's default) are first
    anyway."""
    return re.findall(
        r"lib(?:asan|hwasan|tsan|lsan|ubsan)\.so\S* => (/\S+)", _output(["ldd", str(interpreter(program))], None)
    )


def _of_python(python: Path, arguments: Sequence[str], env: Mapping[str, str] | None) -> Linked | None:
    """The MPI library of mpi4py, if the script imports it. If mpi4py has builds for several ABIs,
    it is the one that mpi4py chooses in this environment."""
    if not IMPORT.search(_python_text(arguments)):
        return None
    module = _output([str(python), "-c", WHERE_MPI4PY], env).strip()
    return linked(Path(module), env) if module.endswith(".so") else None


def _python_text(arguments: Sequence[str]) -> str:
    """The source that Python runs: a file, -c, or a module by its name."""
    words = iter(arguments)
    for word in words:
        if word == "-c":
            return next(words, "")
        if word == "-m":
            return f"import {next(words, '')}"
        if word in ("-W", "-X"):
            next(words, None)
        elif not word.startswith("-"):
            try:
                return Path(word).read_text(errors="replace")
            except OSError:
                return ""
    return ""


def _output(argv: Sequence[str], env: Mapping[str, str] | None) -> str:
    return _output_once(tuple(argv), tuple(sorted((os.environ if env is None else env).items())))


@functools.cache
def _output_once(argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> str:
    try:
        return subprocess.run(
            argv, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=20
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
