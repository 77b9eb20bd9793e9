# SPDX-License-Identifier: BSD-3-Clause
"""The C functions of the MPI standard's API data, as gen_wrappers.py needs them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

HANDLES = {"COMMUNICATOR", "DATATYPE", "OPERATION", "INFO", "FILE", "GROUP", "WINDOW", "SESSION", "REQUEST"}
ELEMENTS = {"POLYXFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM", "POLYDTYPE_NUM_ELEM", "POLYDTYPE_NUM_ELEM_NNI"}
BYTES = {"POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE", "WINDOW_SIZE", "WIN_ATTACH_SIZE"}
# C types of scalars, in the int family and in the _c family.
SCALARS = {
    **dict.fromkeys(ELEMENTS | {"POLYNUM_BYTES_NNI", "POLYRMA_DISPLACEMENT"}, ("int", "std::int64_t")),
    **dict.fromkeys(
        {
            "POLYDTYPE_PACK_SIZE",
            "WINDOW_SIZE",
            "WIN_ATTACH_SIZE",
            "XFER_NUM_ELEM_NNI",
            "RMA_DISPLACEMENT_NNI",
            "OFFSET",
        },
        ("std::int64_t", "std::int64_t"),
    ),
    **dict.fromkeys(
        {"LOGICAL", "RANK", "RANK_NNI", "TAG", "PARTITION", "THREAD_LEVEL", "ARRAY_LENGTH", "ARRAY_LENGTH_NNI"}
        | {"ACCESS_MODE", "ASSERT", "COLOR", "COMM_SIZE", "DEGREE", "KEY", "LOCK_TYPE", "NUM_DIMS", "SPLIT_TYPE"}
        | {"ARRAY_LENGTH_PI", "ERROR_CODE", "UPDATE_MODE"},
        ("int", "int"),
    ),
    "STRING": ("const char*", "const char*"),
}
# Arrays of ints in both families.
INTS = {"DEGREE", "DIMENSION", "INDEX", "LOGICAL", "RANK", "RANK_NNI", "WEIGHT"}
# What the host writes, or what has the same elements in both families.
POINTERS = {"WINDOW", "C_BUFFER", "STATUS", "REQUEST", "MESSAGE", "POLYLOCATION", *HANDLES}


@dataclass(frozen=True)
class Parameter:
    """One C parameter in both count families."""

    name: str
    kind: str
    small: str  # C type in the int family
    large: str  # C type in the _c family
    array: bool = False
    root_only: bool = False

    @property
    def counted(self) -> bool:
        """An array of counts or displacements: handed on with its width."""
        return self.array and self.small != self.large

    def declaration(self, large: bool) -> str:
        return f"{self.large if large else self.small} {self.name}"

    def narrowed(self, by_neighbor: bool) -> str:
        """The argument for the int family, as an expression on a Narrow `narrow`."""
        if self.counted and by_neighbor:
            side = "destinations" if self.name.startswith("s") else "sources"
            return f"narrow.at_{side}({self.name})"
        if self.counted:
            return f"narrow.at_root({self.name}, root)" if self.root_only else f"narrow.everywhere({self.name})"
        return f"narrow.at_root({self.name}, root)" if self.root_only else f"narrow({self.name})"

    def native_argument(self, large: bool) -> str:
        return f"CountArray{{{self.name}, {str(large).lower()}}}" if self.counted else self.name


def types(data: dict) -> tuple[str, str]:
    """The C types of a parameter in the int family and in the _c family."""
    kind, array, direction = data["kind"], data["length"] is not None, data["param_direction"]
    if kind == "BUFFER":
        return ("const void*",) * 2 if data["constant"] else ("void*",) * 2
    if kind in {"ARGUMENT_COUNT", "ARGUMENT_LIST"}:
        return ("int*" if kind == "ARGUMENT_COUNT" else "char***",) * 2
    if array and direction == "in" and kind in INTS:
        return "const int*", "const int*"
    if array and kind in ELEMENTS | {"POLYDISPLACEMENT"}:
        return "const int*", "const std::int64_t*"
    if kind in {"STRING_ARRAY", "STRING_2DARRAY"} or (array and kind in {"COMM_SIZE", "ERROR_CODE"}):
        return ("const void*" if direction == "in" else "void*",) * 2
    if array and (kind in HANDLES | {"STRING", "PARTITION", "DISPLACEMENT"}):
        return ("void*" if direction == "inout" else "const void*",) * 2  # elements are opaque here
    if kind == "THREAD_LEVEL" and direction == "out":
        return "int*", "int*"
    if kind == "POLYDISPLACEMENT_COUNT":
        return "int*", "std::int64_t*"
    if direction == "out" and kind in {"LOGICAL", "INDEX", "ARRAY_LENGTH"}:
        return "int*", "int*"
    if data["pointer"] and kind in HANDLES:
        return ("void*",) * 2
    if direction == "in" and kind in HANDLES:
        return "Handle", "Handle"
    if direction != "in" and kind in POINTERS:
        return "void*", "void*"
    if kind in SCALARS:
        return SCALARS[kind]
    raise SystemExit(f"gen_wrappers: parameter {data['name']} has the unknown kind {kind}")


def parameters(api: dict) -> tuple[Parameter, ...]:
    """Those that C has."""
    return tuple(Parameter(p["name"], p["kind"], *types(p), p["length"] is not None, p["root_only"]) for p in in_c(api))


def in_c(api: dict) -> list[dict]:
    return [p for p in api["parameters"] if "c_parameter" not in p["suppress"].split()]


def is_callable(api: dict) -> bool:
    """Whether C programs can call it."""
    attributes = api["attributes"]
    return attributes["c_expressible"] and not attributes["callback"] and attributes["predefined_function"] is None


def takes_buffer(api: dict) -> bool:
    """Whether C programs can call it with a buffer."""
    return is_callable(api) and any(p["kind"] == "BUFFER" for p in in_c(api))


def has_large(api: dict) -> bool:
    """Whether there is a _c function, too."""
    return any(p["kind"].startswith("POLY") for p in in_c(api))


def load(path: Path | None) -> dict:
    """The API data: of `path`, or of the installed pympistandard."""
    if path is not None:
        return json.loads(path.read_text(encoding="utf-8"))
    try:
        return json.loads((resources.files("pympistandard.data") / "apis.json").read_text(encoding="utf-8"))
    except ModuleNotFoundError:
        raise SystemExit("gen_wrappers: install pympistandard==0.2.0, or name its apis.json with --apis") from None
