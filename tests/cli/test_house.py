# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house (house.py), with the exceptions of today: house_exceptions.json counts them by check and file.

The list only shrinks. STRETTO_TEST_UPDATE=1 writes it anew where there are fewer faults than it allows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import house
import pytest

LIST = Path(__file__).with_name("house_exceptions.json")
Counts = dict[str, dict[str, int]]


def allowed() -> Counts:
    return json.loads(LIST.read_text())


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, list[str]]]:
    return house.faults()


@pytest.mark.parametrize("check", house.CHECKS)
def test_rule(check: str, found: dict[str, dict[str, list[str]]]) -> None:
    exceptions = allowed().get(check, {})
    for file, texts in found.get(check, {}).items():
        most = exceptions.get(file, 0)
        assert len(texts) <= most, f"{file}: {len(texts)} places, {most} of which are known\n" + "\n".join(texts[:20])


def test_the_list_of_exceptions_shrinks(found: dict[str, dict[str, list[str]]]) -> None:
    kept: Counts = {
        check: {file: min(most, len(found.get(check, {}).get(file, []))) for file, most in files.items()}
        for check, files in allowed().items()
    }
    kept = {check: {file: most for file, most in files.items() if most} for check, files in kept.items()}
    if os.environ.get("STRETTO_TEST_UPDATE"):
        LIST.write_text(json.dumps({c: f for c, f in kept.items() if f}, indent=1, sort_keys=True) + "\n")
    gone = {check: sorted(set(files) - set(kept[check])) for check, files in allowed().items()}
    assert not any(gone.values()), (
        f"files without faults are still listed (STRETTO_TEST_UPDATE=1 takes them out): {gone}"
    )


def test_the_checks_see_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One fault of each kind in a made-up tree."""
    texts = {
        "src/base/a.cpp": '#include "mpi/edge.hpp"\n#include <unistd.h>\n// ' + "x" * 100 + "\n" + "\n" * 450,
        "python/stretto/one.py": "from stretto import two\n",
        "python/stretto/two.py": "import stretto.one\n",
        "python/stretto/core/low.py": "def high():\n    from stretto.commands import run\n",
        "page.md": "word " * 901 + "\n\n[a link](nowhere.md)\n",
        "cmake/mpi.cmake": "set(STRETTO_ABIS openmpi)\n",
        "docs/adr/README.md": "",
        "docs/adr/0001-x.md": "# 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)

    def play(*patterns: str) -> list[str]:
        return [
            name
            for name in texts
            if any(
                Path(name).match(pattern.replace("src/*", "src/*/*").replace("python/*", f"{Path(name).parent}/*"))
                for pattern in patterns
            )
        ]

    monkeypatch.setattr(house, "files", play)
    assert house.faults().keys() == house.CHECKS.keys()
