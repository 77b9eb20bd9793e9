# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have.

This module knows their names and checks their values, before anything is built or started.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Optional

import typer

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
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)  # as in src/base/collective.hpp
OF_ALL_RANKS = tuple(each for each in COLLECTIVES if not each.startswith("neighbor_"))
REGULAR = {
    "gatherv": "gather",
    "scatterv": "scatter",
    "allgatherv": "allgather",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "reduce_scatter_block": "reduce_scatter",
}  # the collective whose algorithms serve this one
MOST_PER_CPU = 64  # ranks, unless --force is given


# ---- names of options ----------------------------------------------------------------------------

# Old names of options. They still work, and help does not show them.
OLD_NAMES = {
    "--np": "--ranks",
    "-np": "--ranks",  # what mpiexec calls it
    "--bytes": "--sizes",
    "--picture": "--plot",
    "--repetitions": "--repeat",
    "--stats-json": "--json",
    "--ranks": "--per-host",
}


def hide_old_names(option: Any) -> None:
    """Makes help and errors show only the new names of an option. The parser still understands all."""
    names = list(option.opts)
    if "--ranks" in names and "-n" in names:
        names.append("-np")
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


def quote_wrong_values(parameter: Any) -> None:
    """Makes errors of Typer name the value, which newer versions leave out."""
    process = parameter.process_value

    def process_and_quote(context: Any, value: Any) -> Any:
        try:
            return process(context, value)
        except typer.BadParameter as error:
            shown = value if isinstance(value, str) else " ".join(map(str, value or ()))
            if shown and shown not in error.message:
                error.message = f"'{shown}': {error.message}"
            raise

    parameter.process_value = process_and_quote


def tidy_options(command: Any, context: Any) -> None:
    """Makes help show no type for an option without a value, and no old names. Newer versions of
    Typer would show <bool>."""
    for parameter in command.get_params(context):
        quote_wrong_values(parameter)
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
        if parameter.param_type_name == "option":
            hide_old_names(parameter)
    for each in (*getattr(command, "commands", {}).values(), *getattr(command, "parts", {}).values()):
        tidy_options(each, context)


# ---- collectives and algorithms ------------------------------------------------------------------


def named_in(texts: Iterable[str]) -> list[str]:
    """The names in list options that may be repeated: `--op a,b --op c`."""
    return list(dict.fromkeys(name for text in texts for part in text.split(",") if (name := part.strip().lower())))


def checked_ops(texts: Iterable[str], known: Sequence[str], name: str = "--op") -> list[str]:
    """The collectives that these texts name; `all` stands for all of them."""
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
    """Callback of an --op that takes one collective."""
    name = text.strip().lower()
    known = OF_ALL_RANKS
    if name not in known:
        fail(f"--op: no such collective: {text}: one of {', '.join(known)}")
    return name


def algorithm_names(op: str, names: Iterable[str]) -> list[str]:
    """Algorithms as stretto-model takes them: `bcast:chain` is `chain` of a bcast. Fails for names
    that the sources do not have."""
    known = algorithms()
    names = list(names)
    if not names:
        fail(f"name an algorithm of {op} with -a: {_listed(op, known)}")
    return [_algorithm(op, name, known) for name in names]


def _algorithm(op: str, name: str, known: dict[str, list[str]]) -> str:
    of, colon, rest = name.partition(":")
    if colon and of in COLLECTIVES:
        if of != op:
            fail(f"-a {name}: this is about {op}, not {of}")
        name = rest
    flat, *parameters = name.split(" ", 1)
    flat = FORMER.get(flat, flat)
    name = " ".join([flat, *parameters])
    if known and flat not in (*known.get(REGULAR.get(op, op), []), *compositions(op)):
        fail(f"{op} has no algorithm {name}: one of {_listed(op, known)}")
    return name


def verified_names(names: Iterable[str]) -> list[str]:
    """Algorithms as stretto-verify takes them: `bcast` or `bcast:chain`."""
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
        fail(f"{op} uses the algorithms of {REGULAR[op]}: --op {REGULAR[op]}")
    fail(f"no such collective: {op}: one of {', '.join(known)}")


def _listed(op: str, known: dict[str, list[str]]) -> str:
    return f"{', '.join(known.get(REGULAR.get(op, op), []))}; with levels: {', '.join(compositions(op))}"


# Earlier names of compositions, which still work.
FORMER = {"hierarchy:line": "hierarchy:chain", "hierarchy:line_and_back": "hierarchy:chain_and_back"}


def compositions(op: str) -> list[str]:
    """Compositions over levels (kCompositions of src/select/across_nodes.hpp)."""
    of_vectors = ["hierarchy:stripes", "hierarchy:chain"] if op in ("bcast", "reduce", "allreduce") else []
    there_and_back = (
        ["hierarchy:reduce_bcast", "hierarchy:rails", "hierarchy:chain_and_back"] if op == "allreduce" else []
    )
    carriers = ["hierarchy:carriers"] if op in ("alltoallv", "alltoallw") else []
    return ["hierarchy", "hierarchy:nodes", *carriers, *of_vectors, *there_and_back]


@functools.cache
def algorithms() -> dict[str, list[str]]:
    """Algorithms by collective, read from the source of the manifest. Empty where there is no
    source: then the C++ programs check the names."""
    found: dict[str, list[str]] = {}
    try:
        text = (root() / "src" / "coll" / "manifest.cpp").read_text()
    except OSError:
        return found
    for op, name in re.findall(r'\{Collective::(\w+),\s+"(\w+)"', text):
        found.setdefault(op, []).append(name)
    return found


# ---- ranks ---------------------------------------------------------------------------------------


def check_crowd(ranks: int, force: Optional[bool] = None) -> None:
    """Fails when so many ranks would take the machine's memory, and hours. `force` None: the
    command has no --force."""
    usable = len(os.sched_getaffinity(0))
    if ranks > MOST_PER_CPU * usable and not force:
        fail(
            f"-n {ranks}: more than {MOST_PER_CPU} ranks for each of {usable} processors"
            + ("" if force is None else "; --force allows it")
        )


# ---- files ---------------------------------------------------------------------------------------


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


def all_readable(paths: list[Path]) -> list[Path]:
    """Callback of arguments that name files to read."""
    for path in paths:
        readable(path)
    return paths
