#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the thin C functions that stand in front of the MPI's own: one per entry of calls.toml.

A shim decides nothing; every decision is in policy.c.

usage: make_shims.py calls.toml > shims.c
"""

import re
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    try:
        import tomli as tomllib
    except ModuleNotFoundError:
        sys.exit("make_shims.py needs Python 3.11 or newer, or the package tomli (Debian and Ubuntu: python3-tomli)")

HEAD = """\
/* Generated from calls.toml by make_shims.py; do not edit. */
#include "policy.h"

#define EXPORT __attribute__((visibility("default")))
"""

LIFECYCLE = """
EXPORT int {name}({parameters})
{{
    return {policy}({names});
}}
"""

COLLECTIVE = """
EXPORT int {name}({parameters})
{{
    int result;
    if ({policy}({names}, &result))
        return result;
    return P{name}({names});
}}
"""

CONSTRUCTOR = """
EXPORT int {name}({parameters})
{{
    return policy_constructed(P{name}({names}), {last});
}}
"""

TEMPLATES = {"lifecycle": LIFECYCLE, "collective": COLLECTIVE, "constructor": CONSTRUCTOR}


def argument_name(argument: str) -> str:
    """The name in a declaration such as 'const int dims[]'."""
    match = re.search(r"(\w+)(\[\])?$", argument)
    if match is None:
        sys.exit(f"calls.toml: no name in the argument {argument!r}")
    return match.group(1)


def shim(call: dict) -> str:
    """The C text of one entry."""
    name, kind, arguments = call["name"], call["class"], call["arguments"]
    if kind not in TEMPLATES:
        sys.exit(f"calls.toml: {name} has the unknown class {kind!r}")
    names = [argument_name(argument) for argument in arguments]
    if kind == "constructor" and not arguments[-1].startswith("MPI_Comm *"):
        sys.exit(f"calls.toml: the last argument of the constructor {name} is not the new communicator")
    return TEMPLATES[kind].format(
        name=name,
        parameters=", ".join(arguments) or "void",
        names=", ".join(names),
        last=names[-1] if names else "",
        policy="policy_" + name.removeprefix("MPI_").lower(),
    )


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: make_shims.py calls.toml > shims.c")
    with open(sys.argv[1], "rb") as table:
        calls = tomllib.load(table)["call"]
    sys.stdout.write(HEAD + "".join(shim(call) for call in calls))


if __name__ == "__main__":
    main()
