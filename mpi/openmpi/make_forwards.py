#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes forwards.c from Open MPI's header of collectives: one function for each collective, which
counts the call and hands it on.

usage: make_forwards.py coll.h > forwards.c
"""

import re
import sys

HEAD = """\
/* Generated from Open MPI's coll.h by make_forwards.py; do not edit. */
#include "forwards.h"

#include "report.h"
#include "requests.h"
"""

FORWARD = """
static int {name}({parameters})
{{
    struct module *m = (struct module *)module;

    report_operation(COLLECTIVE_{call}, REASON_NOT_TAKEN, 0);
    if (requests_are_ahead(m))
        requests_await_tree(m);
{body}}}
"""

#: What follows where the call waits for others, which is timed, and where it does not.
WAITING = """\
    uint64_t begun = report_clock();
    int result = m->previous.coll_{name}({arguments}, m->previous.coll_{name}_module);
    module_time(m, COLLECTIVE_{call}, DOER_MPI, begun);
    return result;
"""
AT_ONCE = """\
    return m->previous.coll_{name}({arguments}, m->previous.coll_{name}_module);
"""

#: Nothing that a program calls as a collective.
LEFT_OUT = {"reduce_local"}


def parameters_of(header: str) -> dict[str, list[str]]:
    """{function type: its parameters}."""
    found = re.findall(r"typedef\s+int\s+\(\*(mca_coll_base_module_\w+_fn_t)\)\s*\((.*?)\);", header, re.S)
    return {name: [" ".join(one.split()) for one in text.split(",")] for name, text in found}


def fields_of(header: str) -> list[tuple[str, str]]:
    """[(function type, name)] of what a communicator has."""
    body = re.search(r"struct mca_coll_base_comm_coll_t \{(.*?)\n\};", header, re.S)
    if body is None:
        sys.exit("make_forwards.py: coll.h has no struct mca_coll_base_comm_coll_t")
    return re.findall(r"(mca_coll_base_module_\w+_fn_t)\s+coll_(\w+);", body[1])


def waits(name: str) -> bool:
    """Whether it is neither non-blocking nor makes a persistent request."""
    return not name.startswith("i") and not name.endswith("_init")


def forward(name: str, parameters: list[str]) -> str:
    """The C text of one function."""
    names = [re.search(r"(\w+)$", parameter)[1] for parameter in parameters]
    call = "MPI_" + name.capitalize()
    body = (WAITING if waits(name) else AT_ONCE).format(name=name, call=call, arguments=", ".join(names[:-1]))
    return FORWARD.format(name=name, call=call, parameters=", ".join(parameters), body=body)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[-1])
    with open(sys.argv[1]) as file:
        header = file.read()
    types, fields = parameters_of(header), fields_of(header)
    fields = [(kind, name) for kind, name in fields if name not in LEFT_OUT]
    sys.stdout.write(HEAD + "".join(forward(name, types[kind]) for kind, name in fields))
    sys.stdout.write("\n#define INSTALL(name) \\\n    if (module->previous.coll_##name != NULL) { \\\n"
                     "        module->super.coll_##name = name; \\\n"
                     "        OBJ_RETAIN(module->previous.coll_##name##_module); \\\n    }\n"
                     "#define RELEASE(name) \\\n    if (module->previous.coll_##name != NULL) \\\n"
                     "        OBJ_RELEASE(module->previous.coll_##name##_module);\n")
    for function, macro in (("install", "INSTALL"), ("release", "RELEASE")):
        rows = "".join(f"    {macro}({name})\n" for _, name in fields)
        sys.stdout.write(f"\nvoid forwards_{function}(struct module *module)\n{{\n{rows}}}\n")


if __name__ == "__main__":
    main()
