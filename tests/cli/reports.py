# SPDX-License-Identifier: BSD-3-Clause
"""What commands report as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


def report(stretto: Tool, *arguments: str | Path) -> dict[str, Any]:
    done = stretto(*arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def predict(stretto: Tool, *arguments: str) -> dict[str, Any]:
    return report(stretto, "model", "predict", *arguments)
