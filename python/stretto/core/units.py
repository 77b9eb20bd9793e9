# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and times as people write and read them."""

from __future__ import annotations

import re


def parse_size(text: str) -> int:
    """Bytes from 8, 64K or 1M (powers of 1024)."""
    match = re.fullmatch(r"(\d+)\s*([kKmMgG]?)(?:i?[bB])?", text.strip())
    if not match:
        raise ValueError(f"'{text}' is not a size: a number is expected, K, M or G may follow")
    return int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[match.group(2).lower()]


def parse_sizes(text: str) -> tuple[int, int]:
    """The least and the largest size, from 64:1M or from one size."""
    low, colon, high = text.partition(":")
    least, most = parse_size(low), parse_size(high if colon else low)
    if not 0 < least <= most <= 1 << 28:
        raise ValueError(f"'{text}': sizes go from 1 byte to 256M, the smaller first")
    return least, most


def sizes_between(least: int, most: int, factor: int = 2) -> list[int]:
    """`least`, multiplied as long as it is at most `most`."""
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    return sizes


def format_size(bytes_: int) -> str:
    """A size in bytes, as K or M where that is exact."""
    for shift, unit in ((20, "M"), (10, "K")):
        if bytes_ >= 1 << shift and bytes_ % (1 << shift) == 0:
            return f"{bytes_ >> shift}{unit}"
    return str(bytes_)


def format_time(time: float, unit: str = "ns") -> str:
    """Nanoseconds with three digits and a unit, as 1.25 us. With another `unit`, a plain number."""
    if unit != "ns":
        return f"{time:.6g}"
    for limit, factor, name in ((1e3, 1, "ns"), (1e6, 1e-3, "us"), (1e9, 1e-6, "ms")):
        if time < limit * 0.9995:
            return f"{time * factor:.3g} {name}"
    return f"{time * 1e-9:.3g} s"


def ranges(numbers: list[int]) -> str:
    """Numbers as text: [0, 1, 2, 3, 8] is 0-3,8."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(str(n) for n in part) for part in parts)
