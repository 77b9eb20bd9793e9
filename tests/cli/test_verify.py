# SPDX-License-Identifier: BSD-3-Clause
"""verify: the short form of what `stretto verify` does with 64 ranks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


def test_every_algorithm_keeps_its_promise(stretto: Tool, tmp_path: Path) -> None:
    done = stretto("verify", "--max-ranks", "17", "--json", tmp_path / "report.json", timeout=300)
    report = json.loads((tmp_path / "report.json").read_text())
    assert done.returncode == 0 and report["failed"] == 0 and report["failures"] == [], report["failures"][:5]
    assert report["checked"] > 25_000 and f"{report['checked']} checked, 0 failed" in done.stdout


def test_one_algorithm_and_one_that_is_none(stretto: Tool) -> None:
    done = stretto("verify", "--max-ranks", "5", "--algorithm", "bcast:chain", "--json", "-")
    # Sum of P roots for P = 1..5, four segment counts each.
    assert done.returncode == 0 and json.loads(done.stdout)["checked"] == 15 * 4
    done = stretto("verify", "--algorithm", "bcast:telepathy")
    assert done.returncode == 2 and "no such algorithm: bcast:telepathy: of bcast one of flat, binomial" in " ".join(
        done.stderr.split()
    )
    done = stretto("verify", "--algorithm", "bcast:chain", "--algorithm", "telepathy")
    assert done.returncode == 2 and "no such collective: telepathy: one of barrier, bcast" in " ".join(
        done.stderr.split()
    )
    assert "algorithms of gather" in stretto("verify", "--algorithm", "gatherv").stderr
