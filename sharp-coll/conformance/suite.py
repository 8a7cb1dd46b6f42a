"""The programs of the suite against one library, and what becomes of each item."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import programs

PROGRAMS = ["library", "own_config", "jobs", "data", "requests", "ending"]
COMPILERS = {"c": ["gcc", "-std=gnu11", "-Wshadow", "-Wenum-conversion"], "c++": ["g++", "-std=gnu++17", "-x", "c++"]}


class Suite:
    def __init__(self, arguments):
        self.library = pathlib.Path(arguments.library).resolve()
        self.include = pathlib.Path(arguments.include).resolve()
        self.verbose = arguments.verbose
        self.under = shlex.split(arguments.under)
        self.flags = shlex.split(arguments.cflags)
        self.only = set(arguments.only.split(",")) if arguments.only else None
        self.patience = programs.patience(self.under, self.flags)
        self.limit_s = programs.limit_s(self.patience)
        self.outcomes = {}
        self.is_quiet = False

    def note(self, item, good, why=""):
        if self.only and item not in self.only:
            return
        known = self.outcomes.setdefault(item, [])
        if not good:
            known.append(why.strip() or "failed")
            self.is_quiet or print(f"FAILED {item}: {why.strip()}", flush=True)
        elif self.verbose:
            print(f"ok     {item} {why}", flush=True)

    def check(self, item, command, **options):
        done = subprocess.run(command, capture_output=True, text=True, **options)
        self.note(item, done.returncode == 0, done.stderr if done.returncode else "")
        return done.stdout

    def build(self, folder):
        """What can be seen without running anything: C01 to C04, C07, C08."""
        includes = {
            "C01": (["sharp/api/sharp_coll.h"], self.include),
            "C02": (["sharp/api/sharp.h"], self.include),
            "C03": (["api/sharp.h", "api/sharp_coll.h"], self.include / "sharp"),
        }
        for item, (headers, path) in includes.items():
            for header in headers:
                source = folder / "header.c"
                source.write_text(f'#include "{header}"\nstruct sharp_coll_reduce_spec spec;\nenum sharp_datatype dtype;\n')
                for compiler in COMPILERS.values():
                    self.check(item, [*compiler, *programs.WARNINGS, "-fsyntax-only", f"-I{path}", str(source)])
        # Configure scripts try a library in this way: one symbol, one -l.
        source = folder / "link.c"
        source.write_text("char sharp_coll_init(void);\nint main(void) { return sharp_coll_init(); }\n")
        self.check("C04", ["gcc", "-fno-builtin", *self.flags, "-o", str(folder / "link"), str(source), f"-L{folder}", "-lsharp_coll"])
        dynamic = self.check("C07", ["readelf", "-d", str(folder / "libsharp_coll.so")])
        self.note("C07", "[libsharp_coll.so.5]" in dynamic, "the soname is not libsharp_coll.so.5")
        symbols = self.check("C08", ["nm", "-D", "--defined-only", str(folder / "libsharp_coll.so")])
        exported = sorted({line.split()[-1].split("@")[0] for line in symbols.splitlines()})
        wanted = (HERE / "exports.txt").read_text().split()
        self.note("C08", exported == wanted, f"exported and wanted differ in {sorted(set(exported) ^ set(wanted))}")

    def compile(self, folder, name, language):
        program = folder / f"{name}.{language.replace('+', 'p')}"
        command = [*COMPILERS[language], "-D_GNU_SOURCE", "-O1", "-g", *programs.WARNINGS, *self.flags, f"-I{self.include}", f"-I{HERE}",
                   "-o", str(program), str(HERE / f"{name}.c"), f"-L{folder}", "-lsharp_coll", "-lpthread", "-ldl"]
        programs.compiled(command)
        return program

    def environment(self, folder, left_out=""):
        """The environment of the programs in `folder`."""
        return {**self.patience, **os.environ, "LD_LIBRARY_PATH": str(folder), "LIBSHARP_COLL": str(folder / "libsharp_coll.so.5"),
                "CONFORMANCE_EXCEPT": left_out}

    def run(self, program, ranks, environment):
        wanted = sorted(self.only & items_of(program.stem)) if self.only else []
        if self.only and not wanted:
            return
        begun, count = time.monotonic(), 0
        command = [*self.under, str(program), str(ranks), *wanted]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=self.limit_s)
        except subprocess.TimeoutExpired as late:
            said = b"".join(filter(None, [late.stdout, late.stderr])).decode()
            sys.exit(f"{program.name} on {ranks} ranks still runs after {self.limit_s} s\n{said}")
        for line in done.stdout.splitlines():
            verdict, item = line.split()
            reasons = [said for said in done.stderr.splitlines() if is_reason(said)] or ["no reason given"]
            why = f"{program.name} on {ranks} ranks" + ("" if verdict == "ok" else f": {reasons[0]}")
            self.note(item, verdict == "ok", why)
            count += verdict == "ok"
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
            sys.exit(f"{program.name} on {ranks} ranks ended with {done.returncode}\n{done.stderr}")
        if done.returncode == 1:
            print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.stdout:
            print(f"{program.name} on {ranks} ranks: {count} of {len(done.stdout.splitlines())} tests passed in "
                  f"{time.monotonic() - begun:.0f} s", flush=True)


def items_of(program):
    """The items that this program of the suite has tests for."""
    return set(re.findall(r'{"(C\d\d)",', (HERE / f"{program}.c").read_text()))


def is_reason(line):
    """Whether a line is one of a program of the suite or of a tool; the library prints lines of
    its own."""
    from_tool = re.match(r"==\d+==", line) or "runtime error:" in line or line.startswith(("WARNING: ThreadSanitizer", "SUMMARY: "))
    return line.startswith(str(HERE)) or "ended by signal" in line or bool(from_tool)
