#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes forwards.c from Open MPI's header of collectives: one function for each collective, which
counts the call and hands it on: at once, or, where the MPI may not begin it yet, as a request.

usage: make_forwards.py coll.h > forwards.c
"""

import re
import sys

HEAD = """\
/* Generated from Open MPI's coll.h by make_forwards.py; do not edit. */
#include "forwards.h"

#include "deferred.h"
#include "report.h"
#include "requests.h"
"""

#: A call that may wait for others: it waits for the tree, too. Where it does wait it is timed.
FORWARD = """
static int {name}({parameters})
{{
    struct module *m = (struct module *)module;

    report_operation(COLLECTIVE_{call}, REASON_NOT_TAKEN, 0);
    if (requests_are_ahead(m))
        requests_await_tree(m);
{body}}}
"""
WAITING = """\
    uint64_t begun = report_clock();
    int result = m->previous.coll_{name}({arguments}, m->previous.coll_{name}_module);
    module_time(m, COLLECTIVE_{call}, DOER_MPI, begun);
    return result;
"""
PERSISTENT = """\
    return m->previous.coll_{name}({arguments}, m->previous.coll_{name}_module);
"""

#: A call that waits for nobody.
NON_BLOCKING = """
struct {name} {{
    struct deferred super;
{fields}}};

static int begin_{name}(struct module *m, const struct deferred *deferred, ompi_request_t **request)
{{
    const struct {name} *c = (const struct {name} *)deferred;

    return m->previous.coll_{name}({kept}, request, m->previous.coll_{name}_module);
}}

static int {name}({parameters})
{{
    struct module *m = (struct module *)module;

    report_operation(COLLECTIVE_{call}, REASON_NOT_TAKEN, 0);
    if (!requests_are_ahead(m))
        return m->previous.coll_{name}({arguments}, m->previous.coll_{name}_module);
    struct {name} *c = (struct {name} *)deferred_new(sizeof *c, COLLECTIVE_{call}, begin_{name});
{body}    return requests_defer(m, &c->super, request);
}}
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


def is_persistent(name: str) -> bool:
    return name.endswith("_init")


def is_non_blocking(name: str) -> bool:
    return name.startswith("i") and not is_persistent(name)


def name_of(parameter: str) -> str:
    return re.search(r"(\w+)$", parameter)[1]


def lengths(name: str, names: list[str]) -> str:
    """The C text that says how long arrays of a call are."""
    if name.startswith("ineighbor_"):
        return "lengths_of_neighbours(comm)"
    if "root" in names:
        return "lengths_at_root(comm, root)"
    return "lengths_of_all(comm, sbuf)"


def keeping(name: str, kept: list[str]) -> str:
    """The C text that keeps the arguments of a call. Arrays say in their names whether they are of what is sent or received,
    or else are of the same as the one before."""
    text, side, has_arrays = "", "", False
    for parameter in kept:
        argument = name_of(parameter)
        if "*" not in parameter or re.search(r"(void|struct \w+) ?\* ?\w+$", parameter):
            text += f"    c->{argument} = {argument};\n"
            continue
        has_arrays = True
        side = {"s": "sent", "r": "received"}.get(argument[0], side)
        text += f"    c->{argument} = deferred_copy(&c->super, {argument}, lengths.{side} * sizeof *{argument});\n"
    names = [name_of(parameter) for parameter in kept]
    return (f"    struct lengths lengths = {lengths(name, names)};\n" if has_arrays else "") + text


def non_blocking(name: str, call: str, parameters: list[str]) -> str:
    """The C text of one function that waits for nobody."""
    names = [name_of(parameter) for parameter in parameters]
    if names[-3:] != ["comm", "request", "module"]:
        sys.exit(f"make_forwards.py: {name} has other parameters than are known here: {', '.join(names)}")
    kept = parameters[:-2]
    return NON_BLOCKING.format(
        name=name, call=call, parameters=", ".join(parameters), arguments=", ".join(names[:-1]), body=keeping(name, kept),
        fields="".join(f"    {parameter};\n" for parameter in kept), kept=", ".join(f"c->{one}" for one in names[:-2]))


def forward(name: str, parameters: list[str]) -> str:
    """The C text of one function."""
    call = "MPI_" + name.capitalize()
    if is_non_blocking(name):
        return non_blocking(name, call, parameters)
    arguments = ", ".join(name_of(parameter) for parameter in parameters[:-1])
    body = (PERSISTENT if is_persistent(name) else WAITING).format(name=name, call=call, arguments=arguments)
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
