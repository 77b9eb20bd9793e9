# SPDX-License-Identifier: BSD-3-Clause
"""Reads rules of Open MPI's `tuned` collectives, in both formats, and finds the rule for a call."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.core.positions import WrongText
from stretto.rules import open_mpi


def parse_classic(text: str) -> open_mpi.Rules:
    """The rules in a classic file. Raises ValueError with what is wrong."""
    words = list(_words(text))
    version = 1
    if words and (found := re.fullmatch(r"rule-file-version-(\d+)", words[0].text)):
        version, words = int(found[1]), words[1:]
    words.reverse()
    at = 0

    def number() -> int:
        nonlocal at
        if not words:
            raise WrongText("the file ends too early", len(text.rstrip()))
        word = words.pop()
        at = word.offset
        if not word.text.isascii() or not word.text.isdigit() or len(word.text) > 18:
            raise WrongText(f"{word.text[:20]!r}: a number expected", at)
        return int(word.text)

    def rule() -> open_mpi.Rule:
        from_bytes, algorithm, fan = number(), number(), number()
        ends = bool(words) and words[-1].is_last
        found = open_mpi.Rule(from_bytes, algorithm, fan, number())
        if version > 1 and not ends:
            number()  # the largest number of requests of an alltoall
        return found

    names = {n: op for op, n in open_mpi.COLLECTIVES.items()}
    result: open_mpi.Rules = {}
    for _ in range(number()):
        collective = number()
        if collective >= open_mpi.OPEN_MPIS:
            raise WrongText(f"collective {collective}: there are {open_mpi.OPEN_MPIS}", at)
        op = names.get(collective)
        for _ in range(number()):
            ranks = number()
            count, begin = number(), words[-1].offset if words else at
            rules = [rule() for _ in range(count)]
            if rules and rules[0].from_bytes != 0:
                raise WrongText(f"{op or 'a collective'}, {ranks} ranks: the first length must be 0", begin)
            if op:  # we have no algorithms for the others
                result.setdefault(op, {})[ranks] = rules
    if words:
        raise WrongText("something follows the last rule", words[-1].offset)
    return result


@dataclass(frozen=True)
class Word:
    """A word of a classic file."""

    text: str
    offset: int
    is_last: bool  # the last word of its line


def _words(text: str) -> Iterator[Word]:
    begin = 0
    for line in text.splitlines(keepends=True):
        found = list(re.finditer(r"\S+", line.partition("#")[0]))
        yield from (Word(each[0], begin + each.start(), each is found[-1]) for each in found)
        begin += len(line)


@dataclass(frozen=True)
class Range:
    """Rules for communicators of `least` to `most` ranks."""

    least: int
    most: float
    rules: tuple[tuple[float, open_mpi.Rule], ...]  # each up to so many bytes


Table = dict[str, list[Range]]  # the first range that fits counts


def table_of(rules: open_mpi.Rules) -> Table:
    """The rules as a table: a size reaches up to the next one, and so does a length."""
    table: Table = {}
    for op, sizes in rules.items():
        bounds = [*sorted(sizes), None]
        table[op] = [
            Range(ranks, above - 1 if above else math.inf, _up_to_the_next(sizes[ranks]))
            for ranks, above in zip(bounds, bounds[1:])
            if ranks is not None
        ]
    return table


def _up_to_the_next(rules: Sequence[open_mpi.Rule]) -> tuple[tuple[float, open_mpi.Rule], ...]:
    return tuple((after.from_bytes - 1 if after else math.inf, rule) for rule, after in zip(rules, [*rules[1:], None]))


def parse_json(document: Any) -> Table:
    """The rules in the decoded JSON of Open MPI 6. Raises ValueError with what is wrong."""
    collectives = _expect(document, dict, "the file").get("collectives")
    table: Table = {}
    for op, sizes in _expect(collectives, dict, '"collectives"').items():
        ranges = [_range(op, _expect(size, dict, f"{op}: a communicator's rules")) for size in _expect(sizes, list, op)]
        if op in open_mpi.COLLECTIVES:
            table[op] = ranges
    return table


def _expect(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what}: {'an object' if kind is dict else 'a list'} expected")
    return value


def _bound(entry: dict[str, Any], key: str, missing: float) -> float:
    value = entry.get(key, missing)
    if isinstance(value, str) and value[:3].lower() == "inf":
        return math.inf
    if isinstance(value, bool) or not (isinstance(value, int) or value == math.inf) or value < 0:
        raise ValueError(f"{key}: a number, not negative, expected")
    return value


def _whole(entry: dict[str, Any], key: str) -> int:
    return int(min(_bound(entry, key, 0), 2**62))


def _range(op: str, size: dict[str, Any]) -> Range:
    rules = []
    for entry in _expect(size.get("rules"), list, f"{op}: rules"):
        number = _number_of(op, _expect(entry, dict, f"{op}: a rule").get("alg"))
        rule = open_mpi.Rule(
            _whole(entry, "msg_size_min"), number, _whole(entry, "faninout"), _whole(entry, "seg_size")
        )
        if number >= 0:  # Open MPI ignores algorithms that it does not know
            rules.append((_bound(entry, "msg_size_max", math.inf), rule))
    return Range(_whole(size, "comm_size_min"), _bound(size, "comm_size_max", math.inf), tuple(rules))


def _number_of(op: str, algorithm: Any) -> int:
    names = open_mpi.NAMES.get(op, ())
    if isinstance(algorithm, str):
        return names.index(algorithm) + 1 if algorithm in names else -1
    if isinstance(algorithm, bool) or not isinstance(algorithm, int):
        raise ValueError(f"{op}: alg: a number or a name expected")
    return algorithm if 0 <= algorithm <= len(names) else -1


def find(table: Table, op: str, ranks: int, bytes_: int) -> open_mpi.Rule | None:
    """The rule for a call. `bytes_` is the length of the vector, or of one rank's part."""
    total = bytes_ * (ranks if op in open_mpi.OF_PARTS else 1)
    for size in table.get(op, ()):
        if not size.least <= ranks <= size.most:
            continue
        return next((rule for most, rule in size.rules if rule.from_bytes <= total <= most), None)
    return None
