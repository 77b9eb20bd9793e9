# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have: their names, and whether what they say makes sense. Judged before anything is built or started."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Optional

from stretto.core.console import fail
from stretto.core.paths import root

COLLECTIVES = (
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)  # as src/base/collective.hpp
REGULAR = {
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "reduce_scatter_block": "reduce_scatter",
}  # whose algorithms serve them
MOST_PER_CPU = 64  # ranks, unless forced


# ---- names of options ------------------------------------------------------------------------------------------------

# Names that options once had. They work as ever and are not shown.
OLD_NAMES = {
    "--np": "--ranks",
    "--bytes": "--sizes",
    "--picture": "--plot",
    "--repetitions": "--repeat",
    "--stats-json": "--json",
    "--ranks": "--per-host",
}


def hide_old_names(option: Any) -> None:
    """Of an option, which is declared with all its names: help and errors show the new ones alone, and all are understood."""
    names = list(option.opts)
    option.opts = [name for name in names if OLD_NAMES.get(name) not in names]
    if option.opts == names:
        return
    add = option.add_to_parser

    def add_all(parser: Any, context: Any) -> None:
        shown, option.opts = option.opts, names
        try:
            add(parser, context)
        finally:
            option.opts = shown

    option.add_to_parser = add_all


def tidy_options(command: Any, context: Any) -> None:
    """Help shows no type for an option without a value (newer versions of Typer would say <bool>), and no old names."""
    for parameter in command.get_params(context):
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
        if parameter.param_type_name == "option":
            hide_old_names(parameter)
    for each in getattr(command, "commands", {}).values():
        tidy_options(each, context)


# ---- collectives and algorithms --------------------------------------------------------------------------------------


def named_in(texts: Iterable[str]) -> list[str]:
    """The names in options that take lists and may be repeated: `--op a,b --op c`."""
    return list(dict.fromkeys(name for text in texts for part in text.split(",") if (name := part.strip().lower())))


def checked_ops(texts: Iterable[str], known: Sequence[str], name: str = "--op") -> list[str]:
    """Several of these; `all` are all."""
    texts = list(texts)
    found = named_in(texts)
    if found == ["all"]:
        return list(known)
    if unknown := [each for each in found if each not in known]:
        fail(f"{name}: {', '.join(unknown)}: one of {', '.join(known)}")
    if texts and not found:
        fail(f"{name}: a collective is missing: one of {', '.join(known)}")
    return found


def collective(text: str) -> str:
    """Callback of --op where it takes one."""
    name = text.strip().lower()
    if name not in COLLECTIVES:
        fail(f"--op: no such collective: {text}: one of {', '.join(COLLECTIVES)}")
    return name


def algorithm_names(op: str, names: Iterable[str]) -> list[str]:
    """What -a says, as stretto-model takes it: `bcast:chain` is `chain` of a bcast. Names of which the sources have none are refused."""
    known = algorithms()
    return [_algorithm(op, name, known) for name in names]


def _algorithm(op: str, name: str, known: dict[str, list[str]]) -> str:
    of, colon, rest = name.partition(":")
    if colon and of in COLLECTIVES:
        if of != op:
            fail(f"-a {name}: this is about {op}, not {of}")
        name = rest
    flat = name.partition(" ")[0]
    if known and flat not in (*known.get(REGULAR.get(op, op), []), *compositions(op)):
        fail(f"{op} has no algorithm {name}: one of {_listed(op, known)}")
    return name


def verified_names(names: Iterable[str]) -> list[str]:
    """`bcast` or `bcast:chain`, as stretto-verify takes them."""
    known = algorithms()
    names = list(names)
    for name in names if known else ():
        op, _, algorithm = name.partition(":")
        if op not in known:
            _no_collective(op, known)
        if algorithm and algorithm not in known[op]:
            fail(f"no such algorithm: {name}: of {op} one of {', '.join(known[op])}")
    return names


def _no_collective(op: str, known: dict[str, list[str]]) -> NoReturn:
    if op in REGULAR:
        fail(f"{op} goes by the algorithms of {REGULAR[op]}: --op {REGULAR[op]}")
    fail(f"no such collective: {op}: one of {', '.join(known)}")


def _listed(op: str, known: dict[str, list[str]]) -> str:
    return f"{', '.join(known.get(REGULAR.get(op, op), []))}; with levels: {', '.join(compositions(op))}"


def compositions(op: str) -> list[str]:
    """Over levels (kCompositions of src/select/across_nodes.hpp)."""
    of_vectors = ["hierarchy:stripes", "hierarchy:line"] if op in ("bcast", "reduce", "allreduce") else []
    there_and_back = (
        ["hierarchy:reduce_bcast", "hierarchy:rails", "hierarchy:line_and_back"] if op == "allreduce" else []
    )
    return ["hierarchy", "hierarchy:nodes", *of_vectors, *there_and_back]


@functools.cache
def algorithms() -> dict[str, list[str]]:
    """By collective, read out of the manifest's source; empty where there is none, and then the programs judge that have it inside."""
    found: dict[str, list[str]] = {}
    try:
        text = (root() / "src" / "coll" / "manifest.cpp").read_text()
    except OSError:
        return found
    for op, name in re.findall(r'\{Collective::(\w+),\s+"(\w+)"', text):
        found.setdefault(op, []).append(name)
    return found


# ---- ranks -----------------------------------------------------------------------------------------------------------


def check_crowd(ranks: int, force: Optional[bool] = None) -> None:
    """Some thousand ranks on a few processors would take its memory and hours. None: the command has no --force."""
    usable = len(os.sched_getaffinity(0))
    if ranks > MOST_PER_CPU * usable and not force:
        fail(
            f"-n {ranks}: more than {MOST_PER_CPU} ranks for each of {usable} processors"
            + ("" if force is None else "; --force does it all the same")
        )


# ---- files -----------------------------------------------------------------------------------------------------------


def readable(path: Optional[Path]) -> Optional[Path]:
    """Callback of options that name a file to read."""
    if path is None:
        return None
    if path.is_dir():
        fail(f"cannot read {path}: it is a directory")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    return path
