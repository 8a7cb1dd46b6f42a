#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the thin C functions that stand in front of the MPI's own, from calls.toml.

stubs    in libtrib_mpi.so, which is preloaded: one for every call, under the MPI's name. It knows no
         MPI's types and hands its arguments on as machine words, to a shim or to the MPI. For large
         counts there is also one that serves an MPI which has no such form. For MPICH's module
         mpi_f08 there is one for every call that the module makes past the MPI's C functions.
shims    in libtrib_mpi_ABI.so: one for every call that policy.c decides about. A shim itself decides
         nothing.
pmpi     the functions of the MPI that libtrib_mpi_ABI.so calls, and those that follow it under MPI's own
         names: a tool's, or the MPI's.
counted  what both agree about: the numbers of the collectives, of which those that are only counted
         come first, and a mark of this table.

usage: make_shims.py stubs|shims|pmpi|counted calls.toml > FILE
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
#include "pmpi.h"
#include "policy.h"

#define EXPORT __attribute__((visibility("default")))

struct pmpi pmpi, next;
"""

LIFECYCLE = """
EXPORT int trib_{name}({parameters});
EXPORT int trib_{name}({parameters})
{{
    return {policy}({names});
}}
"""

COLLECTIVE = """
EXPORT int trib_{name}({parameters});
EXPORT int trib_{name}({parameters})
{{
    int result;

    return {policy}(COLLECTIVE_{name}, {names}, &result) ? result : next.{short}({names});
}}
"""

CONSTRUCTOR = """
EXPORT int trib_{name}({parameters});
EXPORT int trib_{name}({parameters})
{{
    return policy_constructed(next.{short}({names}), {last});
}}
"""

TEMPLATES = {"lifecycle": LIFECYCLE, "collective": COLLECTIVE, "constructor": CONSTRUCTOR}

STUBS_HEAD = """\
#include "front.h"

#include "fortran.h"
#include "narrow.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
"""

STUB = """
EXPORT int {name}({parameters});
EXPORT int {name}({parameters})
{{
    return ((int (*)({types}))front_target({index}, __builtin_return_address(0)))({names});
}}
"""

#: Serves a call for large counts where the MPI has the usual form alone.
NARROW = """
static int narrow_{name}({parameters})
{{
    struct narrow narrow = {{.name = "{name}", .comm = {comm}, .root = {root}, .lasts = {lasts}}};
{steps}
    if (narrow.is_refused)
        return narrow_refuse(&narrow);
    int result = ((int (*)({types}))front_next_entry({base}))({names});
    narrow_end(&narrow);
    return result;
}}
"""

#: Fails a call that the MPI lacks in every form, whatever follows the communicator.
ABSENT = """
static int absent_{at}({parameters})
{{
{unused}    return front_absent(a{at});
}}
"""

F08 = """
EXPORT void {name}_f08_({parameters}, int *error);
EXPORT void {name}_f08_({parameters}, int *error)
{{
    static fortran_kept kept;
    int result;

    ((void (*)({types}, int *))fortran_find(&kept, "{name}_f08_", __builtin_return_address(0)))({names}, &result);
    fortran_constructed(result, {last});
    if (error != NULL)
        *error = result;
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


def large(call: dict) -> dict:
    """The form of a collective for large counts."""
    arguments = [re.sub(r"\bint (\w*count|\w*counts\[\])$", r"MPI_Count \1", argument) for argument in call["arguments"]]
    arguments = [argument.replace("int displs[]", "MPI_Aint displs[]") for argument in arguments]
    return {**call, "name": call["name"] + "_c", "arguments": arguments}


def has_arrays(call: dict) -> bool:
    """Whether there is a count for each rank."""
    return any(argument.endswith("counts[]") for argument in call["arguments"])


def is_taken_large(call: dict) -> bool:
    """Whether a call has a form for large counts that policy.c decides about: every collective but the barrier."""
    return call["class"] == "collective" and large(call)["arguments"] != call["arguments"]


def with_large(calls: list[dict]) -> list[dict]:
    """All calls, and the collectives' forms for large counts."""
    return calls + [large(call) for call in calls if is_taken_large(call)]


def signature(call: dict) -> str:
    """The arguments of a collective in the letters of [counted], and L for one count for each rank of the own group."""
    letters = {"int root": "r", "MPI_Comm comm": "c", "const int displs[]": "D"}
    letters["const int recvcounts[]"] = "L" if call["name"] == "MPI_Reduce_scatter" else "N"
    return "".join("n" if argument.endswith("count") else letters.get(argument, ".") for argument in call["arguments"])


def shim(call: dict) -> str:
    """The C text of one entry."""
    name, kind, arguments = call["name"], call["class"], call["arguments"]
    if kind not in TEMPLATES:
        sys.exit(f"calls.toml: {name} has the unknown class {kind!r}")
    names = [argument_name(argument) for argument in arguments]
    if kind == "constructor" and not arguments[-1].startswith("MPI_Comm *"):
        sys.exit(f"calls.toml: the last argument of the constructor {name} is not the new communicator")
    policy = "policy_" + name.removeprefix("MPI_").lower()
    return TEMPLATES[kind].format(
        name=name,
        short=name.removeprefix("MPI_"),
        parameters=", ".join(arguments) or "void",
        names=", ".join(names),
        last=names[-1] if names else "",
        policy=policy if has_arrays(call) else policy.removesuffix("_c"),
    )


def forms(name: str) -> dict[str, tuple[int, int]]:
    """{each form of a collective but that for large counts: (its further arguments, the MPI version that has it)}."""
    return {name: (0, 3), non_blocking(name): (1, 3), f"{name}_init": (2, 4)}


def signatures(table: dict) -> dict[str, str]:
    """{each blocking collective: its arguments in letters}."""
    return {call["name"]: signature(call) for call in table["call"] if call["class"] == "collective"} | table["counted"]


def communicators(table: dict) -> dict[str, int]:
    """{each call that may be absent: which of its arguments is the communicator}. Every MPI has MPI_Init and the like."""
    found = {call["name"]: 0 for call in table["call"] if call["class"] == "constructor"}
    for name, letters in signatures(table).items():
        for form in forms(name):
            found[form] = found[f"{form}_c"] = letters.index("c")
    return found


def counted(table: dict) -> dict[str, tuple[int, int]]:
    """{name: (arguments, the MPI version that has it)} of everything that is only counted."""
    taken = {call["name"] for call in with_large(table["call"])}
    found = {}
    for name, letters in {**table["counted"], **signatures(table)}.items():
        for form, (further, since) in forms(name).items():
            found[form] = (len(letters) + further, since)
            if name != "MPI_Barrier":
                found[f"{form}_c"] = (len(letters) + further, 4)
    return {name: about for name, about in found.items() if name not in taken}


def arity_check(only_counted: dict[str, tuple[int, int]]) -> str:
    """Compiles only if each counted call has as many arguments as this MPI's header says; a literal 0 fits every type."""
    lines = ["", "/* Never called: the compiler counts the arguments. Our header for the standard's ABI has no such calls. */"]
    lines += ["#ifndef MPI_H_ABI", "extern int counted_arguments_fit(void);", "", "int counted_arguments_fit(void)", "{", "    return 0"]
    for since in (3, 4):
        lines += [f"#if MPI_VERSION >= {since}"]
        for name, (arity, version) in only_counted.items():
            if version == since:
                lines.append(f"        + (int)sizeof(P{name}({', '.join(['0'] * arity)}))")
        lines += ["#endif"]
    return "\n".join([*lines, "        ;", "}", "#endif", ""])


def words(arity: int) -> dict[str, str]:
    names = [f"a{number}" for number in range(arity)]
    return {
        "names": ", ".join(names), "parameters": ", ".join(f"word {one}" for one in names) or "void",
        "types": ", ".join("word" for _ in names) or "void",
    }


def narrow(name: str, base: int, letters: str, arity: int, lasts: bool) -> str:
    """The C text of the function that serves a call for large counts by the usual form, whose number is base."""
    steps, neighbours = [], name.lower().startswith(("mpi_neighbor", "mpi_ineighbor"))
    for at, letter in enumerate(letters):
        if letter == "n":
            steps.append(f"    narrow_count(&narrow, a{at});")
        elif letter in "NDL":
            whose = "OWN_GROUP" if letter == "L" else "PEERS" if not neighbours else "DESTINATIONS" if at < 4 else "SOURCES"
            # In place, MPI does not read arrays for sending beside those for receiving.
            unless = "if (!narrow_is_in_place(a0))\n        " if letters.count("N") == 2 and at < 4 and not neighbours else ""
            steps.append(f"    {unless}a{at} = narrow_array(&narrow, a{at}, {whose});")
    root = f"&a{letters.index('r')}" if "r" in letters else "NULL"
    return NARROW.format(
        name=name, comm=f"a{letters.index('c')}", root=root, lasts="true" if lasts else "false", steps="\n".join(steps),
        base=base, **words(arity),
    )


def absent(at: int) -> str:
    """The C text of the function that fails a call whose communicator is argument number `at`."""
    unused = "".join(f"    (void)a{number};\n" for number in range(at))
    return ABSENT.format(at=at, unused=unused, parameters=words(at + 1)["parameters"])


def f08(call: dict) -> str:
    """The C text of a constructor of mpi_f08, all of whose arguments are addresses."""
    names = [argument_name(argument) for argument in call["arguments"]]
    parameters = [f"{'int' if name == names[-1] else 'void'} *{name}" for name in names]
    return F08.format(
        name=call["name"].lower(), parameters=", ".join(parameters), names=", ".join(names), last=names[-1],
        types=", ".join("void *" for _ in names),
    )


def write_stubs(table: dict, only_counted: dict[str, tuple[int, int]]) -> None:
    """Counted calls first, so that the number of one is its position in the report."""
    arities = {name: arity for name, (arity, _) in only_counted.items()}
    arities |= {call["name"]: len(call["arguments"]) for call in with_large(table["call"])}
    numbers = {name: index for index, name in enumerate(arities)}
    sys.stdout.write(STUBS_HEAD)
    for name, index in numbers.items():
        sys.stdout.write(STUB.format(name=name, index=index, **words(arities[name])))
    narrowed = []
    for name, letters in signatures(table).items():
        for form in forms(name):
            if f"{form}_c" in arities:
                narrowed.append(f"{form}_c")
                sys.stdout.write(narrow(f"{form}_c", numbers[form], letters, arities[form], form != name))
    for call in table["call"]:
        if call["class"] == "constructor":
            sys.stdout.write(f08(call))
    places = communicators(table)
    sys.stdout.write("".join(absent(at) for at in sorted(set(places.values()))))
    rows = ""
    for name in arities:
        entries = [f"narrow_{name}" if name in narrowed else "", f"absent_{places[name]}" if name in places else ""]
        rows += f'    {{"{name}", {", ".join(f"(front_entry){entry}" if entry else "NULL" for entry in entries)}}},\n'
    sys.stdout.write(f"\nconst struct front_call front_table[] = {{\n{rows}}};\n")
    sys.stdout.write(f"const unsigned front_calls = {len(arities)};\n_Static_assert(FRONT_CALLS_MAX >= {len(arities)}, \"\");\n")


def write_pmpi(table: dict) -> None:
    calls = with_large(table["call"])
    spelled = {call["name"].removeprefix("MPI_"): ", ".join(call["arguments"]) for call in calls if call["name"].endswith("_c")}
    named = sorted({*table["asked"], *(call["name"].removeprefix("MPI_") for call in calls)} - set(spelled))
    sys.stdout.write('#ifndef TRIB_MPI_PMPI_H\n#define TRIB_MPI_PMPI_H\n\n#include <mpi.h>\n\nstruct pmpi {\n')
    sys.stdout.write("".join(f"    __typeof__(PMPI_{name}) *{name};\n" for name in named))
    sys.stdout.write("".join(f"    int (*{name})({arguments});\n" for name, arguments in spelled.items()))
    sys.stdout.write("};\n\nextern struct pmpi pmpi, next;\n\n")
    every = [*named, *spelled]
    sys.stdout.write("#define PMPI_FUNCTIONS(X) \\\n" + " \\\n".join(f"    X({name})" for name in every) + "\n\n")
    taken = [call["name"].removeprefix("MPI_") for call in calls]
    sys.stdout.write("#define NEXT_FUNCTIONS(X) \\\n" + " \\\n".join(f"    X({name})" for name in taken) + "\n\n")
    sys.stdout.write("".join(f"#define PMPI_{name} (*pmpi.{name})\n" for name in every) + "\n#endif\n")


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in ("stubs", "shims", "pmpi", "counted"):
        sys.exit(__doc__.splitlines()[-1])
    with open(sys.argv[2], "rb") as file:
        text = file.read()
    table = tomllib.loads(text.decode())
    only_counted = counted(table)
    sys.stdout.write(GENERATED)
    if sys.argv[1] == "stubs":
        write_stubs(table, only_counted)
    elif sys.argv[1] == "shims":
        calls = with_large(table["call"])
        sys.stdout.write(SHIMS_HEAD + "".join(shim(call) for call in calls) + arity_check(only_counted))
    elif sys.argv[1] == "pmpi":
        write_pmpi(table)
    else:
        taken = [call["name"] for call in with_large(table["call"]) if call["class"] == "collective"]
        rows = " \\\n".join(f"    X({name})" for name in [*only_counted, *taken])
        numbers = {name: index for index, name in enumerate([*only_counted, *(call["name"] for call in with_large(table["call"]))])}
        lifecycle = "".join(
            f"#define FRONT_{call['name']} {numbers[call['name']]}\n"
            for call in table["call"] if call["class"] == "lifecycle" or call["name"] == "MPI_Barrier"
        )
        sys.stdout.write(f'#define COUNTED_MARK "{hashlib.sha256(text).hexdigest()[:16]}"\n{lifecycle}')
        sys.stdout.write(f"#define COUNTED_CALLS {len(only_counted)}\n#define ALL_COLLECTIVES(X) \\\n{rows}\n")


if __name__ == "__main__":
    main()
