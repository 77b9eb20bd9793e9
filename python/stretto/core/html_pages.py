# SPDX-License-Identifier: BSD-3-Clause
"""HTML pages: one file each, which asks no other for anything. They are light or dark as the reader
has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stretto.core.console import fail

BASE = Path(__file__).with_name("templates")  # base.html, which pages extend, and its style.css


def render(template: Path, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """The text of a page. Values are escaped, unless they are markup."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, BASE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    return environment.get_template(template.name).render(values)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")
