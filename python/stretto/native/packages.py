# SPDX-License-Identifier: BSD-3-Clause
"""The system packages that Stretto needs (packages.txt), and which of them this machine lacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Requirement:
    kind: str  # program, header or python
    name: str
    package: str  # name of the Debian package
    needed_by: str  # all, build, test or deb

    @property
    def present(self) -> bool:
        if self.kind == "header":
            return any(Path(p, self.name).exists() for p in ("/usr/include", "/usr/local/include"))
        return self.kind != "program" or shutil.which(self.name) is not None


def requirements(needed_by: str) -> Iterator[Requirement]:
    for line in (Path(__file__).parent / "packages.txt").read_text().splitlines():
        words = line.split()
        if words and not line.startswith("#") and words[3] == needed_by:
            yield Requirement(*words)


def missing(needed_by: str) -> list[Requirement]:
    return [each for each in requirements(needed_by) if not each.present]


def advice(lacking: list[Requirement]) -> str:
    return "apt-get install " + " ".join(each.package for each in lacking)
