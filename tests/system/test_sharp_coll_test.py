"""sharp_coll_test, the MPI program that tests and measures a libsharp_coll: it runs under Open
MPI and MPICH, on a local fabric and on hosts of a laboratory. These tests check what it finds
and what it refuses."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from harness import BUILD, ROOT, Fabric, has_cuda
from test_lab import Lab

PROGRAM = BUILD / "sharp-coll" / "sharp_coll_test"
SOURCES = ROOT / "sharp-coll" / "coll_test"
HELPERS = ROOT / "tests" / "sharp_coll"
STAND_IN = ROOT / "tests" / "cuda" / "stand_in.c"
INCLUDE = ROOT / "sharp-coll" / "include"
COLLECTIVES = ["allreduce", "reduce", "barrier", "bcast", "reduce_scatter", "allgather"]
#: How often a broken library may be lucky.
TRIES = 10
LAUNCH = {
    "openmpi": (["mpirun.openmpi", "--oversubscribe", "-np"], "-x"),
    "mpich": (["mpirun.mpich", "-n"], None),
}


def mpirun(ranks, *options, fabric=None, env=None, program=PROGRAM, mpi="openmpi", launcher=(), through=(), timeout=100):
    """The finished process. `launcher` has more arguments for the MPI's launcher; `through` is a
    program that starts ours."""
    words, passes = LAUNCH[mpi]
    variables = {"TRIB_MANAGER": fabric.manager if fabric else "", **(env or {})}
    told = [word for name, value in variables.items() for word in (passes, f"{name}={value}")] if passes else []
    # The library is preloaded into the ranks, not into the launcher.
    own = {name: value for name, value in variables.items() if name != "LD_PRELOAD"}
    mine = {
        **os.environ, **own, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    command = [*words, str(ranks), *launcher, *told, *through, program, *options]
    return subprocess.run(list(map(str, command)), env=mine, capture_output=True, text=True, timeout=timeout)


def alone(words, **env):
    """Runs it without a launcher: a job of one rank."""
    return subprocess.run([PROGRAM, *words], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)


def complaints(done):
    return [line for line in done.stderr.splitlines() if line.startswith("sharp_coll_test: ")]


class OnFabric(unittest.TestCase):
    """Tests that share a fabric."""

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric()
        cls.addClassCleanup(cls.fabric.__exit__)

    def good(self, done):
        self.assertEqual(done.returncode, 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def lines(self, done):
        return [json.loads(line) for line in self.good(done).splitlines()]


class Right(OnFabric):
    def test_every_collective_type_and_operator(self):
        (alone,) = self.lines(mpirun(1, "-m", "basic", "-c", "all", "--json", fabric=self.fabric))
        self.assertEqual(alone["wrong"], 0)
        for ranks in (2, 3):
            done = mpirun(ranks, "-m", "all", "-c", "all", "-s", "8:64", "-i", "5", "-N", "64", "--json", fabric=self.fabric)
            basic, whole, *perf = self.lines(done)
            self.assertEqual((basic["mode"], basic["ranks"], basic["wrong"]), ("basic", ranks, 0))
            # There are 12 types, 4 operators for all of them, 6 for the 8 integer types, and 2 on
            # pairs: that is 120, with two sizes and five reductions.
            self.assertGreaterEqual(basic["results"], ranks * 120 * 2 * 5)
            self.assertEqual((whole["mode"], whole["wrong"]), ("complex", 0))
            self.assertGreater(whole["results"], 5_000 * ranks)
            self.assertEqual(len({line["collective"] for line in perf}), 9)

    def test_sums_that_depend_on_no_order(self):
        """Products of floats depend on it, so `basic`, which tries all operators, is refused them."""
        for sums in ("fixed", "exact"):
            env = {"TRIB_SUMS": sums}
            done = mpirun(3, "-m", "basic", "-c", "allreduce", "-T", "float", fabric=self.fabric, env=env)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"a product of float32 depends on the order of its factors, and this group asks for {sums} sums", done.stderr)
            self.good(mpirun(3, "-m", "perf", "-c", "allreduce,reduce", "-T", "float", "-s", "8:64K", "-i", "5", fabric=self.fabric, env=env))

    def test_groups(self):
        options = ["-c", "allreduce,ireduce,reduce_scatter", "-T", "int", "-s", "64:64", "--json"]
        for kind in ("split-rev:4", "split:ppn-jobs"):
            (basic,) = self.lines(mpirun(4, "-m", "basic", "-t", kind, *options, fabric=self.fabric))
            self.assertEqual((basic["wrong"], basic["results"]), (0, 12 * 4 * 3), kind)
        for parallel, groups, ranks in (("1", {"split:ppn-comm"}, 4), ("0", {f"split:ppn-comm {n}" for n in range(4)}, 1)):
            done = mpirun(4, "-i", "5", "-x", "1", "-t", "split:ppn-comm", *options, fabric=self.fabric,
                          env={"SHARP_RUN_PPN_COMM_PARALLEL": parallel})
            lines = self.lines(done)
            self.assertEqual({line["group"] for line in lines}, groups)
            self.assertEqual({line["ranks"] for line in lines}, {ranks})

    def test_layouts_memory_and_chunks(self):
        for options in (["-D", "iov", "-C", "15", "-c", "all", "-M", "host:host", "-p"], ["-H", "hugethp", "-s", "2M:4M", "-c", "bcast"]):
            self.good(mpirun(2, "-m", "basic", "-T", "half_int", *options, fabric=self.fabric))
        chunks = {"NUM_REDUCE_SCATTER_CHUNKS": "5", "NUM_ALLGATHER_CHUNKS": "4"}
        self.good(mpirun(3, "-m", "all", "-T", "byte", "-i", "5", "-c", "reduce_scatter,allgather", fabric=self.fabric, env=chunks))

    def test_the_mpi_agrees_with_the_reference(self):
        """This uses nothing of ours but the reference. Open MPI's sums of 8-bit integers
        saturate where it uses AVX."""
        done = mpirun(3, "-m", "all", "-c", "all", "-i", "5", "--json", env={"ENABLE_SHARP_COLL": "0"},
                      launcher=["--mca", "op", "^avx"])
        lines = self.lines(done)
        self.assertEqual([line["wrong"] for line in lines[:2]], [0, 0])
        self.assertEqual({line["through"] for line in lines}, {"MPI"})

    def test_memory_of_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            driver = pathlib.Path(folder) / "libcuda.so.1"
            subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-pthread", "-o", driver, STAND_IN], check=True)
            for memory, mode in (("cuda", "complex"), ("host:cuda", "basic")):
                options = ["-m", mode, "-c", "all", "-T", "float", "-s", "8:16", "-i", "5", "-N", "8", "-M", memory]
                self.good(mpirun(2, *options, fabric=self.fabric, env={"LD_LIBRARY_PATH": folder}))
        if not has_cuda():
            done = mpirun(2, "-M", "cuda", fabric=self.fabric)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("-M cuda is not supported here: no CUDA driver", done.stderr)

    def test_sources_as_installed_and_the_other_mpi(self):
        compiler = shutil.which("mpicc.mpich")
        if not compiler or not shutil.which("mpirun.mpich"):
            self.skipTest("MPICH is not installed")
        with tempfile.TemporaryDirectory() as name:
            home = pathlib.Path(name)
            (home / "lib").mkdir()
            shutil.copytree(INCLUDE, home / "include")
            for link in ("libsharp_coll.so", "libsharp_coll.so.5"):
                (home / "lib" / link).symlink_to(BUILD / "libsharp_coll.so")
            words = [f"SHARP_HOME={home}", "CUDA=1", "CUDA_HOME=/usr/local/cuda", f"MPICC={compiler}", f"BUILD={home}", "CFLAGS=-O0"]
            subprocess.run(["make", "-s", "-j2", "-C", SOURCES, *words], check=True, timeout=120)
            done = mpirun(2, "-m", "basic", "-c", "all", fabric=self.fabric, program=home / "sharp_coll_test", mpi="mpich")
            self.good(done)

    def test_hosts_of_a_laboratory(self):
        with Lab("--hosts", "3", "--leaf-ports", "2", "--rate", "2gbit") as lab:
            options = ["-c", "all", "-m", "all", "-s", "8:64", "-T", "float", "-i", "5", "-N", "8", "--json"]
            done = lab.run("mpirun", "-n", "3", "--timeout", "90", "--", str(PROGRAM), *options, timeout=120, check=False)
            lines = self.lines(done)
            self.assertEqual([(line["wrong"], line["ranks"]) for line in lines[:2]], [(0, 3), (0, 3)])


class Settings(OnFabric):
    """Variables of the library whose effect can be seen only with several ranks."""

    def counters(self, mode, through=()):
        """[(whose, {counter: value})] as the library has written them."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "counters"
            env = {"SHARP_COLL_STATS_FILE": str(file), **({"SHARP_COLL_STATS_DUMP_MODE": mode} if mode else {})}
            options = ["-c", "allreduce", "-i", "20", "-x", "0", "-s", "8:8"]
            done = mpirun(3, *options, fabric=self.fabric, env=env, through=through)
            self.good(done)
            pages = file.read_text().split("# libsharp_coll counters of ")[1:] if file.exists() else []
        titled = [page.split("\n", 1) for page in pages]
        return [(whose, {name: int(count) for name, count in map(str.split, lines.splitlines())}) for whose, lines in titled]

    def test_counters_of_each_rank_and_of_all(self):
        each = self.counters("1")
        self.assertEqual(sorted(whose for whose, _ in each), [f"rank {rank} of 3" for rank in range(3)])
        ((whose, total),) = self.counters("2")
        self.assertEqual(whose, "3 ranks, summed")
        for name in ("operations_datagram", "operations_stream", "groups_created", "groups_freed"):
            self.assertEqual(total[name], sum(counters[name] for _, counters in each), name)
        self.assertEqual(total["operations_datagram"], 3 * 20)
        self.assertEqual(set(total), set(each[0][1]))

    def test_rank_0_decides_about_counters(self):
        """The other ranks neither wait for ever nor write."""
        script = '[ "$OMPI_COMM_WORLD_RANK" != 0 ] || export SHARP_COLL_STATS_DUMP_MODE=2; exec "$@"'
        pages = self.counters(None, through=["sh", "-c", script, "sh"])
        self.assertEqual([whose for whose, _ in pages], ["3 ranks, summed"])

    def test_counters_that_cannot_be_written(self):
        for mode in ("2", "many"):
            done = alone(["-c", "barrier", "-i", "1"], TRIB_MANAGER=self.fabric.manager, SHARP_COLL_STATS_DUMP_MODE=mode,
                         SHARP_COLL_STATS_FILE="/nonexistent/counters")
            self.good(done)
            self.assertIn("neither 0, 1 nor 2" if mode == "many" else "counters cannot be written to /nonexistent", done.stderr)

    def test_quota(self):
        env = {"SHARP_COLL_LOG_LEVEL": "3", "SHARP_COLL_OSTS_PER_GROUP": "3", "SHARP_COLL_MAX_PAYLOAD_SIZE": "256",
               "SHARP_COLL_JOB_NUM_TREES": "2", "SHARP_COLL_GROUPS_PER_COMM": "1"}
        done = mpirun(2, "-m", "basic", "-T", "float", "-s", "8:4K", "-j", "0x77", fabric=self.fabric, env=env)
        self.good(done)
        self.assertIn("job 0x77: rank 1 of 2 asks for [of one group 3, bytes of one 256, lanes 2]", done.stderr)
        self.assertRegex(done.stderr, r"job 0x77: \d+ operations by datagram of 256 bytes, 3 of one group")
        refused = alone(["-m", "basic"], TRIB_MANAGER=self.fabric.manager, SHARP_COLL_GROUPS_PER_COMM="9")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("lanes", refused.stderr)

    def test_time_limit_of_joining(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            manager = re.sub(r":\d+\?", f":{silent.getsockname()[1]}?", self.fabric.manager)
            began = time.monotonic()
            done = alone(["-m", "basic"], TRIB_MANAGER=manager, SHARP_COLL_JOB_CREATE_TIMEOUT="300")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertLess(time.monotonic() - began, 20, "the default is 30 s")


class Measured(OnFabric):
    #: The variables with which other projects' tests call it.
    PUBLISHED = {"SHARP_COLL_LOG_LEVEL": "3", "ENABLE_SHARP_COLL": "1", "SHARP_COLL_SAT_THRESHOLD": "32", "SHARP_COLL_ENABLE_SAT": "1"}

    def test_published_lines_give_a_table(self):
        for collective in ("allreduce", "barrier", "iallreduce"):
            options = ["-d", "mlx5_0:1", "--iters", "50", "--skip", "10", "--mode", "perf", "--collectives", collective]
            done = mpirun(2, *options, fabric=self.fabric, env=self.PUBLISHED)
            title, head, *rows = self.good(done).splitlines()
            self.assertTrue(title.startswith(f"# {collective}"), title)
            self.assertEqual(head.split()[0], "bytes")
            figures = [list(map(float, row.split())) for row in rows]
            self.assertEqual([row[0] for row in figures], [0] if collective == "barrier" else [4, 8, 16, 32, 64, 128, 256])
            for size, least, mean, most, rate, _ in figures:
                self.assertTrue(0 < least <= mean <= most, rows)
                self.assertAlmostEqual(rate, size / mean, delta=0.02)

    def test_lines_for_programs(self):
        options = ["-c", "all", "-s", "1K:2K", "-T", "double", "-i", "10", "-B", "-N", "4", "-j", "7", "--json"]
        lines = self.lines(mpirun(2, *options, fabric=self.fabric))
        sizes = {line["collective"]: [] for line in lines}
        for line in lines:
            sizes[line["collective"]].append(line["bytes"])
            self.assertEqual(line["at_once"], 4 if line["collective"].startswith("i") else 1)
        barriers = {"barrier": [0], "ibarrier": [0]}
        self.assertEqual({**sizes, **barriers}, sizes)
        self.assertEqual([sizes[name] for name in sizes if name not in barriers], [[1024, 2048]] * 7)


class Noticed(OnFabric):
    def test_a_broken_library(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.so"
            command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{INCLUDE}", "-o", broken, HELPERS / "broken.c"]
            subprocess.run(command, check=True, timeout=60)
            said = ""
            # A rank that gets no processor for as long as the late one naps sees nothing wrong with
            # a barrier.
            for _ in range(TRIES):
                done = mpirun(2, "-m", "basic", "-c", "all", "-T", "int", fabric=self.fabric, env={"LD_PRELOAD": str(broken)})
                self.assertEqual(done.returncode, 1, done.stdout)
                said += "\n".join(complaints(done))
                if "barrier: left after" in said:
                    break
        for collective in COLLECTIVES:
            self.assertIn(f": {collective}", said)
        self.assertIn("byte 0 (element 0) is 0x", said)
        self.assertIn("barrier: left after", said)
        self.assertNotIn("posted", said, "requests are not broken")

    def test_no_manager(self):
        done = mpirun(2, "-m", "basic")
        self.assertEqual((done.returncode, len(complaints(done))), (3, 1), done.stderr)
        self.assertIn("cannot make a job", done.stderr)

    def test_wrong_usage(self):
        for wrong, why in (
            ("--bogus", "no such option"),
            ("-c allreduce,foo", "no such collective"),
            ("-m quick", "perf or all is wanted"),
            ("-s 8:4", "below the smallest"),
            ("-t split:3", "3 groups of 1 rank"),
            ("-t pairs", "split-rev:N"),
            ("-T quad", "no such datatype"),
            ("-C 16", "from 0 to 15"),
            ("-N 513", "from 1 to 512"),
            ("-r 2", "there is 1 rank"),
            ("-M gpu", "host or cuda"),
            ("-i", "a value is missing"),
            ("more", "no argument is taken"),
        ):
            done = alone(wrong.split())
            self.assertEqual(done.returncode, 2, f"{wrong}: {done.stderr}")
            (said,) = complaints(done)
            self.assertIn(why, said)
        for env, why in (({"NUM_ALLGATHER_CHUNKS": "x"}, "NUM_ALLGATHER_CHUNKS=x"), ({"ENABLE_SHARP_COLL": "2"}, "from 0 to 1")):
            done = alone([], **env)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        done = mpirun(2, "-i", "x")
        self.assertEqual((done.returncode, len(complaints(done))), (2, 1), done.stderr)

    def test_help(self):
        done = mpirun(2, "-h")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("Examples:"), 1, "one rank speaks")
        for word in ("--ib-dev", "--perf_with_barrier", "--host_alloc_type", "ENABLE_SHARP_COLL", "Exit codes"):
            self.assertIn(word, done.stdout)


if __name__ == "__main__":
    unittest.main()
