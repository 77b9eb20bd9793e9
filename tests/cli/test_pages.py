# SPDX-License-Identifier: BSD-3-Clause
"""What the pages promise beyond the rules of the house (house.py): one version, a short README, a complete index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import stretto

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs/pages.md"
FRONT = ("README.md", "docs/index.md")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_there_is_one_version() -> None:
    built = re.search(r"project\(stretto VERSION ([\d.]+)", text("CMakeLists.txt"))
    newest = re.search(r"^## ([\d.]+) \(\d{4}-\d\d-\d\d\)$", text("CHANGELOG.md"), re.MULTILINE)
    assert built and newest and stretto.__version__ == built[1] == newest[1]


def test_the_readme_is_short() -> None:
    assert len(text("README.md").split()) <= 450


def test_entries_of_the_changelog_are_short() -> None:
    for version in text("CHANGELOG.md").split("\n## ")[1:]:
        assert set(re.findall(r"^### (.*)$", version, re.MULTILINE)) <= {"Added", "Changed", "Fixed"}
        for entry in re.split(r"\n- ", version)[1:]:
            words = entry.split("\n\n")[0].split()
            assert len(words) <= 30, " ".join(words)


def test_the_index_lists_every_page() -> None:
    listed = {(INDEX.parent / target).resolve() for target, _ in LINK.findall(INDEX.read_text()) if target}
    pages = {*ROOT.glob("docs/*.md"), *ROOT.glob("docs/dev/*.md"), *ROOT.glob("*.md")} - {INDEX}
    assert pages - listed == set()


def test_each_row_of_results_has_its_commands(command_tree: Any) -> None:
    """The table of the README, and the commands that measure it again. All their options are known."""
    table = text("README.md").partition("## Results")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    commands = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| (`stretto [^|]*) \|$", text("docs/figures.md"), re.MULTILINE))
    assert rows and set(rows) <= set(commands)
    for line in re.findall(r"`stretto ([^`]*)`", " ".join(commands.values())):
        command, words = command_tree, line.split()
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_parser(command.context_class(command)).parse_args(words)


def test_the_front_page_has_the_commands_of_the_readme() -> None:
    commands = [re.search(r"## Two commands\n.*?```\n(.*?)```", text(name), re.DOTALL) for name in FRONT]
    assert commands[0] and commands[1] and commands[0][1] == commands[1][1]


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_meet_headings() -> None:
    lost = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
        for target, anchor in LINK.findall(page.read_text())
        if anchor and "://" not in target and anchor not in anchors(page.parent / target if target else page)
    ]
    assert lost == []
