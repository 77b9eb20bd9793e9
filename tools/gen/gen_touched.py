# SPDX-License-Identifier: BSD-3-Clause
"""Which functions touch the program's buffers, and which memory that is (src/mpi/overlap/touched.hpp).

Before the MPI looks at a buffer, Stretto waits for what calls that returned early still bring there.
"""

from __future__ import annotations

import re

import gen_api
from gen_api import Parameter
from stretto.core.arguments import COLLECTIVES

# They take no buffer, but use the one of a request that was made before.
STARTING = ("Start", "Startall", "Pready", "Pready_range", "Pready_list")

_NOT_C = "C programs cannot call it"
_STARTED = "MPI_Start and MPI_Pready wait; older MPIs lack it, and programs ask whether it is there"
# Functions with a buffer that get no wrapper.
EXCEPTIONS = {
    "F_sync_reg": _NOT_C,
    "Sizeof": _NOT_C,
    "Get_address": "it looks at an address, at no data",
    "Comm_attach_buffer": "it looks at no data; many MPIs lack it, and programs ask whether it is there",
    "Session_attach_buffer": "it looks at no data; many MPIs lack it, and programs ask whether it is there",
    "Psend_init": _STARTED,
    "Precv_init": _STARTED,
}
_COLLECTIVES = "|".join(name for name in COLLECTIVES if name != "barrier")
# Buffers with so many elements for each rank, by collective and name.
_PER_RANK = {
    ("gather", "recvbuf"),
    ("scatter", "sendbuf"),
    ("allgather", "recvbuf"),
    ("alltoall", "sendbuf"),
    ("alltoall", "recvbuf"),
    ("reduce_scatter_block", "sendbuf"),
    ("reduce_scatter_block", "recvbuf"),
}


def why_not(name: str) -> str | None:
    """Why a function with a buffer gets no wrapper, None if it gets one."""
    if name.startswith("T_"):
        return "buffers of MPI_T_ hold no data of messages"
    if re.fullmatch(f"({_COLLECTIVES})_init", name.lower()):
        return "it touches no data: MPI_Start waits"
    return EXCEPTIONS.get(name)


def forwarded(apis: dict, served: set[str]) -> list[str]:
    """The functions that only wait and forward, besides those that Stretto serves."""
    names = [api["name"].removeprefix("MPI_") for api in apis.values() if gen_api.takes_buffer(api)]
    return sorted([*(name for name in names if name not in served and not why_not(name)), *STARTING])


def _collective_of(name: str) -> str | None:
    match = re.fullmatch(f"i?({_COLLECTIVES})", name.lower())
    return match[1] if match else None


def _next(rest: list[Parameter], kinds: set[str], until: str = "") -> Parameter | None:
    """The first parameter of these kinds, before one of the kind `until`."""
    for each in rest:
        if each.kind in kinds:
            return each
        if each.kind == until:
            return None
    return None


def _buffer(name: str, collective: str | None, buffer: Parameter, rest: list[Parameter], large: bool) -> str:
    """The expression that waits for one buffer. `rest`: the parameters behind it."""
    while rest and rest[0].kind == "BUFFER":  # buffers side by side have the same count
        rest = rest[1:]
    size = _next(rest, gen_api.ELEMENTS | gen_api.BYTES, "BUFFER")
    kind = _next(rest, {"DATATYPE"}, "BUFFER")
    if size is not None and size.kind in gen_api.BYTES:
        return f"bytes({buffer.name}, {size.name})"
    if kind is None or kind.array or "neighbor" in name.lower():
        return "everything()"
    if size is None:
        return f"elements({buffer.name}, 1, {kind.name})"
    if size.array:
        displacements = _next(rest, {"POLYDISPLACEMENT"}, "BUFFER")
        counts = size.native_argument(large)
        if displacements is None:
            return f"sum({buffer.name}, {counts}, {kind.name})"
        return f"blocks({buffer.name}, {counts}, {displacements.native_argument(large)}, {kind.name})"
    each = "each" if (collective, buffer.name) in _PER_RANK else "elements"
    return f"{each}({buffer.name}, {size.name}, {kind.name})"


def statements(name: str, parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    """The body of the function that waits for all buffers of a call. Empty: it has none."""
    if why_not(name) is not None:
        return []
    collective = _collective_of(name)
    found = []
    for i, p in enumerate(parameters):
        if p.kind != "BUFFER":
            continue
        wait = f"touched.{_buffer(name, collective, p, list(parameters[i + 1 :]), large)};"
        found.append(f"if (touched.at(root)) {wait}" if p.root_only else wait)
    if name in STARTING or "touched.everything();" in found:
        return ["Touched().everything();"]
    if not found:
        return []
    return ["const Touched touched(comm);" if collective else "const Touched touched;", *found]
