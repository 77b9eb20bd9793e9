# SPDX-License-Identifier: BSD-3-Clause
"""What the library finds on this machine, as the probe says."""

from __future__ import annotations

import functools
import json
from typing import Any

from stretto.native import build


@functools.cache
def ask() -> dict[str, Any]:
    """Options, processors and checks as the library sees them in this process."""
    program = build.ensure_built("release", ["stretto-probe"]) / "stretto-probe"
    return json.loads(build.run_tool([str(program)]))
