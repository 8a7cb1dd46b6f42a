"""The programs of the suite against one library, and what becomes of each item."""

import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import programs

PROGRAMS = ["library", "own_config", "jobs", "data", "requests", "ending"]
COMPILERS = {"c": ["gcc", "-std=gnu11", "-Wshadow", "-Wenum-conversion"], "c++": ["g++", "-std=gnu++17", "-x", "c++"]}
#: One program on one number of ranks; each of its tests has a limit of its own. Under a tool everything takes longer.
LIMIT_S, LIMIT_UNDER_S = 600, 3600


class Suite:
    def __init__(self, arguments):
        self.library = pathlib.Path(arguments.library).resolve()
        self.include = pathlib.Path(arguments.include).resolve()
        self.verbose = arguments.verbose
        self.under = shlex.split(arguments.under)
        self.flags = shlex.split(arguments.cflags)
        self.only = set(arguments.only.split(",")) if arguments.only else None
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
        # As configure scripts try a library: one symbol, one -l.
        source = folder / "link.c"
        source.write_text("char sharp_coll_init(void);\nint main(void) { return sharp_coll_init(); }\n")
        self.check("C04", ["gcc", "-fno-builtin", "-o", str(folder / "link"), str(source), f"-L{folder}", "-lsharp_coll"])
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

    def run(self, program, ranks, environment):
        command = [*self.under, str(program), str(ranks), *(sorted(self.only) if self.only and len(self.only) == 1 else [])]
        limit = LIMIT_UNDER_S if self.under else LIMIT_S
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit)
        for line in done.stdout.splitlines():
            verdict, item = line.split()
            reasons = [said for said in done.stderr.splitlines() if is_reason(said)] or ["no reason given"]
            why = f"{program.name} on {ranks} ranks" + ("" if verdict == "ok" else f": {reasons[0]}")
            self.note(item, verdict == "ok", why)
        if done.returncode not in (0, 1):
            sys.exit(f"{program.name} on {ranks} ranks ended with {done.returncode}\n{done.stderr}")


def is_reason(line):
    """What a program of the suite says, or a tool of it; the library has its own lines."""
    from_tool = line.startswith("==") or "runtime error:" in line
    return line.startswith(str(HERE)) or "ended by signal" in line or from_tool
