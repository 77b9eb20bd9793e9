# SPDX-License-Identifier: BSD-3-Clause
"""What commands report as JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOGP = "o=1,L=2,g=0.5,gamma=0.125,lambda=0"  # 8 bytes: a = 5, b = 2
Tool = Callable[..., "subprocess.CompletedProcess[str]"]


def report(stretto: Tool, *arguments: str | Path) -> dict[str, Any]:
    done = stretto(*arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def predict(stretto: Tool, *arguments: str) -> dict[str, Any]:
    return report(stretto, "model", "predict", *arguments)
