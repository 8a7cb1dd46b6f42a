# SPDX-License-Identifier: Apache-2.0
"""What the package says of `libtributary.so` is what its header says."""

import ctypes
import pathlib
import re
import subprocess
import tempfile
import unittest

from tributary import _native, datatypes, errors

HEADER = pathlib.Path(__file__).resolve().parents[2] / "capi" / "include" / "tributary.h"
TEXT = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)


def prototype(name):
    """What the header gives a function: (result, [arguments])."""
    found = re.search(rf"^([\w ]+\*?)\s*\b{name}\(([^)]*)\);", TEXT, re.M)
    return found and (kind_of(found[1]), [kind_of(each) for each in found[2].split(",") if each.strip() != "void"])


def kind_of(declaration):
    """The ctypes type that an argument of the header has, pointers to handles and arrays apart."""
    words = declaration.replace("const", " ").strip()
    if "char *" in words:
        return ctypes.c_char_p
    if "*" in words:
        return "pointer"
    known = {"int": ctypes.c_int, "float": ctypes.c_float, "enum": ctypes.c_int, "size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64}
    return known[words.split()[0]]


def seen(kind):
    return "pointer" if kind is ctypes.c_void_p or hasattr(kind, "contents") else kind


class Header(unittest.TestCase):
    def test_prototypes_are_the_headers(self):
        for name, (result, arguments) in _native.PROTOTYPES.items():
            self.assertEqual(prototype(name), (seen(result), [seen(kind) for kind in arguments]), name)

    def test_codes_are_the_headers(self):
        enums = {name: int(number) for name, number in re.findall(r"\bTRIB_(\w+) = (-?\d+)", TEXT)}
        for dtype in datatypes.DATATYPES.values():
            if dtype.values == 1 and dtype.name != "bool":
                self.assertEqual(dtype.code, enums[dtype.name.upper()], dtype.name)
        for name, code in datatypes.OPERATORS.items():
            self.assertEqual(code, enums[name.upper()], name)
        statuses = {number for name, number in enums.items() if name.startswith("ERR_")}
        self.assertEqual(set(errors.BY_STATUS), statuses)

    def test_layouts_are_the_headers(self):
        structs = {"trib_params": _native.Params, "trib_oob": _native.OutOfBand, "trib_counters": _native.Counters,
                   "trib_range": _native.Range, "trib_prediction": _native.Prediction}  # fmt: skip
        lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in structs]
        for name, struct in structs.items():
            members = {"start": "from", "end": "to"} if name == "trib_range" else {}
            for field, *_ in struct._fields_:
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {members.get(field, field)}));')
        source = "#include <stdio.h>\n#include <stddef.h>\n#include <tributary.h>\nint main(void) {" + "\n".join(lines) + "}"
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "layouts"
            command = ["gcc", "-x", "c", "-", f"-I{HEADER.parent}", "-o", program]
            subprocess.run(command, input=source, text=True, check=True)
            told = dict(line.split() for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())
        for name, struct in structs.items():
            self.assertEqual(int(told[name]), ctypes.sizeof(struct), name)
            for field, *_ in struct._fields_:
                self.assertEqual(int(told[f"{name}.{field}"]), getattr(struct, field).offset, f"{name}.{field}")


if __name__ == "__main__":
    unittest.main()
