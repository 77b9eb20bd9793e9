# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house for pages and their figures (house.py runs them)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from house_tree import Faults, check, files, lines, path_of

PAGES = ("*.md",)
# Pages in which one looks something up, and records of what was tried: their tables may be long.
REFERENCE = (
    "docs/options.md",
    "docs/glossary.md",
    "docs/json.md",
    "docs/troubleshooting.md",
    "docs/statistics.md",
    "docs/results/tables/",
    "docs/dev/experiments/",
    "docs/adr/",
    "CHANGELOG.md",
)
MOST_WORDS = 900
MOST_IN_PARAGRAPH = 60
MOST_IN_SENTENCE = 25


def paragraphs(name: str) -> Iterator[str]:
    """Prose alone: no code, tables or headings. A list's item is a paragraph."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", path_of(name).read_text(), flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        prose = " ".join(line for line in block.splitlines() if not re.match(r"\s*(\||#|!\[)", line)).strip()
        if prose:
            yield re.sub(r"\]\([^)]*\)", "]", prose)


def words_of_tables(name: str) -> int:
    text = re.sub(r"```.*?```", "", path_of(name).read_text(), flags=re.DOTALL)
    return sum(len(re.findall(r"[^|\s]+", line)) for line in re.findall(r"^\|(?!---).*$", text, re.MULTILINE))


@check
def pages_are_short() -> Faults:
    """Tables count, but in reference pages."""
    for name in files(*PAGES):
        words = sum(len(paragraph.split()) for paragraph in paragraphs(name))
        tables = 0 if name.startswith(REFERENCE) else words_of_tables(name)
        if words + tables > MOST_WORDS and name != "CHANGELOG.md":
            yield name, f"{words} words of prose, {tables} of tables"


# What a machine wrote, or what no machine has to write: quoted code, targets of links, versions.
NOT_TYPED = re.compile(r"<!-- begin ([\w-]+:\w+) -->.*?<!-- end \1 -->|```.*?```", re.DOTALL)
NO_FIGURE = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\b(?:MPI|MPICH|OpenPMIx|glibc|Linux|Python|ABI|since|from|before) v?\d[\d.]*"
    r"(?:(?:,|;| and| or|,? to) \d+\.\d[\d.]*)*"
)
FIGURE = re.compile(r"(?<![\w.])\d+\.\d+(?![.\d]*\.)|\d\s?(?:ns|us|ms|s|GB/s|MB/s|%)(?!\w)")


def typed_tables(name: str) -> Iterator[str]:
    """The rows with a measured figure, one for each table of a page that dev/figures.py has not written."""
    for rows in re.findall(r"(?:^\|.*\n?)+", NOT_TYPED.sub("", path_of(name).read_text()), re.MULTILINE):
        typed = [row for row in rows.splitlines() if FIGURE.search(NO_FIGURE.sub("", row))]
        yield from typed[:1]


@check
def figures_are_written_by_the_script() -> Faults:
    """From the JSON in docs/data: a typed table is of no commit that anybody knows."""
    for name in files(*PAGES):
        if not name.startswith(REFERENCE):
            yield from ((name, f"a typed table: {row}") for row in typed_tables(name))


# Data that are older than the rule that a commit names what was measured. They leave this list when
# they are measured again; none is added.
BEFORE_THE_RULE = {
    "kind-intel",
    "neighbors-hosts",
    "node-epyc-2x64",
    "node-xeon-wide-l3",
    "nonblocking-hosts-mpich",
    "overlap-pages",
    "papers",
}


@check
def figures_are_of_clean_commits() -> Faults:
    """And BEFORE_THE_RULE names only what needs it."""
    dirty = set()
    for name in files("docs/data/*.json"):
        commit = json.loads(path_of(name).read_text())["taken"]["commit"]
        if commit.endswith("-dirty"):
            dirty.add(Path(name).stem)
            if Path(name).stem not in BEFORE_THE_RULE:
                yield name, f"commit {commit}: measure it again"
    for name in sorted(BEFORE_THE_RULE - dirty):
        yield "tests/cli/house_pages.py", f"BEFORE_THE_RULE names {name}, which needs it no more"


@check
def paragraphs_are_short() -> Faults:
    for name in files(*PAGES):
        yield from ((name, p) for p in paragraphs(name) if len(p.split()) > MOST_IN_PARAGRAPH)


@check
def sentences_are_short() -> Faults:
    for name in files(*PAGES):
        for paragraph in paragraphs(name):
            yield from ((name, s) for s in re.split(r"(?<=[.:;!?])\s", paragraph) if len(s.split()) > MOST_IN_SENTENCE)


@check
def markdown_is_wrapped() -> Faults:
    """At 100 columns, but for tables, links and code."""
    for name in files(*PAGES):
        code = False
        for line in lines(name):
            code ^= line.startswith("```")
            if len(line) > 100 and not code and not line.startswith("|") and " " in line.strip():
                yield name, line


@check
def links_lead_somewhere() -> Faults:
    for name in files(*PAGES):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path_of(name).read_text()):
            if "://" not in target and not path_of(name).parent.joinpath(target).exists():
                yield name, target


@check
def decisions_are_listed() -> Faults:
    """Each with its status, in the index of docs/adr."""
    index = path_of("docs/adr/README.md").read_text()
    for name in files("docs/adr/0*.md"):
        row = next((line for line in index.splitlines() if f"({Path(name).name})" in line), "")
        if not re.search(r"\| (accepted|superseded by .*|proposed) \|", row):
            yield name, "is not in docs/adr/README.md with its status"
