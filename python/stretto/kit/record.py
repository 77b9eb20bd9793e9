# SPDX-License-Identifier: BSD-3-Clause
"""The file of a measurement. It is written as results come, so that a measurement can be stopped
and go on later."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.reports import SCHEMAS, read_json, with_schema

SCHEMA = f"stretto.kit/{SCHEMAS['kit']}"
BETWEEN_WRITES_S = 5.0


def read(path: Path) -> dict[str, Any]:
    """A file of the kit; fails for another one."""
    found = read_json(path)
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        fail(f"{path}: not a file of `stretto kit measure` (schema {SCHEMA})")
    return found


class Record:
    """The results so far, and their file."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path = path
        self.data = data
        self._written = 0.0

    def add(self, row: dict[str, Any]) -> None:
        self.data["results"].append(row)
        if time.monotonic() - self._written > BETWEEN_WRITES_S:
            self.write()

    def write(self) -> None:
        """Replaces the file at once: whoever reads it sees all of it."""
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            fresh.write_text(_text(with_schema("kit", {k: v for k, v in self.data.items() if k != "schema"})))
            os.replace(fresh, self.path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            fail(f"cannot write {self.path}: {error.strerror}")
        self._written = time.monotonic()


def _text(data: dict[str, Any]) -> str:
    """JSON with a line for each row of a list: thousands of rows stay readable, and small."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
