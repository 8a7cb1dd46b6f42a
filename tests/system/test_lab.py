"""Fat trees of namespaces: ranks on their hosts, wire bytes, broken links and processes, programs
of both MPIs."""

import json
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time
import unittest

from carried import ONCE, least_carried
from harness import HERE, PYTHON, TRIB, Ranks, RanksOnHosts, wait_until
from test_random_collectives import expected


class Lab:
    """`trib lab up`, taken down whatever happens."""

    count = 0

    def __init__(self, *options, cwd=None):
        Lab.count += 1
        self.cwd = cwd
        # A run that was killed leaves its labs, and process numbers come back.
        self.name = f"test-lab-{os.getpid()}-{secrets.token_hex(3)}-{Lab.count}"
        self.options = options

    def __enter__(self):
        command = [TRIB, "lab", "up", "--name", self.name, *self.options]
        done = subprocess.run(command, env={**os.environ, "TRIB_LOG": "warn"}, capture_output=True, text=True, timeout=60,
                              cwd=self.cwd)
        if done.returncode == 3 and "cannot be built here" in done.stderr:
            raise unittest.SkipTest(done.stderr)
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(self, *_):
        subprocess.run([TRIB, "lab", "down", "--name", self.name], check=True, capture_output=True, timeout=60)

    def run(self, action, *words, check=True, timeout=60, env=None):
        return subprocess.run(
            [TRIB, "lab", *action.split(), "--name", self.name, *words],
            check=check, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})},
        )

    def fault(self, kind, *words):
        self.run(f"fault {kind}", *words)

    def status(self):
        return json.loads(self.run("status", "--json").stdout)

    def running(self):
        return {daemon["name"] for daemon in self.status()["daemons"] if daemon["state"] == "running"}

    def manager_status(self):
        """What its manager says."""
        done = subprocess.run([TRIB, "status", "--json"], env={**os.environ, "TRIB_LAB": self.name, "TRIB_MANAGER": self.status()["manager"]},
                              capture_output=True, text=True, timeout=30, check=True)
        return json.loads(done.stdout)

    def counters(self):
        """{(link, direction): (bytes on the wire, packets)}."""
        links = json.loads(self.run("counters", "--json").stdout)["links"]
        return {(link["link"], link["direction"]): (link["wire_bytes"], link["packets"]) for link in links}

    def carried(self, ranks, size, quota=None, meanwhile=lambda: None):
        """The least that one allreduce with a rank on each host puts on every link, in the form of
        `counters`. Calls `meanwhile` before it."""
        argument = {"bytes": size, "sum": sum(range(ranks))}
        return least_carried(self.name, self.counters, ranks, "allreduce", argument, quota, meanwhile)


class FromOutside(unittest.TestCase):
    def test_a_shell_that_evaluated_what_up_printed_asks_the_manager(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            printed = subprocess.run([TRIB, "lab", "up", "--name", lab.name, *lab.options],
                                     env={**os.environ, "TRIB_LOG": "warn"}, capture_output=True, text=True, timeout=60, check=True)
            script = printed.stdout + """
                "$0" status && "$0" jobs --all && "$0" doctor && "$0" status --json | /usr/bin/python3 -m json.tool > /dev/null
                "$0" explain 4000; echo "explain $?"
            """
            shell = ["bash", "-o", "pipefail", "-c", script, str(TRIB)]
            done = subprocess.run(shell, capture_output=True, text=True, timeout=120, cwd="/")
            for word in (f"Fabric {lab.name}", "leaf0", "Nothing stands in the way of a job", "explain 1"):
                self.assertIn(word, done.stdout, done.stderr)
            self.assertIn("knows no job 4000", done.stderr)
            self.assertEqual([line for line in done.stderr.splitlines() if not line.startswith("trib: ")], [])
            # Once it is down, the shell's environment speaks of nothing any more.
            lab.__exit__()
            done = subprocess.run(["bash", "-c", f'{printed.stdout}\n"$0" status', str(TRIB)],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 3)
            self.assertIn(f'no laboratory "{lab.name}" is running', done.stderr)


class Shapes(unittest.TestCase):
    def loop(self, lab, ranks):
        argument = {"counts": [3, 700, 60_000], "iterations": 10}
        with RanksOnHosts(lab.name, ranks, "loop_worker", "loop", argument) as running:
            results = running.results(60)
        self.assertEqual({result["iterations"] for result in results}, {10})
        self.assertEqual(len({result["digest"] for result in results}), 1)

    def test_two_levels_and_what_the_links_carry(self):
        size = 4 << 20
        with Lab("--hosts", "8", "--leaf-ports", "4", "--rate", "2gbit") as lab:
            self.loop(lab, 8)
            for link, (count, packets) in lab.carried(8, size).items():
                # Every link, trunks included, carries the vector once each way, plus headers. What
                # these cost, test_cost.py measures with nothing beside it.
                self.assertGreater(count, size, link)
                self.assertLess(count, ONCE * size, link)
                self.assertGreater(packets, size / 9000, f"{link}: packets of the mtu's size")

    def test_several_ranks_on_each_host_are_members_like_any_others(self):
        argument = {"seed": 9, "number": 80, "most": 1 << 13, "shuffled": True, "shuffle_seed": 4}
        # There are two hosts on each leaf and two ranks on each host.
        wanted = expected(9, 80, 1 << 13, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit") as lab:
            with RanksOnHosts(lab.name, 8, "random_worker", "run", argument, per_host=2) as ranks:
                results = ranks.results(90)
        for rank, (result, want) in enumerate(zip(results, wanted)):
            self.assertEqual(result["digests"], want, f"rank {rank}")

    def test_three_levels_with_blocking_trunks(self):
        with Lab("--hosts", "8", "--leaf-ports", "2", "--levels", "3", "--uplink", "1", "--rate", "1gbit") as lab:
            self.loop(lab, 8)
            names = {daemon["name"] for daemon in lab.status()["daemons"]}
            self.assertEqual(names, {"manager", "spine", "pod0", "pod1", "leaf0", "leaf1", "leaf2", "leaf3"})

    def test_pinned_places_keep_to_their_cores_for_whatever_runs_in_them(self):
        mine = sorted(os.sched_getaffinity(0))
        with Lab("--hosts", "4", "--leaf-ports", "2", "--pin") as lab:
            def cores(place):
                answer = lab.run("exec", place, "--", PYTHON, "-c", "import os; print(*os.sched_getaffinity(0))")
                return [int(core) for core in answer.stdout.split()]
            homes = {place: cores(place) for place in ("spine", "leaf0", "leaf1", "h0", "h1", "h2", "h3")}
            for daemon in lab.status()["daemons"]:
                place = "spine" if daemon["name"] == "manager" else daemon["name"]
                self.assertEqual(sorted(os.sched_getaffinity(daemon["pid"])), homes[place], daemon)
        self.assertEqual({len(home) for home in homes.values()}, {1}, homes)
        self.assertLessEqual({home[0] for home in homes.values()}, set(mine))
        if len(mine) < len(homes):
            self.assertEqual(homes["leaf1"], homes["h2"])
            self.assertEqual(homes["h0"] != homes["h3"], len(mine) > 1)

    def test_a_laboratory_of_another_shape_is_not_passed_off_as_the_one_asked_for(self):
        with Lab("--hosts", "2") as lab:
            again = [TRIB, "lab", "up", "--name", lab.name]
            self.assertEqual(subprocess.run([*again, "--hosts", "2"], capture_output=True).returncode, 0)
            other = subprocess.run([*again, "--hosts", "3"], capture_output=True, text=True)
            self.assertEqual(other.returncode, 1)
            self.assertIn("already running", other.stderr)


class HostsApart(unittest.TestCase):
    """Memory that two hosts shared would be a way around their links."""

    SEGMENT = """
import ctypes, sys
print(ctypes.CDLL(None).shmget(0x7472, 4096, int(sys.argv[1], 8)) >= 0)
"""

    def sees(self, lab, host, path):
        return lab.run("exec", host, "--", "test", "-e", path, check=False).returncode == 0

    def test_files_in_memory_and_in_tmp_are_the_own_ones_of_a_host(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            for folder in ("/dev/shm", "/tmp"):
                path = f"{folder}/{lab.name}"
                lab.run("exec", "h1", "--", "touch", path)
                self.assertTrue(self.sees(lab, "h1", path), "another process of the same host")
                self.assertFalse(self.sees(lab, "h0", path), path)
                self.assertFalse(self.sees(lab, "leaf0", path), path)
                self.assertFalse(os.path.exists(path), path)

    def test_a_segment_of_system_v_is_the_own_one_of_a_host(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            def segment(host, mode):
                return lab.run("exec", host, "--", PYTHON, "-c", self.SEGMENT, mode).stdout.strip() == "True"
            create = "1600"
            self.assertTrue(segment("h1", create))
            self.assertTrue(segment("h1", "600"), "another process of the same host")
            self.assertFalse(segment("h0", "600"))

    def test_processes_of_a_host_are_in_reach_of_that_host_alone(self):
        reach = [PYTHON, str(HERE / "reach.py")]
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            command = [TRIB, "lab", "exec", "--name", lab.name, "h1", "--", *reach, "hold"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holds:
                where = holds.stdout.readline().split()
                ways = {place: lab.run("exec", place, "--", *reach, "look", *where).stdout.split() for place in ("h1", "h0", "leaf0")}
                holds.stdin.close()
        self.assertEqual(ways, {"h1": ["memory", "file", "process"], "h0": [], "leaf0": []})

    def test_ranks_of_two_hosts_share_no_memory_even_if_they_say_that_they_are_on_one(self):
        count, turns = 100_000, 10
        argument = {"counts": [count], "iterations": turns}
        on_a_host = ["sh", "-c", 'exec "$0" lab exec h$TRIB_RANK -- env TRIB_HOST=h0 "$@"', str(TRIB)]
        with Lab("--hosts", "2", "--leaf-ports", "2", "--rate", "2gbit") as lab:
            before = lab.counters()
            with Ranks(None, 2, "loop_worker", "loop", argument, through=on_a_host, env={"TRIB_LAB": lab.name}) as ranks:
                results = ranks.results(60)
            after = lab.counters()
        for result in results:
            self.assertEqual(result["counters"]["operations_board"], 0)
            self.assertEqual(result["iterations"], turns)
        for link, way in (("h1", "up"), ("h1", "down")):
            self.assertGreater(after[link, way][0] - before[link, way][0], turns * 8 * count, "the vectors went over the link")

    def test_a_program_on_a_host_starts_others_on_other_hosts(self):
        """As the launcher of an MPI does."""
        script = """
            code() { "$0" lab exec "$@" || echo $?; }
            code h1 -- hostname; code leaf0 -- sh -c 'echo $TRIB_HOST.; exit 9'; code h1 -- sh -c 'kill -TERM $$'
            echo input | "$0" lab exec h1 -- cat; cd /usr; code h1 -- pwd; ulimit -n 77; code h1 -- sh -c 'ulimit -n'
            code h1 -- no-such-program; code h7 -- true
            "$0" lab exec h1 -- "$0" lab exec h0 -- hostname
            "$0" lab exec h1 -- sh -c 'trap "echo told; exit 3" TERM; echo ready; while :; do sleep 0.05; done' > "$1" &
            while ! grep -q ready "$1"; do sleep 0.05; done; kill -TERM $!; wait $! || echo $?; cat "$1"
        """
        with tempfile.TemporaryDirectory() as folder, Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            done = lab.run("exec", "h0", "--", "sh", "-c", script, str(TRIB), f"{folder}/said")
            self.assertEqual(done.stdout.split(), "h1 . 9 143 input /usr 77 3 2 h0 3 ready told".split(), done.stderr)
            self.assertIn("no-such-program", done.stderr)

    def test_what_was_started_from_another_host_ends_with_who_started_it(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab:
            command = [TRIB, "lab", "exec", "--name", lab.name, "h0", "--", TRIB, "lab", "exec", "h1", "--", "sleep", "987"]
            sleeps = lambda: lab.run("exec", "h1", "--", "pgrep", "-fx", "sleep 987", check=False).returncode == 0
            with subprocess.Popen(command) as running:
                wait_until(sleeps, 10, "a program on h1")
                running.kill()
            wait_until(lambda: not sleeps(), 10, "the end of the program on h1")

    def test_what_was_started_from_another_host_is_in_the_session_of_who_came_from_outside(self):
        """Linux shares cores by session: ranks that yield to others of another session starve those."""
        with Lab("--hosts", "3", "--leaf-ports", "3") as lab:
            words = [TRIB, "lab", "exec", "h1", "--", TRIB, "lab", "exec", "h2", "--", "sleep", "986"]
            with subprocess.Popen([TRIB, "lab", "exec", "--name", lab.name, "h0", "--", *words], start_new_session=True) as running:
                def sleeping():
                    return subprocess.run(["pgrep", "-fx", "sleep 986"], capture_output=True, text=True).stdout.split()
                wait_until(sleeping, 10, "a program on h2")
                try:
                    self.assertEqual([os.getsid(int(pid)) for pid in sleeping()], [running.pid])
                finally:
                    running.terminate()
            wait_until(lambda: not list(pathlib.Path(lab.status()["folder"]).glob("porter-*")), 10, "the end of the porter")

    def test_no_folder_for_temporary_files_is_shared(self):
        with Lab("--hosts", "2", "--leaf-ports", "2") as lab, tempfile.TemporaryDirectory() as folder:
            show = ["sh", "-c", 'echo "${TMPDIR-none}"']
            self.assertEqual(lab.run("exec", "h1", "--", *show, env={"TMPDIR": folder}).stdout, "none\n")

    def test_hosts_share_the_folder_in_which_up_was_called_even_below_tmp(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as name:
            folder, other = pathlib.Path(name) / "a" / "b", pathlib.Path(name) / "other"
            folder.mkdir(parents=True)
            other.mkdir()
            with Lab("--hosts", "2", "--leaf-ports", "2", cwd=folder) as lab:
                lab.run("exec", "h1", "--", "touch", str(folder / "file"))
                self.assertTrue((folder / "file").exists())
                self.assertTrue(self.sees(lab, "h0", folder / "file"))
                self.assertFalse(self.sees(lab, "h0", other))


class Faults(unittest.TestCase):
    def digests(self, lab, quota):
        argument = {"seed": 5, "number": 60, "most": 1 << 13, "shuffled": False, "shuffle_seed": 1}
        with RanksOnHosts(lab.name, 8, "random_worker", "run", argument, quota) as ranks:
            return [result["digests"] for result in ranks.results(90)]

    def test_lost_and_damaged_datagrams_change_no_result(self):
        datagrams_only = {"stream_threshold": 1 << 40}
        with Lab("--hosts", "8", "--rate", "2gbit") as lab:
            clean = self.digests(lab, datagrams_only)
            # There are so many datagrams that a run without a hit is out of the question.
            lab.fault("loss", "--link", "h1", "--percent", "10")
            lab.fault("loss", "--link", "leaf1", "--direction", "up", "--percent", "10")
            lab.fault("corrupt", "--link", "h2", "--percent", "20")
            self.assertEqual(self.digests(lab, datagrams_only), clean)
            faults = json.loads(lab.run("fault list", "--json").stdout)["faults"]
            self.assertEqual(len(faults), 5)
            self.assertGreater(sum(fault["packets"] for fault in faults if fault["kind"] == "loss"), 0, faults)
            self.assertGreater(sum(fault["packets"] for fault in faults if fault["kind"] == "corrupt"), 0, faults)
            lab.fault("clear")
            self.assertEqual(json.loads(lab.run("fault list", "--json").stdout), {"faults": [], "daemons": []})

    def test_a_cut_link_is_named_and_a_mended_one_carries_again(self):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--limit", "dead_after_ms=3000", "--limit", "heartbeat_ms=500") as lab:
            began = time.monotonic()
            argument = {"counts": [16], "iterations": 100_000}
            with RanksOnHosts(lab.name, 4, "loop_worker", "loop", argument) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 20 for r in range(4)), 30, "iterations")
                lab.fault("cut", "--link", "h3")
                cut = [link["link"] for link in lab.status()["links"] if link["state"] == "cut"]
                self.assertEqual(cut, ["h3"])
                try:
                    output, _ = ranks.process.communicate(timeout=40)
                except subprocess.TimeoutExpired:
                    self.fail("the ranks hang although a link is cut")
            self.assertNotEqual(ranks.process.returncode, 0)
            self.assertRegex(output, "rank 3|leaf1|dead|silent", output[-2000:])
            self.assertLess(time.monotonic() - began, 40)
            lab.fault("mend", "--link", "h3")
            reach = "import socket; s = socket.create_connection(('h3', 9), 5)"
            done = lab.run("exec", "h0", "--", PYTHON, "-c", reach, check=False)
            self.assertIn("ConnectionRefusedError", done.stderr, "h3 does not answer")

    def test_a_stopped_daemon_goes_on_and_a_killed_one_is_shown_dead(self):
        with Lab("--hosts", "2", "--leaf-ports", "1") as lab:
            state = lambda name: next(d["state"] for d in lab.status()["daemons"] if d["name"] == name)
            lab.fault("stop", "--process", "leaf1")
            wait_until(lambda: state("leaf1") == "stopped", 5, "leaf1 stopped")
            lab.fault("clear")
            wait_until(lambda: state("leaf1") == "running", 5, "leaf1 running")
            lab.fault("kill", "--process", "manager")
            wait_until(lambda: state("manager") == "ended", 5, "manager ended")
            self.assertEqual(lab.run("fault stop", "--process", "manager", check=False).returncode, 2)

    def test_daemons_that_were_killed_are_started_again_and_their_job_goes_on(self):
        with Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "1gbit", "--backups", "1") as lab:
            with tempfile.TemporaryDirectory() as folder:
                stop = pathlib.Path(folder) / "stop"
                argument = {"counts": [3, 700, 60_000], "stop": str(stop)}
                with RanksOnHosts(lab.name, 4, "loop_worker", "loop", argument) as ranks:
                    ranks.reach(lambda: ranks.progress(0) > 5, 30, "first operations")
                    before = lab.manager_status()
                    for daemon in ("manager", "leaf0"):
                        lab.fault("kill", "--process", daemon)
                    for daemon in ("manager", "leaf0"):
                        lab.fault("start", "--process", daemon)
                    self.assertEqual(lab.running(), {"manager", "spine", "leaf0", "leaf1"})
                    self.assertEqual(lab.run("fault start", "--process", "leaf0", check=False).returncode, 2)
                    told = ranks.progress(0)
                    ranks.reach(lambda: ranks.progress(0) > told + 5, 60, "operations after it")
                    after = lab.manager_status()
                    stop.touch()
                    results = ranks.results(60)
            self.assertTrue(all(result["counters"]["epochs"] >= 1 for result in results), results)
            self.assertEqual(len({result["digest"] for result in results}), 1)
            jobs = lambda status: [(job["id"], job["adopted"]) for job in status["jobs"]]
            self.assertEqual(jobs(before), [(1, False)])
            self.assertEqual(jobs(after), [(1, True)])


class Mpi(unittest.TestCase):
    def hello(self, mpi, compiler, ranks, order, hosts, may_hang=False):
        if not shutil.which(f"mpirun.{mpi}") or not shutil.which(compiler):
            self.skipTest(f"{mpi} is not installed")
        with tempfile.TemporaryDirectory() as folder, Lab("--hosts", "4", "--leaf-ports", "2", "--rate", "2gbit") as lab:
            os.chmod(folder, 0o755)
            source = pathlib.Path(folder) / "hello.c"
            source.write_text(HELLO)
            subprocess.run([compiler, "-o", source.with_suffix(""), source], check=True, timeout=60)
            words = ["--mpi", mpi, "-n", str(ranks), "--map", order, "--env", "MINE=yes", "--timeout", "15"]
            done = lab.run("mpirun", *words, "--", str(source.with_suffix("")), timeout=40, check=False)
            self.assertIn(done.returncode, [0, 124] if may_hang else [0], done.stderr)
            said = sorted(line.split() for line in done.stdout.splitlines())
            total = str(sum(range(ranks)))
            self.assertEqual(said, [[str(r), hosts[r], hosts[r], "yes", total] for r in range(ranks)], done.stderr)
            # What a killed launcher leaves belongs to the laboratory and goes with it. In the
            # machine's folder for temporary files it would be in the way of another user's host of
            # the same name.
            scratch = pathlib.Path(folder) / "scratch"
            scratch.mkdir()
            words = ["--mpi", mpi, "-n", "2", "--timeout", "2", "--", "sleep", "61.5"]
            sleep = lab.run("mpirun", *words, check=False, env={"TMPDIR": str(scratch)})
            self.assertEqual(sleep.returncode, 124, sleep.stderr)
            self.assertEqual(os.listdir(scratch), [])
            left = subprocess.run(["pgrep", "-f", "^sleep 61.5"], capture_output=True, text=True).stdout
            self.assertEqual(left, "", "ranks outlive their time")
            self.assertEqual(lab.run("exec", "h1", "--", "hostname").stdout, "h1\n")

    def test_open_mpi(self):
        self.hello("openmpi", "mpicc.openmpi", 4, "interleaved", ["h0", "h2", "h1", "h3"])

    # In MPI_Finalize, MPICH with UCX waits for ranks that no longer listen: with many ranks about
    # every other time, with two seldom. The launcher ends it then, and what the ranks have printed
    # is there nevertheless.
    def test_mpich(self):
        self.hello("mpich", "mpicc.mpich", 2, "by-leaf", ["h0", "h1"], may_hang=True)


    def neighbours(self, mpi, compiler, may_hang=False):
        """Two ranks on each of two hosts; those of a host exchange 16 MiB."""
        if not shutil.which(f"mpirun.{mpi}") or not shutil.which(compiler):
            self.skipTest(f"{mpi} is not installed")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, Lab("--hosts", "2", "--leaf-ports", "1") as lab:
            os.chmod(folder, 0o755)
            source = pathlib.Path(folder) / "neighbours.c"
            source.write_text(NEIGHBOURS)
            subprocess.run([compiler, "-o", source.with_suffix(""), source], check=True, timeout=60)
            words = ["--mpi", mpi, "--ranks-per-host", "2", "--placement", "block", "--timeout", "15"]
            done = lab.run("mpirun", *words, "--", str(source.with_suffix("")), timeout=40, check=False)
            self.assertIn(done.returncode, [0, 124] if may_hang else [0], done.stderr)
            moved = [int(line) for line in done.stdout.split()]
            self.assertEqual(len(moved), 4, done.stderr)
            self.assertLess(max(moved), 1 << 20, "what ranks of a host tell each other goes through its memory")

    def test_ranks_of_a_host_share_memory_in_open_mpi(self):
        self.neighbours("openmpi", "mpicc.openmpi")

    def test_ranks_of_a_host_share_memory_in_mpich(self):
        self.neighbours("mpich", "mpicc.mpich", may_hang=True)


NEIGHBOURS = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The bytes that all interfaces of this host have received. */
static long long received(void)
{
    char line[512];
    long long sum = 0, bytes;
    FILE *file = fopen("/proc/thread-self/net/dev", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " %*[^:]: %lld", &bytes) == 1)
            sum += bytes;
    if (file)
        fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    enum { BYTES = 16 << 20 };
    char *mine = calloc(BYTES, 1), *theirs = calloc(BYTES, 1);
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    long long before = received();
    MPI_Sendrecv(mine, BYTES, MPI_CHAR, rank ^ 1, 0, theirs, BYTES, MPI_CHAR, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%lld\n", received() - before);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, length, sum;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(name, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d %s %s %s %d\n", rank, name, getenv("TRIB_HOST") ? getenv("TRIB_HOST") : name, getenv("MINE"), sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""

if __name__ == "__main__":
    unittest.main()
