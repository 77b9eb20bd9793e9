#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Tables and plots of the pages, made from the JSON in docs/data.

    dev/figures.py                    write all of them anew
    dev/figures.py --check            name what is stale; exit status 1 if anything is
    dev/figures.py keep NAME FILE     put what a command has written with --json into docs/data

A page asks for a table by a pair of comments, `<!-- begin NAME:VIEW -->` and
`<!-- end NAME:VIEW -->`. NAME is a file of docs/data, or where there is no such file, stands for
all files whose names begin with NAME and a hyphen. VIEW is the last word of a function of
figure_views.py, figure_model_views.py or figure_summaries.py. This script writes what stands
between the two. A page asks for a plot by a link to images/data/NAME.svg.

`keep` takes no data of changed sources: the commit must say what was measured.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figure_model_views  # noqa: F401  it adds its views
from figure_plots import PLOTS
from figure_summaries import SUMMARIES, TABLES
from figure_texts import Doc, Lines, origin
from figure_views import VIEWS

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"(<!-- begin ([\w-]+):(\w+) -->\n).*?(<!-- end \2:\3 -->)", re.DOTALL)
# Directories of files that a command has written.
WHERE = re.compile(r"(?<= )/\S*/(?=[^/\s]+\.(json|html)\b)")
IMAGE = re.compile(r"images/data/([\w-]+)\.svg")


class Wrong(Exception):
    """A page asks for what there is not."""


def read(name: str) -> Doc:
    path = ROOT / "docs/data" / f"{name}.json"
    if not path.exists():
        raise Wrong(f"there is no docs/data/{name}.json")
    return json.loads(path.read_text())


def made(name: str, kind: str) -> str:
    if (name, kind) in TABLES:
        return "\n".join(TABLES[name, kind](everything())) + "\n"
    docs, schema = alike(name)
    alone = (ROOT / "docs/data" / f"{name}.json").exists()
    views = {key: (lambda docs, view=view: view(docs[0])) for key, view in VIEWS.items()} if alone else SUMMARIES
    if (schema, kind) not in views:
        known = ", ".join(each for of, each in views if of == schema)
        raise Wrong(f"{name}: no view {kind!r} of {schema}: {known or 'there is none'}")
    return "\n".join([*views[schema, kind](docs), *origin(docs)]) + "\n"


def alike(name: str) -> tuple[list[Doc], str]:
    """The data of a name that have the schema of the first, the newest first, and that schema."""
    docs = sorted((read(each) for each in drawn(name)), key=lambda doc: doc["taken"]["date"], reverse=True)
    if not docs:
        raise Wrong(f"there is no docs/data/{name}.json, and none that begins with {name}-")
    schemas = [doc["schema"].partition("/")[0] for doc in docs]
    return [doc for doc, schema in zip(docs, schemas) if schema == schemas[0]], schemas[0]


def everything() -> dict[str, Doc]:
    """All data, the newest first."""
    names = sorted(path.stem for path in (ROOT / "docs/data").glob("*.json"))
    return dict(sorted(((name, read(name)) for name in names), key=lambda of: of[1]["taken"]["date"], reverse=True))


def pages() -> Iterator[Path]:
    yield from (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def written(text: str) -> str:
    return MARK.sub(lambda found: found[1] + made(found[2], found[3]) + found[4], text)


def drawn(name: str) -> list[str]:
    """The names of the data that a plot shows."""
    if (ROOT / "docs/data" / f"{name}.json").exists():
        return [name]
    return sorted(path.stem for path in (ROOT / "docs/data").glob(f"{name}-*.json"))


def stamp(name: str) -> str:
    """Of the data that a plot shows; its last line."""
    data = b"".join((ROOT / "docs/data" / f"{each}.json").read_bytes() for each in drawn(name))
    return f"<!-- data {hashlib.sha256(data).hexdigest()[:16]} -->"


def image(name: str) -> Path:
    return ROOT / "docs/images/data" / f"{name}.svg"


def draw(name: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    docs, schema = alike(name)
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        height = 5 + 0.35 * max(0, len(docs) - 2)  # below the plot: two lines for each file
        figure, axis = plt.subplots(figsize=(8, height))
        PLOTS[schema](docs, axis)
        axis.grid(True, axis="y", color="#e4e4e4", linewidth=0.6)
        axis.legend(framealpha=1, edgecolor="none", fontsize=8)
        says = [f"{doc['command']}\n{doc['taken']['date']}, commit {doc['taken']['commit']}" for doc in docs]
        figure.text(0.5, 0.01, "\n".join(says), ha="center", fontsize=7, color="#555555")
        figure.tight_layout(rect=(0, 0.3 * len(docs) / height, 1, 1))
        image(name).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(image(name), metadata={"Date": None})
        plt.close(figure)
    with image(name).open("a") as file:
        file.write(stamp(name) + "\n")


def stale() -> Lines:
    """What the pages show that the data do not say, or the other way round."""
    found, used = [], set()
    for page in pages():
        text, where = page.read_text(), page.relative_to(ROOT)
        try:
            if written(text) != text:
                found.append(f"{where}: a table is stale: dev/figures.py")
        except Wrong as wrong:
            found.append(f"{where}: {wrong}")
        plots = set(IMAGE.findall(text))
        named = plots | {mark[1] for mark in MARK.findall(text)}
        used |= {data for name in named for data in drawn(name)}
        for name in sorted(plots):
            file = image(name)
            if not file.exists() or not file.read_text().endswith(stamp(name) + "\n"):
                found.append(f"{where}: images/data/{name}.svg is stale: dev/figures.py")
    unused = sorted(path.stem for path in (ROOT / "docs/data").glob("*.json") if path.stem not in used)
    return found + [f"docs/data/{name}.json: no page shows it" for name in unused]


def write() -> None:
    names = set()
    for page in pages():
        text = page.read_text()
        page.write_text(written(text)) if written(text) != text else None
        names |= set(IMAGE.findall(text))
    for name in sorted(names):
        if not image(name).exists() or not image(name).read_text().endswith(stamp(name) + "\n"):
            draw(name)


def rounded(value: Any) -> Any:
    """Six digits: what is measured has no more."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def git(*command: str) -> str:
    line = ["git", "-C", ROOT, *command]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """The commit that was measured. Pages and data may be changed, nothing else."""
    if changed := git("status", "--porcelain", "--", ".", ":!docs", ":!*.md"):
        raise Wrong(f"commit first, then build and measure anew: {', '.join(changed.split()[1::2])}")
    return git("describe", "--always")


def keep(name: str, file: Path, command: str | None) -> None:
    doc = json.loads(file.read_text())
    date = datetime.date.fromtimestamp(file.stat().st_mtime).isoformat()
    doc["command"] = WHERE.sub("", command or doc.get("command") or "")
    if not doc["command"]:
        raise Wrong(f"{file} does not say by which command it was made: --command")
    doc["taken"] = {"commit": commit(), "date": date}
    for result in doc.get("results", []):
        result.pop("between", None)  # of a node's model: a matrix for pictures
    path = ROOT / "docs/data" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rounded(doc), separators=(",", ":")).replace("},{", "},\n{") + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    commands = parser.add_subparsers(dest="what")
    keeps = commands.add_parser("keep")
    keeps.add_argument("name")
    keeps.add_argument("file", type=Path)
    keeps.add_argument("--command", help="what was typed, if the JSON does not say it")
    asked = parser.parse_args()
    try:
        if asked.what == "keep":
            keep(asked.name, asked.file, asked.command)
        elif not asked.check:
            write()
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 2
    found = stale() if asked.check else []
    print("\n".join(found)) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
