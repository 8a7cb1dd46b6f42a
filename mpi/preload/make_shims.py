#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the thin C functions that stand in front of the MPI's own, from calls.toml.

stubs    in libtrib_mpi.so, which is preloaded: one for every call, under the MPI's name. It knows no
         MPI's types and hands its arguments on as machine words, to a shim or to the MPI.
shims    in libtrib_mpi_FAMILY.so: one for every call that policy.c decides about. A shim itself
         decides nothing.
counted  what both agree about: the numbers of the collectives, of which those that are only counted
         come first, and a mark of this table.

usage: make_shims.py stubs|shims|counted calls.toml > FILE
"""

import hashlib
import re
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    try:
        import tomli as tomllib
    except ModuleNotFoundError:
        sys.exit("make_shims.py needs Python 3.11 or newer, or the package tomli (Debian and Ubuntu: python3-tomli)")

GENERATED = "/* Generated from calls.toml by make_shims.py; do not edit. */\n"

SHIMS_HEAD = """\
#include "policy.h"

#define EXPORT __attribute__((visibility("default")))
"""

LIFECYCLE = """
EXPORT int trib_{name}({parameters})
{{
    return {policy}({names});
}}
"""

COLLECTIVE = """
EXPORT int trib_{name}({parameters})
{{
    int result;

    return {policy}({names}, &result) ? result : P{name}({names});
}}
"""

CONSTRUCTOR = """
EXPORT int trib_{name}({parameters})
{{
    return policy_constructed(P{name}({names}), {last});
}}
"""

TEMPLATES = {"lifecycle": LIFECYCLE, "collective": COLLECTIVE, "constructor": CONSTRUCTOR}

STUBS_HEAD = """\
#include "front.h"

#define EXPORT __attribute__((visibility("default")))
"""

STUB = """
EXPORT int {name}({parameters})
{{
    return ((int (*)({types}))front_target({index}, __builtin_return_address(0)))({names});
}}
"""


def argument_name(argument: str) -> str:
    """The name in a declaration such as 'const int dims[]'."""
    match = re.search(r"(\w+)(\[\])?$", argument)
    if match is None:
        sys.exit(f"calls.toml: no name in the argument {argument!r}")
    return match.group(1)


def non_blocking(name: str) -> str:
    """MPI_Ibcast of MPI_Bcast."""
    return "MPI_I" + name.removeprefix("MPI_").lower()


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


def counted(table: dict) -> dict[str, tuple[int, int]]:
    """{name: (arguments, the MPI version that has it)} of everything that is only counted."""
    taken = {call["name"]: len(call["arguments"]) for call in table["call"] if call["class"] == "collective"}
    found = {name: (arity, 3) for name, arity in table["counted"].items()}
    for name, arity in {**taken, **table["counted"]}.items():
        forms = {name: (arity, 3), non_blocking(name): (arity + 1, 3), f"{name}_init": (arity + 2, 4)}
        found |= {form: about for form, about in forms.items() if form not in taken}
        if name != "MPI_Barrier":
            found |= {f"{form}_c": (arity, 4) for form, (arity, _) in forms.items()}
    return found


def arity_check(only_counted: dict[str, tuple[int, int]]) -> str:
    """Compiles only if each counted call has as many arguments as this MPI's header says; a literal 0 fits every type."""
    lines = ["", "/* Never called: the compiler counts the arguments. */", "extern int counted_arguments_fit(void);", ""]
    lines += ["int counted_arguments_fit(void)", "{", "    return 0"]
    for since in (3, 4):
        lines += [f"#if MPI_VERSION >= {since}"]
        for name, (arity, version) in only_counted.items():
            if version == since:
                lines.append(f"        + (int)sizeof(P{name}({', '.join(['0'] * arity)}))")
        lines += ["#endif"]
    return "\n".join([*lines, "        ;", "}", ""])


def stub(index: int, name: str, arity: int) -> str:
    """The C text of the function that programs call."""
    names = [f"a{number}" for number in range(arity)]
    return STUB.format(
        name=name, index=index, names=", ".join(names), parameters=", ".join(f"word {one}" for one in names) or "void",
        types=", ".join("word" for _ in names) or "void",
    )


def write_stubs(table: dict, only_counted: dict[str, tuple[int, int]]) -> None:
    """Counted calls first, so that the number of one is its position in the report."""
    arities = {name: arity for name, (arity, _) in only_counted.items()}
    arities |= {call["name"]: len(call["arguments"]) for call in table["call"]}
    sys.stdout.write(STUBS_HEAD)
    for index, (name, arity) in enumerate(arities.items()):
        sys.stdout.write(stub(index, name, arity))
    rows = "".join(f'    "{name}",\n' for name in arities)
    sys.stdout.write(f"\nconst char *const front_names[] = {{\n{rows}}};\n")
    sys.stdout.write(f"const unsigned front_calls = {len(arities)};\n_Static_assert(FRONT_CALLS_MAX >= {len(arities)}, \"\");\n")


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in ("stubs", "shims", "counted"):
        sys.exit(__doc__.splitlines()[-1])
    with open(sys.argv[2], "rb") as file:
        text = file.read()
    table = tomllib.loads(text.decode())
    only_counted = counted(table)
    sys.stdout.write(GENERATED)
    if sys.argv[1] == "stubs":
        write_stubs(table, only_counted)
    elif sys.argv[1] == "shims":
        sys.stdout.write(SHIMS_HEAD + "".join(shim(call) for call in table["call"]) + arity_check(only_counted))
    else:
        taken = [call["name"] for call in table["call"] if call["class"] == "collective"]
        rows = " \\\n".join(f"    X({name})" for name in [*only_counted, *taken])
        sys.stdout.write(f'#define COUNTED_MARK "{hashlib.sha256(text).hexdigest()[:16]}"\n')
        sys.stdout.write(f"#define COUNTED_CALLS {len(only_counted)}\n#define ALL_COLLECTIVES(X) \\\n{rows}\n")


if __name__ == "__main__":
    main()
