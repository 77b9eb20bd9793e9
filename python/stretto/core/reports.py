# SPDX-License-Identifier: BSD-3-Clause
"""JSON reports of commands: their schemas, and writing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stretto.core.console import fail

# Names and versions of all JSON reports (docs/json.md). A version changes when a reader of the old
# one would misread the new one.
SCHEMAS = {
    "bench": 1,
    "cluster.bench": 1,
    "cluster.run": 1,
    "cluster.simulate": 1,
    "cluster.status": 1,
    "demo": 3,
    "doctor": 1,
    "explain": 1,
    "info": 1,
    "kind": 1,
    "kit": 1,
    "kit.compare": 1,
    "kv.bench": 1,
    "model.bench": 1,
    "model.best-k": 1,
    "model.chains": 1,
    "model.compare": 1,
    "model.job": 1,
    "model.measure": 1,
    "model.node": 1,
    "model.node.calibrate": 1,
    "model.predict": 1,
    "model.scale": 1,
    "neighbors": 1,
    "nonblocking": 1,
    "overlap.bench": 1,
    "overlap.pages": 1,
    "overlap.programs": 1,
    "overlap.report": 1,
    "papers": 1,
    "stats": 1,
    "top": 1,
    "top.stacks": 1,
    "topology": 1,
    "tune": 1,
    "tune.job": 1,
    "tune.judge": 1,
    "verify": 1,
}


def with_schema(schema: str, data: dict[str, Any]) -> dict[str, Any]:
    """A report that begins with its schema."""
    return {"schema": f"stretto.{schema}/{SCHEMAS[schema]}", **data}


def write_json(path: Path | None, schema: str, data: dict[str, Any]) -> None:
    """Writes a report to a file, or to stdout for `-`. None: writes nothing."""
    if path is None:
        return
    text = json.dumps(with_schema(schema, data), indent=2, default=str) + "\n"
    if str(path) == "-":
        print(text, end="")
        return
    try:
        path.write_text(text)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    except ValueError:
        fail(f"{path}: not a JSON file")
