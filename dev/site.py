#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""The site: MkDocs over docs/ (mkdocs.yml).

    dev/site.py build [DIR]    write it to DIR (build/site); warnings are errors
    dev/site.py serve          show it on http://localhost:8000, and follow changes

MkDocs also loads this file as its hooks. They

- add pages from the top of the tree, and pages that are made from the sources: the command line,
  and the messages of the tool;
- turn links to sources into addresses of the repository (STRETTO_REPOSITORY), or into text;
- complete the navigation.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for folder in ("python", "dev"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))

import messages  # noqa: E402
import site_commands  # noqa: E402

# Pages of the site whose sources are not in docs/.
FROM_THE_TOP = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
MADE = {"reference/commands.md": site_commands.page, "reference/messages.md": messages.page}
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")

# ---- links ---------------------------------------------------------------------------------------


def place_of(source: str) -> str | None:
    """Where the site has a file of the tree. None: it has not."""
    if source in FROM_THE_TOP:
        return FROM_THE_TOP[source]
    return source.removeprefix("docs/") if source.startswith("docs/") else None


def source_of(place: str) -> str:
    """The file of the tree that a page of the site comes from."""
    return next((source for source, of in FROM_THE_TOP.items() if of == place), f"docs/{place}")


def with_links_of_the_site(text: str, place: str, repository: str) -> str:
    """A page whose links lead to pages of the site, else to the repository. Without one they are text."""
    home = posixpath.dirname(source_of(place))

    def replaced(link: re.Match[str]) -> str:
        target, anchor = link["target"], link["anchor"] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        file = posixpath.normpath(posixpath.join(home, target))
        if (there := place_of(file)) is not None and (ROOT / file).is_file():
            way = posixpath.relpath(there, posixpath.dirname(place) or ".")
            return f"{link['image']}[{link['text']}]({way}{anchor})"
        if repository:
            return f"[{link['text']}]({repository.rstrip('/')}/tree/HEAD/{file}{anchor})"
        return link["text"] if file in link["text"] else f"{link['text']} (`{file}`)"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


# ---- navigation ----------------------------------------------------------------------------------


def pages_in(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    return set().union(*map(pages_in, nav.values() if isinstance(nav, dict) else nav))


def expanded(nav: list[Any], listed: set[str]) -> list[Any]:
    """A navigation with the pages of each folder in the folder's place, but those listed elsewhere."""
    whole: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, below),) = entry.items()
            whole.append({title: expanded(below, listed) if isinstance(below, list) else below})
        elif entry.endswith("/"):
            names = sorted(path.name for path in (ROOT / "docs" / entry).glob("*.md"))
            names.sort(key=lambda name: name != "README.md")
            whole += [entry + name for name in names if entry + name not in listed]
        else:
            whole.append(entry)
    return whole


def complete(nav: list[Any]) -> list[Any]:
    whole = expanded(nav, pages_in(nav))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    rest = sorted(there - pages_in(whole))
    return [*whole, *([{"More": rest}] if rest else [])]


# ---- hooks of MkDocs -----------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    from pymdownx.slugs import slugify

    config.nav = complete(config.nav)
    # Anchors are as GitHub makes them, whose viewers follow the same links.
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for source, place in FROM_THE_TOP.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    for place, made in MADE.items():
        files.append(File.generated(config, place, content=made()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    if page.file.src_uri in MADE:
        return markdown
    return with_links_of_the_site(markdown, page.file.src_uri, config.repo_url or "")


# ---- the command ---------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "serve"))
    parser.add_argument("directory", nargs="?", type=Path, default=ROOT / "build/site")
    given = parser.parse_args()
    options = ["--strict", "--site-dir", str(given.directory.absolute())] if given.what == "build" else []
    line = [sys.executable, "-m", "mkdocs", given.what, "--config-file", str(ROOT / "mkdocs.yml"), *options]
    # Material for MkDocs prints advice on other projects unless it is told not to.
    return subprocess.run(line, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
