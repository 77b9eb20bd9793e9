# SPDX-License-Identifier: BSD-3-Clause
"""Machines that the model of a node plays (docs/model/node.md): files of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.positions import Source

SCHEMA = "stretto.machine/1"
FOLDER = Path(__file__).parent / "machines"
SHAPE = ("sockets", "numa_per_socket", "l3_per_numa", "cores_per_l3")
TIMES = {
    "line_ns": ("same_l3", "same_numa", "same_socket", "other_socket", "memory", "memory_far"),
    "queue_ns": ("further_reader_l3", "further_reader", "further_owner"),
    "gap_ns": ("gap_into_l3", "gap_out_of_l3", "gap_between_sockets"),
    "core_ns": ("hit", "own_access", "look_again", "pause"),
}
WHOLE = {"shape": SHAPE, "core": ("misses_under_way", "misses_of_copy"), "caches": ("l2_kib", "l3_mib")}
MAPS = ("core", "l3", "numa", "socket")


@dataclass(frozen=True)
class NodeMachine:
    name: str
    about: str
    vendor: str
    values: dict[str, float]  # all numbers of the file
    document: dict[str, Any]

    def __getitem__(self, key: str) -> float:
        return self.values[key]

    @property
    def l3s(self) -> int:
        return int(self["sockets"] * self["numa_per_socket"] * self["l3_per_numa"])

    @property
    def cores(self) -> int:
        return int(self.l3s * self["cores_per_l3"])

    def words(self) -> str:
        """What stretto-node-model is told."""
        return " ".join(f"{key}={value:g}" for key, value in self.values.items()) + f" is_amd={self.vendor == 'amd':d}"

    def l3_name(self, l3: int) -> str:
        """As 0.3: the fourth L3 domain of the first socket."""
        per_socket = int(self["numa_per_socket"] * self["l3_per_numa"])
        return f"{l3 // per_socket}.{l3 % per_socket}"

    def cores_of(self, ranks: int, by: str) -> list[int]:
        """The core of each rank: one after the other, or dealt to domains in turn."""
        if ranks > self.cores:
            fail(f"--ranks {ranks}: {self.name} has {self.cores} cores")
        within = {
            "core": self.cores,
            "l3": int(self["cores_per_l3"]),
            "numa": int(self["cores_per_l3"] * self["l3_per_numa"]),
            "socket": int(self["cores_per_l3"] * self["l3_per_numa"] * self["numa_per_socket"]),
        }[by]
        order = sorted(range(self.cores), key=lambda core: (core % within, core // within))
        return order[:ranks]


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(text: str) -> NodeMachine:
    """The machine of a file, or a shipped one by its name."""
    shipped = FOLDER / f"{text}.json"
    path = shipped if shipped.exists() and not Path(text).exists() else Path(text)
    try:
        source = Source(str(path), path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text"
        fail(f"--machine {text}: {why}: a file is expected, or one of {', '.join(names())}")
    try:
        return from_document(json.loads(source.text), str(path))
    except json.JSONDecodeError as error:
        fail(source.says(error))


def from_document(document: Any, file: str) -> NodeMachine:
    """Checks every part of a document. Errors name the file and the key."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        fail(f'{file}: "schema": "{SCHEMA}" expected')
    values: dict[str, float] = {}
    for part, keys in {**WHOLE, **TIMES}.items():
        table = document.get(part)
        if not isinstance(table, dict) or set(table) != set(keys):
            fail(f"{file}: {part} has {', '.join(keys)}")
        for key, value in table.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
                fail(f"{file}: {part}.{key}: a number from 0 on expected, not {value!r}")
            if part in WHOLE and (value != int(value) or value < 1):
                fail(f"{file}: {part}.{key}: a whole number from 1 on expected, not {value!r}")
            values[key] = value
    name, about, vendor = (document.get(key) for key in ("name", "about", "vendor"))
    if not all(isinstance(each, str) for each in (name, about, vendor)):
        fail(f"{file}: name, about and vendor are texts")
    machine = NodeMachine(name, about, vendor, values, document)
    if machine.cores > 256:
        fail(f"{file}: {machine.cores} cores: at most 256")
    return machine
