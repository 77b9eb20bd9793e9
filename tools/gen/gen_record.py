# SPDX-License-Identifier: BSD-3-Clause
"""What a recording says of each call (src/mpi/record/recorded.hpp)."""

from __future__ import annotations

import re

import gen_requests
import gen_waiting
from gen_api import Parameter
from stretto.core.arguments import COLLECTIVES

# They wait for no other rank, and make nothing that others know: part of the program's computation.
_LOCAL = re.compile(
    "(Pack|Unpack)(_external)?|Reduce_local|Buffer_.*|Comm_.*_buffer|Session_.*_buffer|Free_mem|(Type|Op)_free"
    "|Win_(attach|detach)|Abort|Init|Init_thread|Stream_progress"
)
_WAITS = re.compile("(Wait|Test)(all|any|some)?")
_LOOKS = re.compile("Request_get_status.*|Request_is_complete|Cancel|Pready.*|Parrived")


def _of(parameters: tuple[Parameter, ...], kind: str) -> Parameter | None:
    return next((p for p in parameters if p.kind == kind), None)


def _named(parameters: tuple[Parameter, ...], *names: str) -> Parameter | None:
    return next((p for name in names for p in parameters if p.name == name), None)


def _communicators(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    found = []
    for p in parameters:
        if p.kind != "COMMUNICATOR":
            continue
        if p.small == "Handle":
            found = found or [f"r.comm({p.name});"]
        else:
            found.append(f"r.{'frees_comm' if name in ('Comm_free', 'Comm_disconnect') else 'makes_comm'}({p.name});")
    return found


def _message(parameters: tuple[Parameter, ...]) -> list[str]:
    found = []
    for peer, side, verb in (("dest", "send", "sends"), ("source", "recv", "receives")):
        if _named(parameters, peer) is None:
            continue
        tag = _named(parameters, f"{side}tag", "tag")
        count = _named(parameters, f"{side}count", "count")
        kind = _named(parameters, f"{side}type", "datatype")
        length = f", {count.name}, {kind.name}" if count and kind else ""
        found.append(f"r.{verb}({peer}, {tag.name}{length});")
    return found


def _data(parameters: tuple[Parameter, ...], side: str, verb: str, large: bool) -> str | None:
    """What a collective sends or receives."""
    counts = _named(parameters, f"{side}counts")
    if counts is not None:
        types = _named(parameters, f"{side}types")
        kind = types or _named(parameters, f"{side}type", "datatype")
        buffer = f"{side}buf" if _named(parameters, f"{side}type", f"{side}types") else "nullptr"
        which = "typed" if types else "blocks"
        return f"r.{verb}_{which}({buffer}, {counts.native_argument(large)}, {kind.name});"
    count, kind = _named(parameters, f"{side}count"), _named(parameters, f"{side}type", "datatype")
    if count is None:
        return None
    buffer = f"{side}buf" if kind.name != "datatype" else "nullptr"
    return f"r.{verb}_data({buffer}, {count.name}, {kind.name});"


def _collective(name: str, parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    found = ["r.on_neighbors();"] if name.startswith("neighbor") else []
    rooted = _named(parameters, "root") is not None
    if rooted:
        found.append("r.root(root);")
    for side, verb in (("send", "sends"), ("recv", "receives")):
        if said := _data(parameters, side, verb, large):
            only = any(p.root_only and p.name.startswith(f"{side}count") for p in parameters)
            found.append(f"if (r.{'at_root' if only else 'at_leaf'}()) {said}" if rooted else said)
    if (count := _named(parameters, "count")) is not None:
        said = f"r.sends_data(nullptr, {count.name}, datatype);"
        found.append(f"if (r.takes_part()) {said}" if rooted else said)
    if (op := _of(parameters, "OPERATION")) is not None:
        found.append(f"r.combines({op.name}, datatype);")
    return found


def _window(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    window = _of(parameters, "WINDOW")
    if window is None:
        return []
    if window.small != "Handle":
        return [f"r.{'frees_window' if name == 'Win_free' else 'makes_window'}({window.name});"]
    found = [f"r.window({window.name});"]
    if target := _named(parameters, "target_rank", "rank"):
        found.append(f"r.target({target.name});")
    if group := _of(parameters, "GROUP"):
        found.append(f"r.group({group.name});")
    if count := _named(parameters, "origin_count"):
        verb = "receives" if re.fullmatch("R?get", name, re.IGNORECASE) else "sends"
        found.append(f"r.{verb}_data(nullptr, {count.name}, origin_datatype);")
    return found


def _file(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    file = _of(parameters, "FILE")
    if file is None:
        return []
    if file.small != "Handle":
        return [f"r.{'opens' if name == 'File_open' else 'closes'}({file.name});"]
    found = [f"r.file({file.name});"]
    if _named(parameters, "count") and _named(parameters, "datatype"):
        found.append(f"r.{'receives' if 'read' in name else 'sends'}_data(nullptr, count, datatype);")
    return found


def _requests(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    request = _of(parameters, "REQUEST")
    if request is None:
        return []
    count = _named(parameters, "count", "incount")
    place = request.name if request.small != "Handle" else f"&{request.name}"
    listed = f"{count.name if request.array and count else 1}, {place}"
    if _WAITS.fullmatch(name):
        return [f"r.waits({listed});"]
    if name in ("Start", "Startall"):
        return [f"r.starts({listed});"]
    if name == "Request_free":
        return [f"r.frees_request({place});"]
    return [f"r.names({listed});"] if _LOOKS.fullmatch(name) else [f"r.makes({place});"]


def _results(name: str, parameters: tuple[Parameter, ...]) -> list[str]:
    found = []
    if (flag := _named(parameters, "flag")) is not None and flag.small == "int*":
        found.append("r.says(flag);")
    if not _LOOKS.fullmatch(name):
        if _named(parameters, "array_of_indices"):
            found.append("r.ends_some(outcount, array_of_indices);")
        elif _named(parameters, "index") and _WAITS.fullmatch(name):
            found.append("r.ends_one(index);")
        status = _of(parameters, "STATUS")
        if status is not None and (_WAITS.fullmatch(name) or _message(parameters)):
            found.append(f"r.{'statuses' if status.array else 'status'}({status.name});")
    return found


def statements(name: str, parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    """The body of the function that says what a call means. Empty: it is not recorded."""
    if _LOCAL.fullmatch(name):
        return []
    collective = gen_requests.collective(name) or (name.lower() if name.lower() in COLLECTIVES else None)
    found = _communicators(name, parameters)
    if collective:
        found += _collective(collective, parameters, large)
    elif _named(parameters, "tag", "sendtag", "recvtag"):
        found += _message(parameters)
    elif name not in gen_waiting.EXTENSIONS:
        found += _window(name, parameters) + _file(name, parameters)
    if partitions := _named(parameters, "partitions"):
        found.append(f"r.partitions({partitions.name});")
    if message := _named(parameters, "message"):
        found.append(f"r.{'makes' if 'probe' in name else 'takes'}_message({message.name});")
    return found + _requests(name, parameters) + _results(name, parameters)


def _declaration(parameter: Parameter, large: bool, used: bool) -> str:
    """A parameter of that function: statuses may be replaced."""
    kind = parameter.large if large else parameter.small
    return f"{kind}{'&' if parameter.kind == 'STATUS' else ''} {parameter.name if used else ''}".strip()


def function(entry: str, body: list[str], parameters: tuple[Parameter, ...], large: bool) -> list[str]:
    """The function that says what a call means, with these statements."""
    if not body:
        return []
    used = set(re.findall(r"\w+", " ".join(body)))
    declared = ", ".join(_declaration(p, large, p.name in used) for p in parameters)
    out = ["namespace {", f"[[gnu::noinline]] void {entry}_record(Recorded& r, {declared}) {{"]
    return [*out, *(f"  {line}" for line in body), "}", "}  // namespace"]


def guard(entry: str, names: str) -> list[str]:
    """What a wrapper with a body `<entry>_made` does first."""
    make = f"[caller](auto... final) {{ return {entry}_made(caller, final...); }}"
    call = f"make_recorded<{entry}_record, Entry::{entry}>(caller, {make}, {names})"
    return ["  if (recording()) [[unlikely]]", f"    return {call};"]
