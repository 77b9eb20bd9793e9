# SPDX-License-Identifier: BSD-3-Clause
"""Reads profiles (TOML) and checks every part of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.paths import own_profile
from stretto.core.positions import Source, read
from stretto.model.profile import FORMAT, PATH_KEYS, PORT_KEYS, WORK_KEYS, Profile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


MEASURED_TEXTS = ("op", "algorithm", "place")
MEASURED_WHOLE = ("ranks", "bytes", "k", "segments", "turns")
MEASURED_TIMES = ("time", "spread", "predicted")
GAP_RULES = ("direction", "any")
PORT_RULES = ("turn", "fair")
EXAMPLE = Path(__file__).parent / "profiles" / "example.toml"


def find(path: Path | None, cluster: str | None = None) -> Path:
    """The profile that the user names, else this machine's own (or this cluster's), else the
    example."""
    own = own_profile(cluster)
    return path or (own if own.exists() else EXAMPLE)


def load(path: Path | None, cluster: str | None = None) -> Profile:
    """Reads a profile."""
    path = find(path, cluster)
    source = read(path)
    try:
        document = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        fail(source.decoding(error))
    return replace(from_document(document, source), file=str(path))


def from_document(document: dict[str, Any], source: Source) -> Profile:
    """Checks a document. Errors name the file and the place."""
    if document.get("format") != FORMAT:
        fail(source.in_table(f"format = {FORMAT} expected, not {document.get('format')!r}", key="format"))
    known = {"format", "about", "path", "reduce", "copy", "port", "gap", "ports", "measured", "processors"}
    if unknown := sorted(set(document) - known):
        first = document[unknown[0]]
        is_table = isinstance(first, (dict, list))
        fail(
            source.in_table(
                f"unknown: {', '.join(unknown)}",
                table=unknown[0] if is_table else "",
                key="" if is_table else unknown[0],
            )
        )
    if not isinstance(document.get("about", {}), dict):
        fail(source.in_table("about must be a table, [about]", key="about"))
    if document.get("gap", "direction") not in GAP_RULES:
        fail(source.in_table(f"gap = one of {', '.join(GAP_RULES)}", key="gap"))
    if document.get("ports", "turn") not in PORT_RULES:
        fail(source.in_table(f"ports = one of {', '.join(PORT_RULES)}", key="ports"))
    paths = _pieces(document, "path", ("level", *PATH_KEYS), source)
    if not paths:
        fail(source.at(0, "a [[path]] is missing"))
    for number, piece in enumerate(paths):
        if not _is_name(piece.get("level")):
            fail(
                source.in_table(
                    "a path's level is a name without spaces", "path", number, "level" if "level" in piece else ""
                )
            )
    ports = _pieces(document, "port", ("level", *PORT_KEYS), source)
    processors = document.get("processors")
    for table, number, shared in [
        *(("port", number, port) for number, port in enumerate(ports)),
        *([("processors", 0, processors)] if processors is not None else []),
    ]:
        if not isinstance(shared, dict) or not _is_name(shared.get("level")):
            fail(
                source.in_table(
                    "what ranks share ([[port]], [processors]) has the name of a level, without spaces", table, number
                )
            )
    if processors is not None and not _is_share(processors):
        fail(source.in_table("[processors] has level and count, a number from 1 on, and turn, 0 or more", "processors"))
    return Profile(
        dict(document.get("about", {})),
        paths,
        _pieces(document, "reduce", WORK_KEYS, source),
        _pieces(document, "copy", WORK_KEYS, source),
        ports,
        document.get("gap", "direction"),
        measured=_measured(document.get("measured", []), source),
        processors=processors,
        port_rule=document.get("ports", "turn"),
    )


def _is_share(processors: dict[str, Any]) -> bool:
    count, turn = processors.get("count"), processors.get("turn", 0)
    return (
        set(processors) - {"turn"} == {"level", "count"}
        and isinstance(count, int)
        and _is_number(count)
        and count >= 1
        and _is_number(turn)
        and turn >= 0
    )


def _measured(rows: Any, source: Source) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(r, dict) for r in rows):
        fail(source.in_table("measured must be an array of tables, [[measured]]", "measured"))
    for number, row in enumerate(rows):
        row.setdefault("place", "")  # no levels: all ranks are in one domain
        row.setdefault("turns", 0)
        if set(row) != {*MEASURED_TEXTS, *MEASURED_WHOLE, *MEASURED_TIMES}:
            fail(
                source.in_table(
                    f"[[measured]] has {', '.join((*MEASURED_TEXTS, *MEASURED_WHOLE, *MEASURED_TIMES))}",
                    "measured",
                    number,
                )
            )
        right = (
            all(isinstance(row[key], str) for key in MEASURED_TEXTS)
            and all(_is_number(row[key]) and isinstance(row[key], int) for key in MEASURED_WHOLE)
            and all(_is_number(row[key]) for key in MEASURED_TIMES)
            and row["time"] > 0
        )
        if not right:
            fail(
                source.in_table(
                    "[[measured]]: texts, numbers that are not negative, and a time above 0 expected",
                    "measured",
                    number,
                )
            )
    return rows


def _is_name(value: Any) -> bool:
    """Whether it is one word. stretto-model reads its lines by words."""
    return isinstance(value, str) and value.split() == [value]


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and 0 <= value < float("inf")


def _pieces(document: dict[str, Any], key: str, keys: tuple[str, ...], source: Source) -> list[dict[str, Any]]:
    pieces = document.get(key, [])
    if not isinstance(pieces, list) or not all(isinstance(p, dict) for p in pieces):
        fail(source.in_table(f"{key} must be an array of tables, [[{key}]]", key))
    last: dict[str, float] = {}
    for number, piece in enumerate(pieces):
        for each, value in piece.items():
            if each not in (*keys, "from_bytes"):
                fail(source.in_table(f"[[{key}]]: unknown: {each}", key, number, each))
            if each != "level" and not _is_number(value):
                fail(source.in_table(f"{each} = {value!r}: a number, not negative, expected", key, number, each))
        level = str(piece.get("level", ""))
        if piece.get("from_bytes", 0) <= last.get(level, -1):
            fail(source.in_table(f"[[{key}]] {level}: pieces must ascend by from_bytes", key, number, "from_bytes"))
        last[level] = piece.get("from_bytes", 0)
    return pieces
