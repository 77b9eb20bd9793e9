# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house (house.py): no file breaks one."""

from __future__ import annotations

from pathlib import Path

import house
import pytest

pytestmark = pytest.mark.xdist_group("house")  # all checks are made at once


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, list[str]]]:
    return house.faults()


@pytest.mark.parametrize("check", house.CHECKS)
def test_rule(check: str, found: dict[str, dict[str, list[str]]]) -> None:
    faults = found.get(check, {})
    assert not faults, "\n".join(f"{file}: {text}" for file, texts in faults.items() for text in texts[:20])


def test_the_checks_see_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check finds its faults in a made-up tree. Only table rows may be long."""
    texts = {
        "src/base/a.cpp": '#include "mpi/edge.hpp"\n#include <unistd.h>\n// ' + "x" * 100 + "\n" + "\n" * 450,
        "src/base/table.cpp": "// clang-format off\n" + "1, " * 50 + "\n// clang-format on\n// " + "x" * 100,
        "src/base/dead.hpp": "int dead() { return 0; }  // as above\n",
        "big.json": "x" * 400_000,
        "python/stretto/one.py": "from stretto import two\n",
        "python/stretto/two.py": "import stretto.one\n",
        "python/stretto/core/low.py": "def high():\n    from stretto.commands import run\n",
        "page.md": "word " * 901 + "\n\n[a link](nowhere.md)\n",
        "cmake/mpi.cmake": "set(STRETTO_ABIS openmpi)\n",
        "docs/adr/README.md": "",
        "docs/adr/0001-x.md": "# 1\n",
        "tests/cli/test_twin.py": "",
        "tests/mpi/test_twin.py": "",
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
    faults = house.faults()
    assert faults.keys() == house.CHECKS.keys()
    assert faults["functions_have_callers"] == {"src/base/dead.hpp": ["nothing calls dead"]}
    assert faults["lines_are_short"]["src/base/table.cpp"] == ["// " + "x" * 100]
