# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: the cost of a machine's messages and work. docs/model.md explains the parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stretto.core.console import fail

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
    "requests_queue",
)
WORK_KEYS = ("fixed", "per_byte")
PORT_KEYS = ("gap", "byte_gap", "burst_bytes")
FORMAT = 1


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
    measured: list[dict[str, Any]] = field(default_factory=list)  # measured by `stretto tune`
    processors: dict[str, Any] | None = None
    port_rule: str = "turn"
    file: str = field(default="", compare=False)

    @property
    def is_example(self) -> bool:
        """Whether it is an example, and not a machine that was measured."""
        return bool(self.about.get("example"))

    @property
    def origin(self) -> dict[str, Any]:
        """The profile in a report."""
        return {"name": self.about.get("name", ""), "file": self.file, "example": self.is_example}

    def paths_of_level(self, level: str) -> list[dict[str, Any]]:
        return [p for p in self.paths if p["level"] == level]

    def costs(self) -> str:
        """The text that stretto-model reads (tools/model/request.hpp)."""
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
        """The text of the profile's file."""
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


def logp(text: str) -> Profile:
    """A profile with the same parameters everywhere, from `o=1,L=2,g=0.5,G=0,gamma=0.1,lambda=0`,
    in any unit."""
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
