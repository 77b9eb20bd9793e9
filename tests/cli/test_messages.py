# SPDX-License-Identifier: BSD-3-Clause
"""docs/troubleshooting.md explains every error and warning of the library, and none that there is not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "dev"))

import messages  # noqa: E402


def explained() -> set[str]:
    """The messages of the page's tables, but those of the symptoms."""
    text = (ROOT / "docs/troubleshooting.md").read_text().split("## Ranks contradict each other")[1]
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def test_every_message_of_the_library_is_explained() -> None:
    in_code = set(messages.library_messages())
    assert len(in_code) > 60, "the sources are read"
    assert in_code - explained() == set(), "docs/troubleshooting.md needs a row for each of these"
    assert explained() - in_code == set(), "no message reads so any more"


def test_calls_that_speak_are_found() -> None:
    """Wherever the library calls log_line with an error or a warning, a text is found."""
    for path in (ROOT / "src").rglob("*.cpp"):
        text = path.read_text()
        calls = re.findall(r"log_line\(\s*(?:[\w. ]+\?\s*)?LogLevel::(?:error|warn)\b", text)
        found = [call for call in messages.CALLS.finditer(text) if call.group(0).startswith("log_line")]
        assert len(found) == len(calls), path


def test_the_tools_messages_are_found() -> None:
    said = {text for _, text in messages.tool_messages()}
    assert "there is no cluster …; stretto cluster up makes one" in said
    assert "none on this machine" in said, "a finding of doctor"
    assert len(said) > 150
