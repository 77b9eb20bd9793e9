# SPDX-License-Identifier: BSD-3-Clause
"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, WARN, BAD = "good", "warn", "bad"


@dataclass
class Verdict:
    """One finding."""

    level: str
    subject: str
    finding: str
    advice: str = ""
