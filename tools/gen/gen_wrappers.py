#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the exported MPI functions from the MPI standard's own API data.

The program reads the API description of `pympistandard` (names, parameters, kinds) and the
manifest below. It writes

    src/mpi/entries.gen.hpp        one number per host function a wrapper may forward to
    src/mpi/wrappers.gen.cpp       the exported MPI_ and PMPI_ functions

and, per ABI of src/mpi/vendor/abis.toml,

    src/mpi/vendor/<abi>/exports.map    the linker's version script: what the library shows
    src/mpi/vendor/<abi>/abi.gen.hpp    its facts for C++ (gen_abis.py)
    cmake/abis.gen.cmake                its facts for CMake (gen_abis.py)

`gen_wrappers.py --check` only compares, and fails when a file is stale.

The wrappers declare handles as 64-bit integers. On x86-64 and AArch64 a handle is one register or
stack slot, be it an int or a pointer. So a wrapper can forward its arguments unseen to an MPI of
the other ABI.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import gen_abis

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "src" / "mpi"
C_API = ("stretto_version", "stretto_last_path", "stretto_active")


@dataclass(frozen=True)
class Row:
    """One function of the manifest: what we do with it."""

    name: str
    native: bool = True  # False: known, not exported yet
    hook: bool = False  # not a collective: a function of ours calls the host's
    notice: str = ""  # not a collective: this function of ours is told, then the host's turn

    @property
    def is_collective(self) -> bool:
        return not self.hook and not self.notice

    @property
    def has_large(self) -> bool:
        return not self.hook and self.name not in {"Barrier", "Win_create_dynamic"}


# The order of the collectives is that of src/base/collective.hpp.
MANIFEST = (
    Row("Barrier"),
    Row("Bcast"),
    Row("Gather"),
    Row("Gatherv"),
    Row("Scatter"),
    Row("Scatterv"),
    Row("Allgather"),
    Row("Allgatherv"),
    Row("Alltoall"),
    Row("Alltoallv"),
    Row("Alltoallw"),
    Row("Reduce"),
    Row("Allreduce"),
    Row("Reduce_scatter"),
    Row("Reduce_scatter_block"),
    Row("Scan"),
    Row("Exscan"),
    Row("Init", hook=True),
    Row("Init_thread", hook=True),
    Row("Comm_free", hook=True),
    Row("Comm_disconnect", hook=True),
    Row("Win_create", notice="window_made"),
    Row("Win_allocate", notice="window_made"),
    Row("Win_allocate_shared", notice="window_made"),
    Row("Win_create_dynamic", notice="window_made"),
)

HANDLES = {"COMMUNICATOR", "DATATYPE", "OPERATION", "INFO"}
COUNTS = {"POLYXFER_NUM_ELEM_NNI"}
DISPLACEMENTS = {"POLYDISPLACEMENT"}
UNITS = {"POLYRMA_DISPLACEMENT"}


@dataclass(frozen=True)
class Parameter:
    """One C parameter in both count families."""

    name: str
    small: str  # C type in the int family
    large: str  # C type in the _c family
    counted: bool = False  # an array of counts or displacements: handed on with its width
    root_only: bool = False

    def declaration(self, large: bool) -> str:
        return f"{self.large if large else self.small} {self.name}"

    def narrowed(self) -> str:
        """The argument for the int family, as an expression on a Narrow `narrow`."""
        if self.counted:
            return f"narrow.at_root({self.name}, root)" if self.root_only else f"narrow.everywhere({self.name})"
        return f"narrow.at_root({self.name}, root)" if self.root_only else f"narrow({self.name})"

    def native_argument(self, large: bool) -> str:
        return f"Array{{{self.name}, {str(large).lower()}}}" if self.counted else self.name


def parameter(data: dict) -> Parameter:
    """The C types of one parameter of the API data."""
    name, kind, array = data["name"], data["kind"], data["length"] is not None
    if kind in HANDLES and array:
        return Parameter(name, "const void*", "const void*")  # elements have the host's handle size: opaque here
    if kind in HANDLES and data["param_direction"] == "inout":
        return Parameter(name, "void*", "void*")  # where the handle is
    if kind in HANDLES:
        return Parameter(name, "Handle", "Handle")
    if kind in COUNTS | DISPLACEMENTS and array:
        return Parameter(name, "const int*", "const std::int64_t*", counted=True, root_only=data["root_only"])
    if kind in UNITS:
        return Parameter(name, "int", "std::int64_t")
    if kind in COUNTS:
        return Parameter(name, "int", "std::int64_t", root_only=data["root_only"])
    if kind == "BUFFER":
        pointer = "const void*" if data["constant"] else "void*"
    elif kind in {"RANK", "THREAD_LEVEL"}:
        pointer = "int*" if data["param_direction"] == "out" else "int"
    elif kind == "WINDOW_SIZE":
        pointer = "std::int64_t"
    elif kind in {"WINDOW", "C_BUFFER"}:  # results: where the host puts them
        pointer = "void*"
    elif kind == "ARGUMENT_COUNT":
        pointer = "int*"
    elif kind == "ARGUMENT_LIST":
        pointer = "char***"
    else:
        raise SystemExit(f"gen_wrappers: parameter {name} has the unknown kind {kind}")
    return Parameter(name, pointer, pointer)


@dataclass(frozen=True)
class Function:
    """A C function of the API: a manifest row in one of its count families."""

    row: Row
    large: bool
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        return self.row.name + ("_c" if self.large else "")

    @property
    def entry(self) -> str:
        return self.name.lower()

    @property
    def declarations(self) -> str:
        return ", ".join(p.declaration(self.large) for p in self.parameters)

    @property
    def names(self) -> str:
        return ", ".join(p.name for p in self.parameters)

    @property
    def native_arguments(self) -> str:
        return ", ".join(p.native_argument(self.large) for p in self.parameters)


def functions(apis: dict) -> list[Function]:
    """Every function of the manifest that the standard has, in both families."""
    found = []
    for row in MANIFEST:
        data = apis["mpi_" + row.name.lower()]
        parameters = tuple(parameter(p) for p in data["parameters"] if "c_parameter" not in p["suppress"].split())
        found.append(Function(row, False, parameters))
        if row.has_large:
            found.append(Function(row, True, parameters))
    return found


BANNER = (
    "// SPDX-License-Identifier: BSD-3-Clause\n"
    "// Generated by tools/gen/gen_wrappers.py from the MPI standard's API data. Do not edit.\n"
)


def entries_header(all_functions: list[Function]) -> str:
    """The numbering of host functions."""
    exported = [f for f in all_functions if f.row.native]
    lines = [BANNER + "#pragma once", '#include "base/collective.hpp"', "", "namespace stretto::mpi {", ""]
    lines.append("// A host function that a wrapper may forward to.")
    lines.append("enum class Entry : unsigned char {")
    lines += [f"  {f.entry}," for f in exported]
    lines += ["  count_", "};", "inline constexpr int kEntries = static_cast<int>(Entry::count_);", ""]
    lines.append("struct EntryFacts {")
    lines.append("  const char* name;       // as the user calls it")
    lines.append("  const char* pmpi_name;  // as the host provides it")
    lines.append("  Collective collective;  // count_ for what is no collective of ours")
    lines += ["};", "inline constexpr EntryFacts kEntryFacts[kEntries] = {"]
    for f in exported:
        collective = f.row.name.lower() if f.row.is_collective else "count_"
        lines.append(f'    {{"MPI_{f.name}", "PMPI_{f.name}", Collective::{collective}}},')
    lines += ["};", "", "}  // namespace stretto::mpi", ""]
    return "\n".join(lines)


def host_type(f: Function, large: bool) -> str:
    return f"int (*)({', '.join(p.large if large else p.small for p in f.parameters)})"


def large_forward(f: Function) -> list[str]:
    """The host's _c function, or its int function where there is none."""
    small = f.row.name.lower()
    out = ["namespace {", f"int {f.entry}_host({f.declarations}) {{"]
    out.append(f"  if (void* const function = g_host_entries[static_cast<int>(Entry::{f.entry})]) [[likely]] {{")
    out.append(f"    return reinterpret_cast<{host_type(f, True)}>(function)({f.names});")
    out += ["  }", "  Narrow narrow(comm);"]
    arguments = []
    for p in f.parameters:
        if p.small == p.large:
            arguments.append(p.name)
            continue
        out.append(f"  {p.small} const narrow_{p.name} = {p.narrowed()};")
        arguments.append(f"narrow_{p.name}")
    out.append("  if (const int code = narrow.verdict()) return code;")
    out.append(f"  return reinterpret_cast<{host_type(f, False)}>(host_entry(Entry::{small}))({', '.join(arguments)});")
    return out + ["}", "}  // namespace"]


def wrapper(f: Function) -> str:
    """The shared body and the two exported names of one function."""
    call = f"{f.entry}_host" if f.large else f"reinterpret_cast<Host>(host_entry(Entry::{f.entry}))"
    forward = f"{call}({f.names})"
    out = large_forward(f) if f.large else []
    out += [
        "namespace {",
        f"[[gnu::always_inline]] inline int {f.entry}_entry(const void* caller, {f.declarations}) {{",
    ]
    if not f.large:
        out.append(f"  using Host = {host_type(f, False)};")
    if f.row.notice:
        out.append(f"  if (may_serve(caller)) {f.row.notice}();")
    elif f.row.hook:
        out.append(f"  if (may_serve(caller)) return {f.row.name.lower()}({f.names});")
    else:
        out.append("  const std::uint64_t began = call_begins();")
        out.append("  if (may_serve(caller)) [[likely]] {")
        out.append(f"    Call call{{Entry::{f.entry}, began}};")
        out.append(f"    if ({f.row.name.lower()}(call, {f.native_arguments})) [[likely]] return call.code;")
        out.append(f"    return host_done(call, {forward});")
        out.append("  }")
    out.append(f"  return {forward};")
    out += ["}", "}  // namespace"]
    out.append(f"STRETTO_EXPORT int MPI_{f.name}({f.declarations}) {{")
    out.append(f"  if (void* const tool = tool_behind(Entry::{f.entry}, __builtin_return_address(0))) [[unlikely]] {{")
    out.append(f"    return reinterpret_cast<{host_type(f, f.large)}>(tool)({f.names});")
    out.append("  }")
    out.append(f"  return {f.entry}_entry(__builtin_return_address(0), {f.names});")
    out.append("}")
    out.append(f"STRETTO_EXPORT int PMPI_{f.name}({f.declarations}) {{")
    out.append(f"  return {f.entry}_entry(__builtin_return_address(0), {f.names});")
    out += ["}", ""]
    return "\n".join(out)


def wrappers_source(all_functions: list[Function]) -> str:
    """The translation unit with the exported functions."""
    exported = [f for f in all_functions if f.row.native]
    lines = [
        BANNER + '#include "abi.gen.hpp"\n#include "mpi/entry.hpp"\n#include "mpi/narrow.hpp"',
        "",
        "using namespace stretto;",
        "using namespace stretto::mpi;",
        "",
    ]
    lines += [wrapper(f) for f in exported if not f.large]
    lines += ["#if STRETTO_LARGE_COUNT", ""]
    lines += [wrapper(f) for f in exported if f.large]
    lines += ["#endif", ""]
    return "\n".join(lines)


def export_map(all_functions: list[Function], large: bool) -> str:
    """The version script: everything else in the library is local."""
    names = [f.name for f in all_functions if f.row.native and (not f.large or large)]
    symbols = [prefix + name for name in names for prefix in ("MPI_", "PMPI_")] + list(C_API)
    body = "\n".join(f"    {symbol};" for symbol in symbols)
    return f"# Generated by tools/gen/gen_wrappers.py. Do not edit.\n{{\n  global:\n{body}\n  local:\n    *;\n}};\n"


def outputs(apis: dict) -> dict[Path, str]:
    """Every generated file with its contents."""
    found = functions(apis)
    files = {OUTPUT / "entries.gen.hpp": entries_header(found), OUTPUT / "wrappers.gen.cpp": wrappers_source(found)}
    for name, abi in gen_abis.abis().items():
        files[gen_abis.VENDOR / name / "exports.map"] = export_map(found, abi["large_count"])
    return files | gen_abis.outputs()


def load(path: Path | None) -> dict:
    """The API data: of `path`, or of the installed pympistandard."""
    if path is not None:
        return json.loads(path.read_text(encoding="utf-8"))
    try:
        return json.loads((resources.files("pympistandard.data") / "apis.json").read_text(encoding="utf-8"))
    except ModuleNotFoundError:
        raise SystemExit("gen_wrappers: install pympistandard==0.2.0, or name its apis.json with --apis") from None


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="write nothing, fail when a file is stale")
    arguments.add_argument("--apis", type=Path, help="API data to read instead of the installed package's")
    options = arguments.parse_args()
    stale = [
        (path, text)
        for path, text in outputs(load(options.apis)).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        print(("stale: " if options.check else "written: ") + str(path.relative_to(ROOT)))
        if not options.check:
            path.write_text(text, encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
