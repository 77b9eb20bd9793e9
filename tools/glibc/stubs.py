#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a directory of libraries that programs are linked with in the place of this system's glibc.

    stubs.py VERSION DIRECTORY COMPILER

The linker binds a name to the newest version that it finds in libc.so.6. So a program that is
linked here does not start where glibc is older, even if an older version of each name would do. The
libraries in DIRECTORY have the names of this system's glibc, but no version after VERSION, and no
code. compat.c has what else compilers and headers of this system ask for.

`-L DIRECTORY` makes the linker take them. A name that they lack is an error there. So whatever
links needs no newer glibc, if libstdc++ and libgcc are linked as archives.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# The dynamic linker's name says for which processor it is. A compiler has one of these.
LINKERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
LIBRARIES = ("libc.so.6", "libm.so.6", *LINKERS)
# Names that have since moved into libc.so.6: their newest version is the one of the move.
MOVED = {
    "libdl.so.2": r"dl(open|close|sym|vsym|error|addr1?|info|mopen)",
    "libpthread.so.0": r"_*(pthread|sem|thrd|mtx|cnd|tss)_\w+",
    "librt.so.1": r"(aio|lio|mq|shm|timer)_\w+",
}
# compat.c has this name, and calls the library's by its version.
BY_VERSION_ONLY = "__libc_start_main"

SYMBOL = re.compile(
    r" *\d+: (?P<value>\w+) +(?P<size>\w+) (?P<kind>FUNC|IFUNC|OBJECT) +(?P<bind>GLOBAL|WEAK) +DEFAULT +\d+ "
    r"(?P<name>\w+)(?P<at>@@?)(?P<version>GLIBC_\d[\d.]*)"
)


class Symbol(NamedTuple):
    name: str
    version: str
    newest: bool  # what the linker takes
    function: bool
    weak: bool
    value: int
    size: int


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def output_of(*command: str | Path) -> str:
    return subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True).stdout


def symbols_of(library: str) -> list[Symbol]:
    """All versions of all names that a library exports."""
    return [
        Symbol(
            found["name"],
            found["version"],
            found["at"] == "@@",
            found["kind"] != "OBJECT",
            found["bind"] == "WEAK",
            int(found["value"], 16),
            int(found["size"], 0),
        )
        for line in output_of("readelf", "-W", "--dyn-syms", library).splitlines()
        if (found := SYMBOL.match(line))
    ]


def home(library: str, symbol: Symbol, moved: bool) -> str | None:
    """The library that had a name at the wanted version. None: not known."""
    if not moved or library != "libc.so.6" or symbol.name == BY_VERSION_ONLY:
        return library
    return next((name for name, pattern in MOVED.items() if re.fullmatch(pattern, symbol.name)), None)


def as_of(wanted: tuple[int, ...], compiler: str) -> dict[str, list[Symbol]]:
    """The names by library, as they were at the wanted version. A name that the linker no longer
    takes here was taken out of the headers, or is in libc_nonshared.a."""
    libraries: dict[str, list[Symbol]] = {}
    for library in LIBRARIES:
        versions: dict[str, list[Symbol]] = {}
        place = output_of(compiler, f"-print-file-name={library}").strip()
        for symbol in symbols_of(place) if "/" in place else ():
            versions.setdefault(symbol.name, []).append(symbol)
        for all_of_it in versions.values():
            old = [symbol for symbol in all_of_it if number(symbol.version) <= wanted]
            if old and any(symbol.newest for symbol in all_of_it):
                best = max(old, key=lambda symbol: number(symbol.version))
                if place := home(library, best, moved=len(old) < len(all_of_it)):
                    libraries.setdefault(place, []).append(best)
    return libraries


def assembly(symbols: list[Symbol]) -> str:
    lines = [".text"]
    for symbol in (s for s in symbols if s.function):
        label = symbol.name
        if symbol.name == BY_VERSION_ONLY:
            label = f"old_{symbol.name}"
            lines.append(f".symver {label}, {symbol.name}@{symbol.version}")
        lines += [f".{'weak' if symbol.weak else 'globl'} {label}", f".type {label}, %function", f"{label}: .byte 0"]
    lines.append(".bss")
    # Two names of one place stay so: a program that copies the data must know both.
    places: dict[int, list[Symbol]] = {}
    for symbol in (s for s in symbols if not s.function):
        places.setdefault(symbol.value, []).append(symbol)
    for names in places.values():
        lines.append(".balign 32")
        for name, _, _, _, weak, _, size in names:
            lines += [f".{'weak' if weak else 'globl'} {name}", f".type {name}, %object", f".size {name}, {size}"]
            lines.append(f"{name}:")
        lines.append(f".skip {max(max(symbol.size for symbol in names), 1)}")
    return "\n".join([*lines, '.section .note.GNU-stack,"",%progbits', ""])


def version_script(symbols: list[Symbol]) -> str:
    nodes, before = [], ""
    for version in sorted({symbol.version for symbol in symbols}, key=number):
        names = "".join(f" {s.name};" for s in symbols if s.version == version and s.name != BY_VERSION_ONLY)
        nodes.append(f"{version} {{{' global:' + names if names else ''} }}{before};\n")
        before = f" {version}"
    return "".join(nodes)


def write_library(folder: Path, name: str, symbols: list[Symbol], compiler: str) -> None:
    source, script = folder / f"{name}.s", folder / f"{name}.map"
    source.write_text(assembly(symbols))
    script.write_text(version_script(symbols))
    output_of(
        compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={script}", source,
        "-o", folder / name,
    )  # fmt: skip
    plain = folder / f"{name.partition('.')[0]}.so"
    if name != "libc.so.6":
        plain.unlink(missing_ok=True)
        plain.symlink_to(name)


def main(version: str, directory: str, compiler: str) -> None:
    folder = Path(directory).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    libraries = as_of(number(version), compiler)
    for name, symbols in libraries.items():
        write_library(folder, name, symbols, compiler)
    objects = []
    for name in ("compat", "start"):
        objects.append(folder / f"{name}.o")
        source = Path(__file__).resolve().with_name(f"{name}.c")
        output_of(compiler, "-O2", "-fPIC", "-fvisibility=hidden", "-c", source, "-o", objects[-1])
    output_of(output_of(compiler, "-print-prog-name=ar").strip(), "rcs", folder / "libcompat.a", *objects)
    nonshared = output_of(compiler, "-print-file-name=libc_nonshared.a").strip()
    others = " ".join(str(folder / name) for name in libraries if name not in ("libc.so.6", "libm.so.6"))
    (folder / "libc.so").write_text(
        f"GROUP ( {folder / 'libc.so.6'} {folder / 'libcompat.a'} {nonshared} AS_NEEDED ( {others} ) )\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
