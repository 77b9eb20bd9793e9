# SPDX-License-Identifier: BSD-3-Clause
"""The tool as somebody else has installed it, in paths with spaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
User = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def installed(
    wheel: Path, environment: Mapping[str, str] | None = None, program: str = "", shut_in: Sequence[str] = ()
) -> Iterator[User]:
    """user("verify", "--help"): the tool of a wheel, run by another user, in a home of his own that
    has sum.c. `shut_in`: words before each command, as root."""
    place = Path(tempfile.mkdtemp(prefix="stretto test of a wheel "))
    try:
        place.chmod(0o755)
        python = next(p for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p))
        venv = place / "an environment"
        subprocess.run([python, "-m", "venv", venv], check=True, timeout=100)
        subprocess.run([venv / "bin/pip", "install", "-q", wheel], check=True, timeout=200)
        home = place / "a home"
        home.mkdir()
        (home / "sum.c").write_text(program)
        become: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(home, NOBODY, NOBODY)
            shutil.chown(home / "sum.c", NOBODY, NOBODY)
            become = [*shut_in, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), **(environment or {})}

        def call(*arguments: str | Path, tool: str | Path = "stretto") -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*become, venv / "bin" / tool, *arguments],
                cwd=home,
                env=clean,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=280,
            )

        yield call
    finally:
        shutil.rmtree(place)
