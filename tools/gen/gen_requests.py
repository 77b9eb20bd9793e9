# SPDX-License-Identifier: BSD-3-Clause
"""Collectives with a request that Stretto may serve (src/mpi/requests/nonblocking.hpp)."""

from __future__ import annotations

from gen_api import Parameter
from stretto.core.arguments import COLLECTIVES

# The blocking function of ours that each of them calls.
SERVED = {f"I{name}": name for name in COLLECTIVES}
PERSISTENT = {f"{name.capitalize()}_init": name for name in COLLECTIVES}
# They start, cancel or free a persistent request, or free what a request still needs.
HANDLES = ("Start", "Startall", "Cancel", "Request_free", "Op_free", "Type_free")
WRAPPED = (*SERVED, *PERSISTENT, *HANDLES)


def collective(name: str) -> str | None:
    """Which collective a function makes or starts."""
    return SERVED.get(name) or PERSISTENT.get(name)


def step(entry: str, name: str) -> str | None:
    """What serves a call before the host gets it. None: nothing."""
    return f"Serves<{entry}_served>{{}}" if name in WRAPPED else None


def function(entry: str, name: str, parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    """Its body, for a collective."""
    if collective(name) is None:
        return []
    declarations = ", ".join(p.declaration(large).removesuffix(" info") for p in parameters)
    arguments = ", ".join(p.native_argument(large) for p in parameters if p.name not in ("request", "info"))
    out = ["namespace {", f"[[gnu::cold, gnu::noinline]] bool {entry}_served(int* code, {declarations}) {{"]
    if name in SERVED:
        out += [
            "  Requested requested{request};",
            f"  Call call{{Entry::{entry}, call_begins()}};",
            "  call.requested = &requested;",
            f"  if (!{SERVED[name]}(call, {arguments})) return false;",
            "  *code = call.code;",
            "  return true;",
        ]
    else:
        held = [p.name for p in parameters if p.kind in {"DATATYPE", "OPERATION"} and not p.array]
        listed = ", ".join([f"code, Entry::{entry}, comm, request, make", *held])
        out += [
            f"  const auto make = [=](Call& call) {{ return {PERSISTENT[name]}(call, {arguments}); }};",
            f"  return persistent_init({listed});",
        ]
    return [*out, "}", "}  // namespace"]
