# SPDX-License-Identifier: BSD-3-Clause
"""Makes the wheel a binary one if dev/wheel.py has prepared libraries and programs for it."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrebuiltHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if folder := os.environ.get("STRETTO_WHEEL_PREBUILT"):
            build_data["force_include"][folder] = "stretto/prebuilt"
            build_data["pure_python"] = False
            build_data["tag"] = os.environ["STRETTO_WHEEL_TAG"]
