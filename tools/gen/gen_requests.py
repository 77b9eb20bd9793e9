# SPDX-License-Identifier: BSD-3-Clause
"""Collectives with a request that Stretto may serve (src/mpi/nonblocking.hpp)."""

from __future__ import annotations

from gen_api import Parameter
from stretto.core.arguments import COLLECTIVES

# The blocking function of ours that each of them calls with its request.
SERVED = {f"I{name}": name for name in COLLECTIVES if not name.endswith("alltoallw")}


def function(entry: str, name: str, parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    """What a call does before the host gets it."""
    declarations = ", ".join(p.declaration(large) for p in parameters)
    arguments = ", ".join(p.native_argument(large) for p in parameters if p.name != "request")
    return [
        "namespace {",
        f"[[gnu::cold, gnu::noinline]] bool {entry}_served(int* code, {declarations}) {{",
        f"  Call call{{Entry::{entry}, call_begins()}};",
        "  call.request = request;",
        f"  if (!{SERVED[name]}(call, {arguments})) return false;",
        "  *code = call.code;",
        "  return true;",
        "}",
        "}  // namespace",
    ]
