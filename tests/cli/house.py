# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house that a program can check: each check names the places that break it.

Those of code and of the repository stand here, those of pages in house_pages.py. `faults()` runs all.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import house_pages  # noqa: F401  its checks join the list
from house_tree import CHECKS, Faults, check, files, lines, path_of

# ---- C++ -----------------------------------------------------------------------------------------

# What each layer may include beside itself.
BELOW = {
    "sys": set(),
    "base": {"sys"},
    "shm": {"base", "sys"},
    "topo": {"base", "sys", "shm"},
    "reduce": {"base", "sys", "shm"},
    "kv": {"base", "sys", "shm"},
    "pmix": {"base", "sys", "shm", "kv"},
    "record": {"base", "sys"},
    "observe": {"base", "sys", "shm", "kv"},
    "transport": {"base", "sys", "shm"},
    "sched": {"base", "sys", "shm", "topo", "reduce", "transport"},
}
BELOW["overlap"] = BELOW["sched"] | {"sched"}
BELOW["coll"] = BELOW["sched"] | {"sched"}
BELOW["select"] = BELOW["coll"] | {"coll"}
BELOW["engine"] = BELOW["select"] | {"select", "observe", "overlap"}
BELOW["mpi"] = BELOW["engine"] | {"engine", "record"}
# The folders of src/mpi, from the lowest: each may include those before it. What is in no folder is
# the highest. The files of vendor/ are a part of host/.
MPI_FOLDERS = ["host", "job", "state", "data", "overlap", "stats", "requests", "record", "waits", "comm", "calls", ""]
SYSTEM = re.compile(
    r"#include <(sys/|linux/|net/|netinet/|arpa/|(unistd|fcntl|sched|poll|signal|ifaddrs|netdb|syscall)\.h)"
)


@check
def includes_go_downward() -> Faults:
    for name in files("src/*.cpp", "src/*.hpp"):
        layer = name.split("/")[1]
        for line in lines(name):
            found = re.match(r'#include "(\w+)/', line)
            if found and found[1] in BELOW and found[1] != layer and found[1] not in BELOW[layer]:
                yield name, line
            if line.startswith("#include <mpi.h>") and layer != "mpi":
                yield name, line


def mpi_folder(path: str) -> int:
    """How high the folder of a file of src/mpi is."""
    folder = "/".join(path.removeprefix("src/").split("/")[1:-1]).split("/")[0]
    return MPI_FOLDERS.index("host" if folder == "vendor" else folder)


@check
def folders_of_mpi_go_downward() -> Faults:
    for name in files("src/*.cpp", "src/*.hpp"):
        for line in lines(name) if name.startswith("src/mpi/") else ():
            found = re.match(r'#include "(mpi/[^"]+)"', line)
            if found and mpi_folder(found[1]) > mpi_folder(name):
                yield name, line


def unit_of(path: str) -> str:
    """A header and its .cpp are one unit: "shm/team"."""
    return path.removeprefix("src/").rsplit(".", 1)[0].removesuffix(".gen")


def cpp_units() -> dict[str, set[str]]:
    """Each unit of src, and those that it includes."""
    graph: dict[str, set[str]] = {}
    for name in files("src/*.cpp", "src/*.hpp"):
        included = re.findall(r'^\s*#include "([^"]+)"', path_of(name).read_text(), re.MULTILINE)
        graph.setdefault(unit_of(name), set()).update(map(unit_of, included))
    return {unit: included & graph.keys() - {unit} for unit, included in graph.items()}


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """What `start` includes, and what that includes, and so on."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead += new
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one unit."""
    ends = {unit: reached(graph, unit) for unit in graph}
    found = {frozenset(other for other in ends[unit] if unit in ends[other]) for unit in graph}
    return sorted((set(circle) for circle in found if circle), key=sorted)


@check
def cpp_units_have_no_circle() -> Faults:
    graph = cpp_units()
    for circle in circles(graph):
        for unit in sorted(circle):
            yield f"src/{unit}", f"includes {', '.join(sorted(graph[unit] & circle))}, in a circle"


@check
def only_sys_calls_the_system() -> Faults:
    for name in files("src/*.cpp", "src/*.hpp"):
        if not name.startswith("src/sys/"):
            yield from ((name, line) for line in lines(name) if SYSTEM.match(line))


def is_comment(line: str) -> bool:
    return re.match(r"\s*(//|#(?!include|if|el|en|de|un|pr))", line) is not None


@check
def lines_are_short() -> Faults:
    """Code has at most 120 columns, comments 100.

    Between `// clang-format off` and `// clang-format on` is a table. Its rows are data and may be
    longer.
    """
    for name in files("*.cpp", "*.hpp", "*.h", "*.c", "*.py"):
        table = False
        for line in lines(name):
            if fence := re.fullmatch(r"\s*// clang-format (on|off)", line):
                table = fence[1] == "off"
            row = table and not is_comment(line)
            if len(line) > (100 if is_comment(line) else 120) and not row:
                yield name, line


def output_of(*command: str) -> list[str]:
    """What a program of this Python's environment says."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run([program, *command[1:]], cwd=path_of("."), capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


@check
def cpp_is_formatted() -> Faults:
    """By clang-format, as .clang-format says."""
    names = files("*.cpp", "*.hpp", "*.h", "*.c")
    for line in output_of("clang-format", "--dry-run", *names) if names else []:
        if found := re.match(r"(\S+?):(\d+):.*-Wclang-format-violations", line):
            yield found[1], f"line {found[2]} is not as clang-format writes it"


@check
def python_is_formatted() -> Faults:
    """By `ruff format`, and without what `ruff check` finds."""
    names = files("*.py")
    for job in (["format", "--check"], ["check", "--quiet", "--output-format", "concise"]):
        for line in output_of("ruff", *job, *names) if names else []:
            if found := re.match(r"(?:Would reformat: )?(\S+?\.py)(:.*)?$", line):
                yield found[1], line


@check
def files_are_rooms() -> Faults:
    """At most 450 lines, of Python 300."""
    for name in files("src/*.cpp", "src/*.hpp", "python/*.py"):
        if len(lines(name)) > (300 if name.endswith(".py") else 450):
            yield name, f"{len(lines(name))} lines"


@check
def files_begin_with_what_they_are() -> Faults:
    """In a comment at the head, or above the first declaration. A .cpp of a header needs none."""
    for name in files("src/*.cpp", "src/*.hpp"):
        if name.endswith(".cpp") and path_of(name).with_suffix(".hpp").exists():
            continue
        text = path_of(name).read_text()
        if not re.match(r"// SPDX.*\n//|(?s:.*?)\nnamespace [\w:]+ {\n\n//", text):
            yield name, "has no comment at its head"


@check
def comments_say_what_they_mean() -> Faults:
    """A reader of a comment sees that line alone: "as above" sends him looking."""
    for name in files("*.cpp", "*.hpp", "*.h", "*.c"):
        yield from ((name, line) for line in lines(name) if re.search(r"//.*\bas above\b", line))


@check
def steps_stand_before_their_variable() -> Faults:
    """`++i` is what it says: `i++` also makes a copy, which a statement does not use."""
    step = re.compile(r"; \w+(\+\+|--)\)|^\s*(?!return)\S+(\+\+|--);|\) \w+(\+\+|--);")
    for name in files("src/*.cpp", "src/*.hpp"):
        yield from ((name, line) for line in lines(name) if step.search(line.partition("//")[0]))


# ---- what nothing uses ---------------------------------------------------------------------------


def is_code(name: str) -> bool:
    return name.endswith((".cpp", ".hpp", ".h", ".c"))


def without_comments(name: str) -> str:
    text = path_of(name).read_text(errors="replace")
    return re.sub(r"//.*", "", text) if is_code(name) else text


@check
def functions_have_callers() -> Faults:
    """No function of src is only defined, or only declared and defined.

    It goes by names: a name that stands elsewhere, in a test too, counts as used.
    """
    named = files("*.cpp", "*.hpp", "*.h", "*.c", "*.py", "*.txt", "*.cmake", "*.map")
    generated = [str(path.relative_to(path_of("."))) for path in path_of("src").rglob("*.gen.*")]
    texts = {name: without_comments(name) for name in {*named, *generated}}
    count = Counter(word for text in texts.values() for word in re.findall(r"\w+", text))
    for name in files("src/*.cpp", "src/*.hpp"):
        text = texts[name]
        for found in re.finditer(r"(\w+::)?\b([a-z_]\w*)\((?:[^()]|\([^()]*\))*\)[\w\s]*{", text):
            # What a .cpp defines is declared in a header once, and else stands where it is called.
            here = len(re.findall(rf"\b{found[2]}\b", text))
            if count[found[2]] <= (2 if here == 1 and name.endswith(".cpp") else 1):
                yield name, f"nothing calls {found[2]}"


# ---- the repository ------------------------------------------------------------------------------

MOST_BYTES = 300 << 10
# Large files that are meant to be so.
LARGE = {"src/mpi/forwards.gen.cpp"}


@check
def files_are_small() -> Faults:
    """A large file makes every clone large for ever."""
    for name in files("*"):
        size = path_of(name).stat().st_size
        if size > MOST_BYTES and name not in LARGE:
            yield name, f"{size >> 10} KiB"


VENDOR = "src/mpi/vendor/"


@check
def test_files_have_names_of_their_own() -> Faults:
    """One pytest runs all folders, and takes two files of one name for the same."""
    seen: dict[str, str] = {}
    for name in files("tests/*/test_*.py"):
        if (other := seen.setdefault(Path(name).name, name)) != name:
            yield name, f"{other} has the same name"


@check
def abis_differ_in_vendor() -> Faults:
    """Conditions on an MPI's ABI are in the vendors' folders. CMake and the generator name no ABI."""
    condition = re.compile(r"\s*#\s*(if|elif).*(_ABI_|MPI_ABI|OPEN_MPI|OMPI_|MPICH|MVAPICH|I_MPI)")
    # Generated files, too, which files() leaves out.
    wrappers = [str(path.relative_to(path_of("."))) for path in path_of("src/mpi").rglob("*.gen.*")]
    for name in [*files("src/*.cpp", "src/*.hpp", "include/*.h", "tools/*.cpp"), *wrappers]:
        if not name.startswith(VENDOR):
            yield from ((name, line) for line in lines(name) if condition.match(line))
    abi = re.compile(r"\b(openmpi|mpich)\b", re.IGNORECASE)
    for name in files("CMakeLists.txt", "cmake/*.cmake", "tools/gen/*.py"):
        yield from ((name, line) for line in lines(name) if abi.search(line))
    compared = re.compile(r"\babi\b *(==|!=|in) *[\"'(\[]")
    for name in files("python/*.py"):
        yield from ((name, line) for line in lines(name) if compared.search(line))


# ---- Python --------------------------------------------------------------------------------------


def imports_of(name: str) -> set[str]:
    """Modules of ours that a module imports, in functions, too."""
    modules = {path.removeprefix("python/").removesuffix(".py").replace("/", ".") for path in files("python/*.py")}
    found: set[str] = set()
    for node in ast.walk(ast.parse(path_of(name).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stretto"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules


@check
def python_imports_have_no_circle() -> Faults:
    graph = {
        name.removeprefix("python/").removesuffix(".py").replace("/", "."): imports_of(name)
        for name in files("python/*.py")
    }
    outside = [""]
    while outside:  # what needs nobody that is left, or whom nobody needs
        outside = [
            module
            for module in graph
            if not graph[module] & graph.keys() or all(module not in graph[other] for other in graph)
        ]
        for module in outside:
            del graph[module]
    for module, needed in graph.items():
        yield f"python/{module.replace('.', '/')}.py", f"is in a circle with {', '.join(sorted(needed & graph.keys()))}"


# What each room may import beside itself. `cli.py` and `__main__.py` stand above all rooms.
ROOMS_BELOW = {"core": set(), "report": {"core"}, "mpi": {"core"}, "native": {"core", "mpi"}, "rules": {"core"}}
ROOMS_BELOW["cluster"] = {"core", "mpi", "native"}
ROOMS_BELOW["bench"] = ROOMS_BELOW["cluster"] | {"cluster"}
ROOMS_BELOW["model"] = ROOMS_BELOW["cluster"] | {"cluster", "rules"}
ROOMS_BELOW["job"] = ROOMS_BELOW["model"] | {"model", "report"}
ROOMS_BELOW["packaging"] = {"core", "mpi", "native"}
ROOMS_BELOW["kit"] = ROOMS_BELOW["model"] | {"model", "bench", "packaging"}
ROOMS_BELOW["papers"] = ROOMS_BELOW["kit"] | {"kit"}
ROOMS_BELOW["diagnosis"] = ROOMS_BELOW["bench"] | {"bench"}
ROOMS_BELOW["demo"] = ROOMS_BELOW["kit"]
ROOMS_BELOW["commands"] = ROOMS_BELOW["papers"] | {"papers", "diagnosis", "demo", "report", "job"}


@check
def python_imports_go_downward() -> Faults:
    """The rooms of python/stretto, imports in functions included."""
    for name in files("python/*.py"):
        room = name.split("/")[2]
        for node in ast.walk(ast.parse(path_of(name).read_text())) if room in ROOMS_BELOW else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stretto"):
                for module in (f"{node.module}.{alias.name}" for alias in node.names):
                    other = module.split(".")[1]
                    if other != "__version__" and other != room and other not in ROOMS_BELOW[room]:
                        yield name, module


MOST_IN_FUNCTION = 60


def lengths_of_functions(name: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path_of(name).read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


@check
def python_functions_are_short() -> Faults:
    for name in files("*.py"):
        for function, length in lengths_of_functions(name):
            if length > MOST_IN_FUNCTION:
                yield name, f"{function} has {length} lines"


def faults() -> dict[str, dict[str, list[str]]]:
    """By check and file."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, function in CHECKS.items():
        for file, text in function():
            found.setdefault(name, {}).setdefault(file, []).append(text)
    return found
