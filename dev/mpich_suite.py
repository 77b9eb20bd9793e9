#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests, of Debian's source package, with Stretto in front of each MPI of this machine.

    dev/mpich_suite.py [WORD...]        words for pytest: --mpi mpich-5, -k "coll and default"

It fetches the source into build/, runs tests/mpi/test_mpich_suite.py, and says which tests failed
with Stretto, and which fail without it. It needs a line `deb-src` for apt, and takes hours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"


def source() -> Path:
    """The folder with the tests. Fetched if it is missing."""
    found = sorted(BUILD.glob("mpich-*/test/mpi"))
    if not found:
        BUILD.mkdir(exist_ok=True)
        if subprocess.run(["apt-get", "source", "--quiet", "mpich"], cwd=BUILD, check=False).returncode:
            raise SystemExit("mpich_suite: `apt-get source mpich` fails: does /etc/apt/sources.list name deb-src?")
        found = sorted(BUILD.glob("mpich-*/test/mpi"))
    return found[-1]


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return 0
    results = BUILD / "mpich-tests"
    for old in results.glob("failed-*.json"):
        old.unlink()
    line = [ROOT / "stretto", "test", "--long", "--part", "pytest", "tests/mpi/test_mpich_suite.py", *sys.argv[1:]]
    status = subprocess.run(line, env={**os.environ, "MPICH_TESTS": str(source())}, cwd=ROOT, check=False).returncode
    for path in sorted(results.glob("failed-*.json")):
        doc = json.loads(path.read_text())
        where = f"{doc['mpi']}, {doc['setting']}, {doc['part']}"
        for name, how in (("served", "fails with Stretto alone"), ("plain", "fails without Stretto, too")):
            for test in doc[name]:
                print(f"{where}: {test} {how}")
    return status


if __name__ == "__main__":
    sys.exit(main())
