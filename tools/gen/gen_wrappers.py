#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the exported MPI functions from the MPI standard's own API data.

The program reads the API description of `pympistandard` (names, parameters, kinds) and the
manifest below. It writes

    src/mpi/host/entries.gen.hpp   one number per host function a wrapper may forward to
    src/mpi/wrappers.gen.cpp       the exported MPI_ and PMPI_ functions that Stretto serves
    src/mpi/forwards.gen.cpp       those that only wait: for data of calls that returned early, or in the host's place

and, per ABI of src/mpi/vendor/abis.toml,

    src/mpi/vendor/<abi>/exports.map    the linker's version script: what the library shows
    src/mpi/vendor/<abi>/abi.gen.hpp    its facts for C++ (gen_abis.py)
    cmake/abis.gen.cmake                its facts for CMake (gen_abis.py)

and, for the standard ABI, of which Stretto has an mpi.h of its own,

    src/mpi/vendor/standard/include/functions.gen.h    the host's functions (gen_standard.py)

`gen_wrappers.py --check` only compares, and fails when a file is stale.

The wrappers declare handles as 64-bit integers. On x86-64 and AArch64 a handle is one register or
stack slot, be it an int or a pointer. So a wrapper can forward its arguments unseen to an MPI of
the other ABI.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gen_abis
import gen_complete
import gen_notes
import gen_record
import gen_requests
import gen_standard
import gen_touched
import gen_waiting
from gen_api import Parameter, has_large, load, parameters

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "src" / "mpi"
C_API = ("stretto_version", "stretto_last_path", "stretto_active")


@dataclass(frozen=True)
class Row:
    """One function of the manifest: what we do with it."""

    name: str
    hook: bool = False  # not a collective: a function of ours calls the host's
    notice: str = ""  # not a collective: this function of ours is told, then the host's turn
    around: str = ""  # not a collective: this function of ours calls the host's, which it is given
    forward: bool = False  # not a collective: the call waits for data or by Stretto, then the host's turn
    extension: bool = False  # no function of the standard: some MPIs have it

    @property
    def is_collective(self) -> bool:
        return not (self.hook or self.notice or self.around or self.forward)


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
    Row("Neighbor_allgather"),
    Row("Neighbor_allgatherv"),
    Row("Neighbor_alltoall"),
    Row("Neighbor_alltoallv"),
    Row("Neighbor_alltoallw"),
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
    Row("Intercomm_merge", notice="worlds_meet"),
    Row("Abort", notice="profile_abort"),
    Row("Win_create", around="making_window"),
    Row("Win_allocate", around="making_window"),
    Row("Win_allocate_shared", around="making_window"),
    Row("Win_create_dynamic", around="making_window"),
    Row("Win_free", around="freeing_window"),
)


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
    def symbol(self) -> str:
        return ("MPIX_" if self.row.extension else "MPI_") + self.name

    @property
    def entry(self) -> str:
        return self.name.lower()

    @property
    def declarations(self) -> str:
        return ", ".join(p.declaration(self.large) for p in self.parameters)

    @property
    def touches(self) -> list[str]:
        """Statements that wait for the memory that a call touches."""
        return gen_touched.statements(self.row.name, self.parameters, self.large)

    @property
    def notes(self) -> list[str]:
        """Statements that say what a call waits for."""
        return [] if self.row.is_collective or self.row.hook else gen_notes.statements(self.row.name, self.parameters)

    @property
    def records(self) -> list[str]:
        """Statements that say what a recording has of a call."""
        return gen_record.statements(self.row.name, self.parameters, self.large)

    @property
    def names(self) -> str:
        return ", ".join(p.name for p in self.parameters)

    @property
    def native_arguments(self) -> str:
        return ", ".join(p.native_argument(self.large) for p in self.parameters)


def functions(apis: dict) -> list[Function]:
    """Every function of the manifest, then those that only wait and forward, in the families that we export."""
    found = []
    touching = gen_touched.forwarded(apis, {row.name for row in MANIFEST})
    waiting = {*gen_waiting.WAITING, *gen_waiting.TESTING, *gen_waiting.PROBING, *gen_notes.WAITING}
    others = sorted({*touching, *waiting, *gen_requests.WRAPPED})
    for row in (*MANIFEST, *(Row(name, forward=True) for name in others)):
        api = apis["mpi_" + row.name.lower()]
        all_of_c = parameters(api)
        found.append(Function(row, False, all_of_c))
        if has_large(api):
            found.append(Function(row, True, all_of_c))
    for name, its_parameters in gen_waiting.EXTENSIONS.items():
        found.append(Function(Row(name, forward=True, extension=True), False, its_parameters))
    return found


BANNER = (
    "// SPDX-License-Identifier: BSD-3-Clause\n"
    "// Generated by tools/gen/gen_wrappers.py from the MPI standard's API data. Do not edit.\n"
)


def entries_header(all_functions: list[Function]) -> str:
    """The numbering of host functions."""
    lines = [BANNER + "#pragma once", '#include "base/collective.hpp"', '#include "observe/other_calls.hpp"', ""]
    lines += ["namespace stretto::mpi {", ""]
    lines.append("// A host function that a wrapper may forward to.")
    lines.append("enum class Entry : unsigned short {")
    lines += [f"  {f.entry}," for f in all_functions]
    lines += ["  count_", "};", "inline constexpr int kEntries = static_cast<int>(Entry::count_);", ""]
    lines.append("struct EntryFacts {")
    lines.append("  const char* name;       // as the user calls it")
    lines.append("  const char* pmpi_name;  // as the host provides it")
    lines.append("  Collective collective;  // count_ for what is no collective of ours")
    lines.append("  // Not none: with a watchdog or statistics it goes by the slow path of its wrapper (forward.hpp).")
    lines.append("  observe::OtherKind kind;")
    lines += ["};", "inline constexpr EntryFacts kEntryFacts[kEntries] = {"]
    for f in all_functions:
        collective = f.row.name.lower() if f.row.is_collective else gen_requests.collective(f.row.name) or "count_"
        kind = gen_notes.kind(f.row.name, f.parameters) if f.notes else "none"
        lines.append(f'    {{"{f.symbol}", "P{f.symbol}", Collective::{collective}, observe::OtherKind::{kind}}},')
    lines += ["};", "", "}  // namespace stretto::mpi", ""]
    return "\n".join(lines)


def host_type(f: Function, large: bool) -> str:
    return f"int (*)({', '.join(p.large if large else p.small for p in f.parameters)})"


def step_function(f: Function, name: str, first: tuple[str, ...], body: list[str]) -> list[str]:
    """A function that gets a call's arguments. It names the parameters that it uses."""
    if not body:
        return []
    used = set(re.findall(r"\w+", " ".join(body)))
    types = [(p.large if f.large else p.small, p.name if p.name in used else "") for p in f.parameters]
    declarations = ", ".join([*first, *(f"{kind} {name}".strip() for kind, name in types)])
    out = ["namespace {", f"[[gnu::cold, gnu::noinline]] void {f.entry}_{name}({declarations}) {{"]
    return [*out, *(f"  {line}" for line in body), "}", "}  // namespace"]


def touched_function(f: Function) -> list[str]:
    """The function that waits for the memory that a call touches."""
    return step_function(f, "touched", (), f.touches)


def note_function(f: Function) -> list[str]:
    """The function that says what a call waits for."""
    return step_function(f, "note", ("Noted& note",), f.notes)


def large_forward(f: Function) -> list[str]:
    """The host's _c function, or its int function where there is none."""
    out = ["namespace {", f"int {f.entry}_host(const void* caller, {f.declarations}) {{"]
    out.append(f"  if (void* const function = host_entry_if_any(Entry::{f.entry}, caller)) [[likely]] {{")
    out.append(f"    return reinterpret_cast<{host_type(f, True)}>(function)({f.names});")
    out += ["  }", "  Narrow narrow(comm);"]
    return [*out, *narrowed_arrays(f, "caller"), "}", "}  // namespace"]


def narrowed_arrays(f: Function, caller: str) -> list[str]:
    """The call of the host's int function with what a Narrow `narrow` makes of the counts."""
    small = f.row.name.lower()
    by_neighbor = "neighbor_" in small
    out, arguments = [], []
    for p in f.parameters:
        if p.small == p.large:
            arguments.append(p.name)
            continue
        out.append(f"  {p.small} const narrow_{p.name} = {p.narrowed(by_neighbor)};")
        arguments.append(f"narrow_{p.name}")
    out.append("  if (const int code = narrow.verdict()) return code;")
    host = f"host_entry(Entry::{small}, {caller})"
    return [*out, f"  return reinterpret_cast<{host_type(f, False)}>({host})({', '.join(arguments)});"]


def exported(f: Function, mpi: str, pmpi: str, first: tuple[str, ...] = ()) -> list[str]:
    """The two names of a function, what each calls, and what MPI_ does first."""
    rest = f"(__builtin_return_address(0), {f.names});"
    out = [f"STRETTO_EXPORT int {f.symbol}({f.declarations}) {{", *first, f"  return {mpi}{rest}", "}"]
    return [*out, f"STRETTO_EXPORT int P{f.symbol}({f.declarations}) {{", f"  return {pmpi}{rest}", "}", ""]


def wrapper(f: Function) -> str:
    """The shared body and the two exported names of a function that Stretto serves or hears of."""
    if f.large:
        forward = f"{f.entry}_host(caller, {f.names})"
    else:
        forward = f"reinterpret_cast<Host>(host_entry(Entry::{f.entry}, caller))({f.names})"
    out = (
        touched_function(f)
        + note_function(f)
        + gen_record.function(f.entry, f.records, f.parameters, f.large)
        + (large_forward(f) if f.large else [])
    )
    body = "made" if f.records else "entry"
    out += [
        "namespace {",
        f"[[gnu::always_inline]] inline int {f.entry}_{body}(const void* caller, {f.declarations}) {{",
    ]
    if not f.large:
        out.append(f"  using Host = {host_type(f, False)};")
    waits = [f"  if (deferring()) [[unlikely]] {f.entry}_touched({f.names});"] if f.touches else []
    noted = f"make_noted<{f.entry}_note, Entry::{f.entry}>(caller, make, {f.names})"
    if f.row.notice or f.row.around:
        out += [*waits, "  if (may_serve(caller)) {"]
        if f.row.notice:
            out += [f"    {f.row.notice}();", f"    const auto make = [&] {{ return {forward}; }};"]
        else:
            out.append(f"    const auto make = [&] {{ return {f.row.around}([&] {{ return {forward}; }}); }};")
        if f.notes:
            out.append(f"    const OtherCall timed(Entry::{f.entry}, caller);")
            out.append(f"    if (notes_are_kept()) return {noted};")
        out += ["    return make();", "  }"]
    elif f.row.hook:
        out.append(f"  if (may_serve(caller)) return {f.row.name.lower()}({f.names});")
    else:
        out += ["  const std::uint64_t began = call_begins();", *waits]
        out.append("  if (may_serve(caller)) [[likely]] {")
        out.append(f"    Call call{{Entry::{f.entry}, began}};")
        out.append(f"    if ({f.row.name.lower()}(call, {f.native_arguments})) [[likely]] return call.code;")
        out.append(f"    return host_done(call, {forward});")
        out.append("  }")
    out += [f"  return {forward};", "}"]
    if f.records:
        out.append(f"[[gnu::always_inline]] inline int {f.entry}_entry(const void* caller, {f.declarations}) {{")
        out += [*gen_record.guard(f.entry, f.names), f"  return {f.entry}_made(caller, {f.names});", "}"]
    out.append("}  // namespace")
    to_tool = (
        f"  if (void* const tool = tool_behind(Entry::{f.entry}, __builtin_return_address(0))) [[unlikely]] {{",
        f"    return reinterpret_cast<{host_type(f, f.large)}>(tool)({f.names});",
        "  }",
    )
    return "\n".join(out + exported(f, f"{f.entry}_entry", f"{f.entry}_entry", to_tool))


def narrowed_call(f: Function) -> list[str]:
    """What a _c function does where the host has only the int function."""
    small = f.row.name.lower()
    out = ["namespace {", f"[[gnu::cold, gnu::noinline]] int {f.entry}_narrowed({f.declarations}) {{"]
    if any(p.counted for p in f.parameters):  # such a call uses its arrays after it has returned
        out.append("  Narrow narrow(comm, Narrow::Arrays::kept);")
        return [*out, *narrowed_arrays(f, "nullptr"), "}", "}  // namespace"]
    arguments = []
    for p in f.parameters:
        if p.small == p.large:
            arguments.append(p.name)
        elif p.small == "int*":
            out.append(f"  NarrowPlace narrow_{p.name}({p.name});")
            arguments.append(f"narrow_{p.name}.place()")
        else:
            arguments.append(f"narrowed({p.name})")
    host = f"host_entry(Entry::{small})"
    out.append(f"  return reinterpret_cast<{host_type(f, False)}>({host})({', '.join(arguments)});")
    return [*out, "}", "}  // namespace"]


def forwarder(f: Function) -> str:
    """A function that waits for the memory that a call touches, or in the host's place, and forwards the call."""
    waits = gen_waiting.function(f.row.name) or gen_requests.step(f.entry, f.row.name)
    out = (
        touched_function(f)
        + note_function(f)
        + gen_record.function(f.entry, f.records, f.parameters, f.large)
        + (narrowed_call(f) if f.large else [])
    )
    out += gen_requests.function(f.entry, f.row.name, f.parameters, f.large)
    stand_in = gen_waiting.stand_in(f.row.name) or (f"{f.entry}_narrowed" if f.large else "nullptr" if waits else "")
    note, record = (f"{f.entry}_note" if f.notes else ""), (f"{f.entry}_record" if f.records else "")
    parts = [f"{f.entry}_touched" if f.touches else "", stand_in, waits or "", note, record]
    while parts and parts[-1] in ("", "nullptr"):
        parts.pop()
    listed = ", ".join([f"Entry::{f.entry}", *(part or "nullptr" for part in parts)])
    return "\n".join(out + exported(f, f"forward_mpi<{listed}>", f"forward<{listed}>"))


def source(some: list[Function], body: Callable[[Function], str], headers: tuple[str, ...]) -> str:
    """A translation unit with exported functions."""
    lines = [BANNER + "\n".join(f'#include "{header}"' for header in headers), ""]
    lines += ["using namespace stretto;", "using namespace stretto::mpi;", ""]
    lines += [body(f) for f in some if not f.large]
    return "\n".join([*lines, "#if STRETTO_LARGE_COUNT", "", *(body(f) for f in some if f.large), "#endif", ""])


def export_map(all_functions: list[Function], abi: dict) -> str:
    """The version script: everything else in the library is local."""
    shown = [
        f.symbol
        for f in all_functions
        if (abi["large_count"] or not f.large) and (f.symbol in abi["extensions"] or not f.row.extension)
    ]
    symbols = [prefix + symbol for symbol in shown for prefix in ("", "P")] + list(C_API)
    body = "\n".join(f"    {symbol};" for symbol in symbols)
    return f"# Generated by tools/gen/gen_wrappers.py. Do not edit.\n{{\n  global:\n{body}\n  local:\n    *;\n}};\n"


def outputs(apis: dict) -> dict[Path, str]:
    """Every generated file with its contents."""
    found = functions(apis)
    wrapped = {f.name for f in found}
    if wrong := [*gen_complete.mistakes(apis, wrapped), *gen_complete.missing_counts(apis, wrapped)]:
        raise SystemExit("gen_wrappers: " + "\n".join(wrong))
    ours, others = [f for f in found if not f.row.forward], [f for f in found if f.row.forward]
    files = {
        OUTPUT / "host" / "entries.gen.hpp": entries_header(found),
        OUTPUT / "wrappers.gen.cpp": source(
            ours,
            wrapper,
            (
                "abi.gen.hpp",
                "mpi/calls/calls.hpp",
                "mpi/comm_free.hpp",
                "mpi/data/held_handles.hpp",
                "mpi/lifecycle.hpp",
                "mpi/narrow.hpp",
                "mpi/record/recorded.hpp",
                "mpi/waits/noted.hpp",
                "mpi/stats/other_call.hpp",
                "mpi/requests/own_requests.hpp",
                "mpi/stats/profile.hpp",
                "mpi/requests/requests.hpp",
                "mpi/overlap/touched.hpp",
                "mpi/host/windows.hpp",
                "mpi/job/worlds_met.hpp",
            ),
        ),
        OUTPUT / "forwards.gen.cpp": source(
            others, forwarder, ("abi.gen.hpp", "mpi/calls/calls.hpp", "mpi/forward.hpp", "mpi/narrow.hpp")
        ),
    }
    for name, abi in gen_abis.abis().items():
        files[gen_abis.VENDOR / name / "exports.map"] = export_map(found, abi)
    return files | gen_abis.outputs() | gen_standard.outputs()


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
