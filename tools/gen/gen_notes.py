# SPDX-License-Identifier: BSD-3-Clause
"""Which calls note where the program is, with a watchdog, and what they say (src/mpi/waits/noted.hpp)."""

from __future__ import annotations

import re

import gen_requests
import gen_waiting
from gen_api import Parameter

# Calls that wait for other ranks, and that nothing else needs a wrapper of.
WAITING = (
    *("Win_complete", "Win_fence", "Win_flush", "Win_flush_all", "Win_flush_local", "Win_flush_local_all"),
    *("Win_lock", "Win_lock_all", "Win_post", "Win_start", "Win_unlock", "Win_unlock_all"),
    *("File_close", "File_open", "File_preallocate", "File_seek_shared", "File_set_atomicity", "File_set_size"),
    *("File_set_view", "File_sync"),
    *("Cart_create", "Cart_sub", "Comm_accept", "Comm_connect", "Comm_create", "Comm_create_group", "Comm_dup"),
    *("Comm_dup_with_info", "Comm_split", "Comm_split_type", "Dist_graph_create", "Dist_graph_create_adjacent"),
    *("Graph_create", "Intercomm_create", "Comm_spawn", "Comm_spawn_multiple"),
)
# Those that have a wrapper for another reason, and wait for all members of a communicator.
_OF_ALL = {*("Intercomm_merge", "Win_allocate", "Win_allocate_shared", "Win_create", "Win_create_dynamic")}
# All members of the window or the file make these.
_ALL_OF_WINDOW = {"Win_fence"}
_ALL_OF_FILE = re.compile(r"File_(.*_all(_begin|_end)?|.*_ordered.*|open|close|preallocate|seek_shared|set_.*|sync)")
# They wait for one of their requests.
_ANY = {"Waitany", "Waitsome", "Testany", "Testsome"}
_TESTS = {*gen_waiting.TESTING, *gen_waiting.PROBING}
# They begin what a request stands for already.
_STARTS = {"Start", "Startall", "Cancel", "Request_free"}


def _named(parameters: tuple[Parameter, ...], *names: str) -> str | None:
    return next((p.name for name in names for p in parameters if p.name == name), None)


def _of(parameters: tuple[Parameter, ...], *kinds: str) -> Parameter | None:
    return next((p for p in parameters if p.kind in kinds), None)


def _message(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    """What a call sends, and what it receives."""
    comm, buffer = _of(parameters, "COMMUNICATOR"), _of(parameters, "BUFFER")
    if comm is None:
        return []
    found = []
    for peer, side, verb in (("dest", "send", "sends"), ("source", "recv", "receives")):
        if _named(parameters, peer) is None:
            continue
        count, kind = (_named(parameters, f"{side}{what}", what) for what in ("count", "type"))
        kind = kind or _named(parameters, "datatype")
        length = f", {count}, {kind}" if buffer is not None and count and kind else ""
        found.append(f"note.{verb}({peer}, {_named(parameters, f'{side}tag', 'tag')}, {comm.name}{length});")
    return found


def _window(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    window = _of(parameters, "WINDOW")
    if window is None or name in _OF_ALL:
        return []
    if window.small != "Handle":
        return [f"note.frees_window({window.name});"]
    if target := _named(parameters, "rank", "target_rank"):
        return [f"note.at_target({target}, {window.name});"]
    return [f"note.{'all_of_window' if name in _ALL_OF_WINDOW else 'window'}({window.name});"]


def _file(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    file = _of(parameters, "FILE")
    if file is None:
        return []
    if name == "File_open":
        return ["note.opens(fh, filename, comm);"]
    if file.small != "Handle":
        return [f"note.closes({file.name});"]
    return [f"note.{'all_of_file' if _ALL_OF_FILE.fullmatch(name) else 'file'}({file.name});"]


def _requests(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    request = _of(parameters, "REQUEST")
    if request is None or name in _STARTS:
        return []
    if request.array:
        count = _of(parameters, "ARRAY_LENGTH_NNI", "ARRAY_LENGTH").name
        return [f"note.waits({count}, {request.name}{', true' if name in _ANY else ''});"]
    if name in ("Wait", "Test"):
        return [f"note.waits(1, {request.name});"]
    if request.small == "Handle":
        return [f"note.waits(1, &{request.name});"]
    return [f"note.makes({request.name});"]


def statements(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    """The body of the function that fills in the note of a call. Empty: such calls leave none."""
    found = _message(name, parameters) or _window(name, parameters) or _file(name, parameters)
    found += _requests(name, parameters)
    if not found and name in (*WAITING, *_OF_ALL):
        found = [f"note.all_of({_of(parameters, 'COMMUNICATOR').name});"]
    if found and name in _TESTS:
        found.append("note.tests();")
    return found or (["note.other();"] if name in ("Mrecv",) else [])


def kind(name: str, parameters: tuple[Parameter, ...]) -> str:
    """Under which heading the statistics have the time in a call (src/observe/other_calls.hpp)."""
    if name.startswith("File_"):
        return "files"
    if gen_requests.collective(name):
        return "collective"
    if _of(parameters, "WINDOW"):
        return "one_sided"
    return "communicators" if name in (*WAITING, *_OF_ALL) else "messages"
