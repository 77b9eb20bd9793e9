# SPDX-License-Identifier: BSD-3-Clause
"""What the library finds on this machine, as the probe says."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stretto.core.console import fail
from stretto.mpi import environments
from stretto.native import build


@functools.cache
def ask() -> dict[str, Any]:
    """Options, processors and checks as the library sees them in this process."""
    return json.loads(build.run_tool([_program()]))


@functools.cache
def networks() -> dict[str, Any]:
    """The libfabric that the library would load here, and its providers."""
    return json.loads(build.run_tool([_program(), "networks"]))


def checked_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Options from slots=16 or STRETTO_SLOTS=16. Fails if the library would refuse one. Other options
    of this process are not judged."""
    settings = environments.parse_settings(pairs)
    messages = _messages(settings) if settings else []
    texts = [message["text"].replace(" (environment)", "") for message in messages]
    if refused := [text for text in texts if any(re.match(rf"{name}\b", text) for name in settings)]:
        fail("--set: " + "; ".join(refused))
    return settings


def _messages(settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the library says of these options alone. None where the probe is not there: then only the
    ranks say it."""
    try:
        program = _program()
    except build.BuildError:
        return []
    others = {name: "" for name in os.environ if name.startswith("STRETTO_")}
    return json.loads(build.run_tool([program, "options"], env={**others, **settings}))["option_messages"]


def _program() -> str:
    return str(build.ensure_built("release", ["stretto-probe"]) / "stretto-probe")
