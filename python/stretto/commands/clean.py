# SPDX-License-Identifier: BSD-3-Clause
"""clean: removes what Stretto has left on this machine."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import Annotated

import typer

from stretto.cluster import registry
from stretto.core import paths
from stretto.core.console import note
from stretto.packaging import cleaning
from stretto.packaging.cleaning import Leftover


def command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove what Stretto has left on this machine.

    It removes the build directory, caches, files of interrupted commands, dead clusters, and shared memory of dead
    jobs, and says so. What a process uses stays. So do other users' files, profiles, and installations ([b]stretto
    uninstall[/] removes those).
    """
    rows: list[tuple[str, str, str]] = []
    removed = 0
    for each in cleaning.leftovers():
        size = each.bytes()
        removed += 0 if each.user else size
        rows.append((_verdict(each, dry_run), each.what, f"{each.path}  {_mib(size)}"))
    if not dry_run:
        with suppress(OSError):  # something of it stays, or there is none
            paths.user_cache().rmdir()
    rows.extend(("would go" if dry_run else "removed", "dead cluster", name) for name in registry.remove_dead(dry_run))
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for verdict, what, which in rows:  # names are never cut or wrapped
        typer.echo(f"{verdict:{widths[0]}}  {what:{widths[1]}}  {which}")
    note(f"{'would free' if dry_run else 'freed'}: {_mib(removed)}")
    if not cleaning.sees_all():
        note("kept: shared memory of jobs, which processes of another container may use")
    if paths.own_profile().parent.is_dir():
        note(f"kept: {paths.own_profile().parent}, which you have measured")


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def _verdict(each: Leftover, dry_run: bool) -> str:
    if each.user:
        return f"stays: process {each.user} uses it"
    if dry_run:
        return "would go"
    if each.path.is_dir():
        shutil.rmtree(each.path, ignore_errors=True)
    else:
        each.path.unlink(missing_ok=True)
    return "removed" if not each.path.exists() else "partly removed"
