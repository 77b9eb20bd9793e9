# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: what a machine's messages and work cost, as TOML. docs/model.md says what the parameters mean."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stretto.console import fail
from stretto.positions import Source, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH_KEYS = (
    "latency",
    "send_overhead",
    "receive_overhead",
    "gap",
    "byte_gap",
    "send_byte",
    "receive_byte",
    "handling",
    "handling_byte",
)
WORK_KEYS = ("fixed", "per_byte")
PORT_KEYS = ("gap", "byte_gap", "burst_bytes")
MEASURED_TEXTS = ("op", "algorithm", "place")
MEASURED_WHOLE = ("ranks", "bytes", "k", "segments", "turns")
MEASURED_TIMES = ("time", "spread", "predicted")
GAP_RULES = ("direction", "any")
PORT_RULES = ("turn", "fair")
FORMAT = 1
EXAMPLE = Path(__file__).parent / "profiles" / "example.toml"


def own_profile(cluster: str | None = None) -> Path:
    """Where `stretto model measure` writes to and everything else looks first."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "stretto" / (f"cluster-{cluster}.toml" if cluster else "profile.toml")


@dataclass
class Profile:
    """Paths in the order of their levels, each in pieces by message length."""

    about: dict[str, Any]
    paths: list[dict[str, Any]]
    reduce: list[dict[str, Any]]
    copy: list[dict[str, Any]]
    ports: list[dict[str, Any]] = field(default_factory=list)
    gap: str = "direction"
    unit: str = "ns"
    measured: list[dict[str, Any]] = field(default_factory=list)  # by `stretto tune`
    processors: dict[str, Any] | None = None
    port_rule: str = "turn"
    file: str = field(default="", compare=False)

    @property
    def is_example(self) -> bool:
        """Whether it is of some machine or other, not of one that was measured."""
        return bool(self.about.get("example"))

    @property
    def origin(self) -> dict[str, Any]:
        """What a report says of it."""
        return {"name": self.about.get("name", ""), "file": self.file, "example": self.is_example}

    def paths_of_level(self, level: str) -> list[dict[str, Any]]:
        return [p for p in self.paths if p["level"] == level]

    def costs(self) -> str:
        """What stretto-model reads (tools/model/request.hpp)."""
        lines = [f"gap {self.gap}", f"ports {self.port_rule}"]
        lines += [_line(f"path {p['level']}", p, PATH_KEYS) for p in self.paths]
        lines += [_line("reduce", p, WORK_KEYS) for p in self.reduce]
        lines += [_line("copy", p, WORK_KEYS) for p in self.copy]
        lines += [
            " ".join(["port", p["level"], *(repr(float(p.get(key, 0))) for key in PORT_KEYS)]) for p in self.ports
        ]
        if self.processors:
            lines.append(
                f"processors {self.processors['level']} {self.processors['count']} {self.processors.get('turn', 0)!r}"
            )
        return "\n".join(lines) + "\n"

    def toml(self) -> str:
        text = f'format = {FORMAT}\ngap = "{self.gap}"\nports = "{self.port_rule}"\n\n[about]\n' + _table(self.about)
        tables = (
            ("path", self.paths),
            ("reduce", self.reduce),
            ("copy", self.copy),
            ("port", self.ports),
            ("measured", self.measured),
        )
        for name, pieces in tables:
            text += "".join(f"\n[[{name}]]\n{_table(piece)}" for piece in pieces)
        return text + (f"\n[processors]\n{_table(self.processors)}" if self.processors else "")


def _line(name: str, piece: dict[str, Any], keys: tuple[str, ...]) -> str:
    return " ".join([name, str(int(piece.get("from_bytes", 0))), *(repr(float(piece.get(key, 0))) for key in keys)])


def _table(table: dict[str, Any]) -> str:
    def value(each: Any) -> str:
        if isinstance(each, bool):
            return str(each).lower()
        if isinstance(each, (int, float)):
            return repr(each)
        return '"' + str(each).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    return "".join(f"{key} = {value(each)}\n" for key, each in table.items())


def find(path: Path | None, cluster: str | None = None) -> Path:
    """The profile asked for, else this machine's own (or this cluster's), else the example."""
    own = own_profile(cluster)
    return path or (own if own.exists() else EXAMPLE)


def load(path: Path | None, cluster: str | None = None) -> Profile:
    path = find(path, cluster)
    source = read(path)
    try:
        document = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        fail(source.decoding(error))
    return replace(from_document(document, source), file=str(path))


def from_document(document: dict[str, Any], source: Source) -> Profile:
    """Checks what a document says; errors name the file and the place."""
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
        row.setdefault("place", "")  # no levels: all ranks in one domain
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
    """One word: stretto-model reads its lines by words."""
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


def logp(text: str) -> Profile:
    """From `o=1,L=2,g=0.5,G=0,gamma=0.1,lambda=0`, in any unit: the same everywhere."""
    names = {
        "o": ("send_overhead", "receive_overhead"),
        "os": ("send_overhead",),
        "or": ("receive_overhead",),
        "L": ("latency",),
        "g": ("gap",),
        "G": ("byte_gap",),
        "gamma": (),
        "lambda": (),
    }
    path: dict[str, Any] = {"level": "top", "from_bytes": 0}
    work = {"gamma": 0.0, "lambda": 0.0}
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1
        if name.strip() not in names or not 0 <= value < float("inf"):
            fail(f"--logp: '{part}': one of {', '.join(names)} = a number, as in o=1,L=2,g=0.5,gamma=0.1")
        for key in names[name.strip()]:
            path[key] = value
        if name.strip() in work:
            work[name.strip()] = value
    return Profile(
        {"name": text},
        [path],
        [{"from_bytes": 0, "fixed": 0, "per_byte": work["gamma"]}],
        [{"from_bytes": 0, "fixed": 0, "per_byte": work["lambda"]}],
        unit="",
    )
