# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house (house.py): no file breaks one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import house
import house_tree
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
        "src/base/one.hpp": '#include "base/two.hpp"\n',
        "src/base/two.cpp": '#include "base/one.hpp"\n',
        "src/base/two.hpp": "",
        "src/mpi/host/low.cpp": '#include "mpi/calls/high.hpp"\n',
        "src/base/table.cpp": "// clang-format off\n" + "1, " * 50 + "\n// clang-format on\n// " + "x" * 100,
        "src/base/dead.hpp": "int dead() { return 0; }  // as above\n  i++;\n",
        "big.json": "x" * 400_000,
        "python/stretto/one.py": "from stretto import two\n",
        "python/stretto/two.py": "import stretto.one\n",
        "python/stretto/core/low.py": "def high():\n    from stretto.commands import run\n" + "    run()\n" * 60,
        "page.md": "word " * 901 + "\n\n[a link](nowhere.md)\n",
        "tables.md": "| " + "word " * 901 + "|\n",
        "figures.md": "| a | MPI 5.0, `1.5` |\n\n| a | 0.54 |\n\n<!-- begin a:b -->\n| 0.5 |\n<!-- end a:b -->\n",
        "docs/data/new.json": '{"taken": {"commit": "abc-dirty"}}',
        "cmake/mpi.cmake": "set(STRETTO_ABIS openmpi)\n",
        "docs/adr/README.md": "",
        "docs/adr/0001-x.md": "# 1\n",
        "tests/cli/test_twin.py": "",
        "tests/mpi/test_twin.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(house_tree, "ROOT", tmp_path)

    def play(*patterns: str) -> list[str]:
        return [
            name
            for name in texts
            if any(
                Path(name).match(re.sub(r"(src|python)/\*", f"{Path(name).parent}/*", pattern))
                for pattern in patterns
                if name.startswith(pattern.split("*")[0])
            )
        ]

    monkeypatch.setattr(house_tree, "listed", play)
    faults = house.faults()
    assert faults.keys() == house.CHECKS.keys()
    assert faults["functions_have_callers"] == {"src/base/dead.hpp": ["nothing calls dead"]}
    assert faults["lines_are_short"]["src/base/table.cpp"] == ["// " + "x" * 100]
    assert faults["figures_are_written_by_the_script"] == {"figures.md": ["a typed table: | a | 0.54 |"]}
    assert set(faults["pages_are_short"]) == {"page.md", "tables.md"}
    assert set(faults["figures_are_of_clean_commits"]) == {"docs/data/new.json", "tests/cli/house_pages.py"}


def test_the_counts_see_long_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dev/house.py, of C++ as clang-format writes it."""
    spec = importlib.util.spec_from_file_location("counts", house_tree.ROOT / "dev/house.py")
    assert spec and spec.loader
    counts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(counts)
    text = """namespace a {
int f(int b,
      int c) {
  if (b &&
      g(c)) {
  }
}
struct S {
  S()
      : a_(1) {
  }
};
}
"""
    (tmp_path / "a.cpp").write_text(text)
    monkeypatch.setattr(house_tree, "ROOT", tmp_path)
    assert [length for _, length in counts.cpp_functions("a.cpp")] == [6, 3]
    assert "functions above 60 lines" in counts.COUNTS
