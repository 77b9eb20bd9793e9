# SPDX-License-Identifier: BSD-3-Clause
"""The site (dev/site.py): it builds without a warning, and its links lead to pages or to the repository."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "dev"))

pytest.importorskip("mkdocs", reason="the site needs the packages of `test` in pyproject.toml")
pytest.importorskip("material")
# The standard library has a module `site`, too.
SPEC = importlib.util.spec_from_file_location("stretto_site", ROOT / "dev/site.py")
site = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(site)
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made where nothing can be fetched."""
    directory = tmp_path_factory.mktemp("site")
    away = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
    line = [ROOT / "dev/site.py", "build", directory]
    env = {**os.environ, **away, "STRETTO_REPOSITORY": "https://example.org/stretto"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_it_has_all_pages(built: Path) -> None:
    for page in ROOT.glob("docs/**/*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        html = built / (place.parent if place.name in ("index", "README") else place) / "index.html"
        assert html.exists(), page
    for place in (*site.FROM_THE_TOP.values(), *site.MADE):
        assert (built / place).with_suffix("").joinpath("index.html").exists(), place


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for name in ("index.html", "tutorial/index.html"):
        loaded = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:)?//', (built / name).read_text()
        )
        assert loaded == []


def test_sources_are_in_the_repository(built: Path) -> None:
    html = (built / "examples/index.html").read_text()
    assert 'href="https://example.org/stretto/tree/HEAD/examples/cg.c"' in html


def test_the_command_line_is_complete(built: Path) -> None:
    html = (built / "reference/commands/index.html").read_text()
    for name in (
        "stretto run",
        "stretto cluster up",
        "stretto report --overlap",
        "stretto bench --suite kind",
        "stretto kit make",
    ):
        assert f">{name}" in html
    assert "--only, --part" in html and "[b]" not in html


@pytest.mark.parametrize(
    "place, text, expected",
    [
        ("guide.md", "[cg](../examples/cg.c)", "cg (`examples/cg.c`)"),
        ("guide.md", "[examples/cg.c](../examples/cg.c)", "examples/cg.c"),
        ("guide.md", "[map](../ARCHITECTURE.md#the-map)", "[map](project/architecture.md#the-map)"),
        ("model/tune.md", "[m](../model.md)", "[m](../model.md)"),
        ("project/readme.md", "![p](docs/images/report.png)", "![p](../images/report.png)"),
        ("guide.md", "[u](https://a.b/c) [here](#x)", "[u](https://a.b/c) [here](#x)"),
        ("guide.md", "```\n[cg](../examples/cg.c)\n```\n", "```\n[cg](../examples/cg.c)\n```\n"),
    ],
)
def test_links_without_a_repository(place: str, text: str, expected: str) -> None:
    assert site.with_links_of_the_site(text, place, "") == expected


def test_pages_that_nobody_lists_are_in_the_navigation() -> None:
    nav = site.complete([{"Start": ["index.md", "adr/"]}])
    assert nav[0]["Start"][:2] == ["index.md", "adr/README.md"]
    assert "guide.md" in nav[-1]["More"] and "index.md" not in nav[-1]["More"]
