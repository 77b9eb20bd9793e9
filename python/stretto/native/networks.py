# SPDX-License-Identifier: BSD-3-Clause
"""By which network long messages of Stretto's own connections would go here, in words."""

from __future__ import annotations

from typing import Any

from stretto.native.guarding import Line

SUBJECT = "fast networks (STRETTO_FABRIC)"


def line(found: dict[str, Any], asked: str = "") -> Line:
    """Of the probe's networks. `asked`: the value of STRETTO_FABRIC."""
    if asked == "off":
        return Line(SUBJECT, "TCP, as STRETTO_FABRIC=off asks", True)
    wanted = "" if asked == "auto" else asked
    if found["library"] is None:
        advice = "Install it (Debian: apt-get install libfabric1), or have the vendor's in LD_LIBRARY_PATH."
        return Line(SUBJECT, f"TCP: {found['error']}", not (found["card"] or wanted), advice)
    library = f"libfabric {found['version']} in {found['library']}"
    if not (found["card"] or wanted):
        return Line(SUBJECT, f"TCP: no card for another is here; {library}: {_names(found)}", True)
    if taken := next((each for each in found["offers"] if _suits(each, wanted)), None):
        return Line(SUBJECT, f"provider {taken['provider']}, domain {taken['domain']}, of {library}", True)
    advice = "`fi_info -c 'FI_MSG|FI_RMA' -t FI_EP_RDM` says what libfabric finds, with FI_LOG_LEVEL=warn why not more."
    which = f"provider {wanted}" if wanted else "provider of a fast network"
    return Line(SUBJECT, f"TCP: no {which} in {library}: {_names(found)}", False, advice)


def _suits(offer: dict[str, Any], wanted: str) -> bool:
    name = offer["provider"].split(";")[0]
    return offer["usable"] and (wanted in (name, offer["provider"]) if wanted else not offer["software"])


def _names(found: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(offer["provider"] for offer in found["offers"])) or "none"
