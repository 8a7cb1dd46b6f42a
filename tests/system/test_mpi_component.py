"""Unmodified MPI programs under the component for Open MPI: C and Fortran, blocking, non-blocking
and persistent collectives."""

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
from harness import BUILD, ROOT, TRIB, Fabric, send, wait_until
from test_mpi import COMPONENT, PROGRAMS, Mpi
from test_mpi_libraries import TAKEN

tearDownModule = test_mpi.tearDownModule

#: How long the manager is stopped, seconds: less than a caller gives it to prove who it is.
STOPPED = 3
#: A state of TCP, as Linux numbers them.
ESTABLISHED = "01"


def setUpModule():
    if not (COMPONENT / "mca_coll_tributary.so").exists():
        raise unittest.SkipTest("no Open MPI 4.1 with its inner headers is here, so there is no component")
    test_mpi.setUpModule()


def connections(fabric):
    """How many connections to the manager are open on this machine."""
    port = f":{int(re.search(r':([0-9]+)', fabric.manager)[1]):04X}"
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == ESTABLISHED for row in rows)


class Component(test_mpi.Programs):
    def run_one(self, fabric, ranks, *program, timeout=120, **env):
        return self.good(Mpi(fabric, ranks, *program, env=env, through="component"), timeout)

    def not_in_tree(self, report, reasons):
        """What the MPI did for other reasons than these."""
        left = {name: {k: n for k, n in figures["mpi"].items() if k not in reasons}
                for name, figures in report["collectives"].items()}
        return {name: counts for name, counts in left.items() if counts}

    def test_random_collectives_against_a_plain_loop(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 8, PROGRAMS / "collectives_check")
        for name in ("MPI_Allreduce", "MPI_Reduce", "MPI_Barrier"):
            self.assertGreater(self.tree(report, name), 0, report)
        self.assertEqual(self.not_in_tree(report, {"operator", "datatype"}), {})

    def test_every_communicator_constructor(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 4, PROGRAMS / "constructors")
        self.assertGreater(report["groups"]["made"], 4)
        self.assertEqual(self.not_in_tree(report, {"not_taken"}), {})
        # Open MPI calls these for itself, and the program does not.
        for name in ("MPI_Iallreduce", "MPI_Allgather", "MPI_Ibcast"):
            self.assertEqual(self.tree(report, name) if name in report["collectives"] else 0, 0, name)

    def test_every_collective_is_counted(self):
        with Fabric() as fabric:
            out, _, report = self.run_one(fabric, 4, PROGRAMS / "every_collective", "end")
        names = json.loads(next(line for line in out.splitlines() if line.startswith("[")))
        kinds = ("Reduce", "Allreduce", "Barrier", *TAKEN)
        taken = {f"MPI_{kind}" for kind in kinds} | {f"MPI_I{kind.lower()}" for kind in kinds}
        for name in names:
            figures = report["collectives"][name]
            if name in taken:
                self.assertEqual((figures["tree"], figures["mpi"]), (4, {}), name)
            else:
                self.assertEqual((figures["tree"], figures["mpi"]), (0, {"not_taken": 4}), name)

    def test_exchanges_of_blocks(self):
        with Fabric() as fabric:
            for through in ("component", "preload"):
                _, _, report = self.good(Mpi(fabric, 5, PROGRAMS / "exchanges", through=through), 60)
                for name in ("Bcast", "Gather", "Scatter", "Alltoall", "Allgatherv", "Reduce_scatter", "Scan", "Exscan"):
                    self.assertGreater(self.tree(report, f"MPI_{name}"), 0, name)
                    if through == "component":
                        self.assertGreater(self.tree(report, f"MPI_I{name.lower()}"), 0, name)

    def test_a_dry_run_weighs_exchanges_as_a_run_would(self):
        with Fabric() as fabric:
            for through in ("component", "preload"):
                _, _, report = self.good(Mpi(fabric, 4, PROGRAMS / "exchanges", "6", env={"TRIB_MPI": "report"}, through=through), 60)
                for name in ("Gather", "Scatter", "Alltoall", "Allgatherv", "Reduce_scatter", "Scan", "Exscan"):
                    self.assertEqual(set(report["collectives"][f"MPI_{name}"]["mpi"]), {"dry_run"}, name)

    def test_ranks_that_wait_for_others_to_join_leave_the_processors_to_them(self):
        """A manager that is stopped keeps them waiting."""
        for through in ("component", "preload"):
            with self.subTest(through), Fabric() as fabric:
                manager = fabric.processes()["manager"]
                send(manager, signal.SIGSTOP)
                before = connections(fabric)
                mpi = Mpi(fabric, 2, PROGRAMS / "joining", through=through)
                wait_until(lambda: connections(fabric) > before, 60, "rank 0 asks the manager")
                time.sleep(STOPPED)
                send(manager, signal.SIGCONT)
                out, _, _ = self.good(mpi, 60)
                ranks = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
                self.assertEqual(len(ranks), 2, out)
                for rank in ranks:
                    self.assertGreaterEqual(rank["seconds"], STOPPED)
                    self.assertLess(rank["processor"], rank["seconds"] / 8, ranks)

    def test_requests_in_any_order(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 4, PROGRAMS / "requests", "20", "hard")
            self.assertEqual(self.not_in_tree(report, {"not_taken", "operator"}), {})
            for kind in ("Iallreduce", "Ireduce", "Ibcast", "Iallgather", "Ibarrier"):
                self.assertGreater(self.tree(report, f"MPI_{kind}"), 0, kind)
            in_any_order = 4 * (20 + 2) * 4 + 2 * 4 * 2
            self.assertEqual(self.tree(report, "MPI_Allreduce_init"), 80 + in_any_order)
            for kind in ("Bcast", "Allgather", "Reduce_scatter_block", "Barrier", "Reduce", "Scatter", "Alltoall", "Exscan"):
                self.assertEqual(self.tree(report, f"MPI_{kind}_init"), 80, kind)
            self.assertEqual(report["groups"]["refused"], 0)

    def test_no_lock_is_held_while_an_operator_of_the_programs_runs(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "operator_waits", timeout=60)
        self.assertEqual(self.tree(report, "MPI_Iscan"), 2)

    def test_a_tree_that_is_refused_leaves_the_requests_to_the_mpi(self):
        with Fabric() as fabric:
            for groups in ("1", "2", "5"):
                _, err, report = self.run_one(fabric, 4, PROGRAMS / "requests", "6", TRIB_QUOTA=f"groups={groups}")
                self.assertGreater(report["groups"]["refused"], 0, groups)
                self.assertIn("quota of groups is used up", err)
                self.assertEqual(self.not_in_tree(report, {"no_group", "not_taken", "operator"}), {})
            # The tree is asked for communicators. After a refusal 63 requests do not ask for one.
            some = {"TRIB_QUOTA": "groups=12", "TRIB_MPI": "require"}
            _, err, report = self.run_one(fabric, 4, PROGRAMS / "requests", "90", "alone", **some)
            self.assertEqual(report["groups"]["refused"], 4 * 2, err)
            requests = report["collectives"]["MPI_Allreduce_init"]
            self.assertEqual((requests["tree"] > 0, set(requests["mpi"])), (True, {"no_group"}))
            _, _, report = self.run_one(fabric, 4, PROGRAMS / "comm_churn", "50", TRIB_QUOTA="groups=2")
            self.assertGreater(report["collectives"]["MPI_Allreduce"]["mpi"]["no_group"], 0)

    def test_another_thread_learns_that_a_tree_is_refused_while_a_call_begins(self):
        with Fabric() as fabric:
            for _ in range(3):
                _, _, report = self.run_one(fabric, 2, PROGRAMS / "refused_meanwhile", "20000", TRIB_QUOTA="groups=1")
                self.assertEqual(report["groups"]["refused"], 2 * 20000)

    def test_calls_that_the_tree_does_not_take_wait_for_no_tree_either(self):
        with Fabric(shared_host=True) as fabric:
            for mode, quota in (("on", ""), ("on", "groups=2"), ("force", "")):
                _, _, report = self.run_one(fabric, 4, PROGRAMS / "waitless", timeout=60, TRIB_MPI=mode, TRIB_QUOTA=quota)
                self.assertEqual(report["groups"]["refused"] > 0, quota != "", mode)
                self.assertEqual(self.not_in_tree(report, {"not_taken"} if quota == "" else {"not_taken", "no_group"}), {}, mode)
                self.assertGreater(self.tree(report, "MPI_Iallreduce"), 0, mode)
                for name, kinds in (("Ialltoallv", 2), ("Ialltoallw", 2), ("Igatherv", 1), ("Iscatterv", 1), ("Ineighbor_alltoallw", 1)):
                    self.assertEqual(report["collectives"][f"MPI_{name}"]["mpi"], {"not_taken": 4 * 3 * kinds}, (mode, name))

    def test_communicators_come_and_go(self):
        with Fabric() as fabric:
            out, _, report = self.run_one(fabric, 2, PROGRAMS / "comm_churn", "1500", timeout=240)
        said = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        self.assertLess(said["growth_bytes"], 4 << 20, said)
        self.assertGreater(report["groups"]["made"], 1500)
        self.assertEqual(report["groups"]["refused"], 0)

    def test_5000_communicators_that_live_at_the_same_time(self):
        """More than the quota has trees for."""
        with Fabric() as fabric:
            out, _, report = self.run_one(fabric, 2, PROGRAMS / "live_communicators", "5000", timeout=240)
        self.assertIn('"communicators": 5000', out)
        calls = report["collectives"]["MPI_Allreduce"]
        self.assertEqual(calls["tree"] + calls["mpi"]["no_group"], 2 * 10001)
        self.assertGreater(calls["tree"], 1000)
        # The trees of the two ranks' MPI_COMM_WORLD are there to the end.
        self.assertEqual(report["groups"]["made"] - report["groups"]["freed"], 2)

    def test_a_program_in_cpp(self):
        with Fabric() as fabric:
            for through in ("component", "preload"):
                _, _, report = self.good(Mpi(fabric, 3, PROGRAMS / "plus_plus", through=through), 60)
                self.assertEqual(report["collectives"]["MPI_Allreduce"]["mpi"], {}, through)
                self.assertEqual((self.tree(report), self.tree(report, "MPI_Bcast")), (9, 3), through)

    def test_children_have_a_job_of_their_own(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "spawn_merge", "2", "20")
        self.assertGreater(self.tree(report), 0)
        self.assertGreater(report["collectives"]["MPI_Allreduce"]["mpi"]["no_group"], 0, "merged with children")

    def test_fortran(self):
        with tempfile.TemporaryDirectory(prefix="trib-test-") as folder, Fabric() as fabric:
            for source in ("collectives_f08.f90", "collectives_mpifh.f"):
                program = pathlib.Path(folder) / source.partition(".")[0]
                subprocess.run(["mpifort", "-O1", "-fallow-argument-mismatch", "-w", "-o", program, ROOT / "tests/mpi" / source], check=True, timeout=120)
                out, _, report = self.run_one(fabric, 3, program)
                self.assertIn("all right", out)
                self.assertEqual(self.not_in_tree(report, set()), {}, source)
                self.assertGreaterEqual(self.tree(report), 12, source)

    def test_applications_in_c_and_in_fortran_are_one_program(self):
        with Fabric() as fabric:
            # The launcher passes on to each application what is said for it.
            words = [f"OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT:{COMPONENT}:USER_DEFAULT", "OMPI_MCA_coll_tributary_enable=1"]
            passed = [word for value in words for word in ("-x", value)]
            fortran = (":", "-np", "2", *passed, PROGRAMS / "fortran_init", "init")
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "sums", *fortran, timeout=60)
            self.assertGreaterEqual(self.tree(report), 4, report)
            _, err, report = self.run_one(fabric, 2, PROGRAMS / "sums", *fortran, timeout=60, LD_PRELOAD=str(BUILD / "libtrib_mpi.so"))
            self.assertGreaterEqual(self.tree(report), 4, report)
            self.assertNotIn("stay with the MPI", err)

    def test_file_requests_at_thread_multiple(self):
        with tempfile.TemporaryDirectory(prefix="trib-test-") as folder, Fabric() as fabric:
            self.run_one(fabric, 4, PROGRAMS / "file_requests", pathlib.Path(folder) / "file", "20")

    def test_threads_in_collectives_at_the_same_time(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 3, PROGRAMS / "threads")
        for name in ("Allreduce", "Reduce", "Bcast", "Barrier", "Allgather", "Alltoall", "Scan", "Gather", "Scatter", "Iallreduce", "Ireduce",
                     "Ibcast", "Ibarrier"):
            self.assertGreater(self.tree(report, f"MPI_{name}"), 0, name)
        self.assertEqual(self.not_in_tree(report, set()), {})

    def test_ranks_that_disagree_are_told(self):
        with Fabric() as fabric:
            _, err, _ = self.run_one(fabric, 3, PROGRAMS / "disagree", timeout=60)
        self.assertEqual(err.count("ranks disagree about MPI_Allreduce"), 3, err)

    def test_calls_that_wait_for_nobody_get_the_error_of_ranks_that_disagreed_before(self):
        with Fabric() as fabric:
            _, err, _ = self.run_one(fabric, 3, PROGRAMS / "disagree", "after", timeout=60)
        for call, times in (("MPI_Allreduce,", 3), ("MPI_Allreduce_init,", 3), ("MPI_Ibarrier,", 6), ("MPI_Iallreduce,", 3)):
            self.assertEqual(err.count(f"ranks disagree about {call}"), times, err)

    def test_a_program_of_short_calls_alone_answers_its_peers(self):
        with Fabric(shared_host=True) as fabric:
            for through in ("component", "preload"):
                # Messages of this length go in several steps, for each of which both ranks look.
                mpi = Mpi(fabric, 2, "--mca", "btl", "tcp,self", PROGRAMS / "short_calls", "4194304", through=through)
                out, _, report = self.good(mpi, 60)
                self.assertGreater(self.tree(report), 0)
                turns = json.loads(out[out.index("{"):])["turns"]
                self.assertLess(turns, 2000, through)

    def test_a_root_broadcasts_out_of_memory_that_cannot_be_written(self):
        with Fabric() as fabric:
            for through in ("component", "preload"):
                _, _, report = self.good(Mpi(fabric, 2, PROGRAMS / "read_only_root", through=through), 60)
                self.assertEqual(self.tree(report, "MPI_Bcast"), 2)

    def test_a_word_for_sums_that_means_nothing_gets_no_tree(self):
        with Fabric() as fabric:
            for env in ({"TRIB_SUMS": "Exact"}, {"OMPI_MCA_coll_tributary_sums": "Exact"}):
                _, err, _ = self.run_one(fabric, 2, PROGRAMS / "first_calls", timeout=60, **env)
                self.assertIn("stay with the MPI: TRIB_SUMS on rank 0 is none of plain, fixed, exact", err)
                self.assertNotIn("is used", err)

    def test_what_is_left_to_the_mpi_is_read_by_nobody_else(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "refused_sums", TRIB_SUMS="exact", TRIB_QUOTA="groups=1")
            self.assertEqual(report["groups"]["refused"], 2 * 8)

    def test_where_a_rank_lacks_it_the_mpi_does_it_all(self):
        with Fabric() as fabric:
            # What mpirun passes on goes to the first of the two applications.
            lacking = (":", "-np", "2", PROGRAMS / "first_calls")
            _, err, report = self.run_one(fabric, 2, PROGRAMS / "first_calls", *lacking, timeout=60)
            required = Mpi(fabric, 2, PROGRAMS / "first_calls", *lacking, through="component",
                           env={"TRIB_MPI": "", "HCOLL_ENABLE_SHARP": "3", "HCOLL_UNHEARD": "1"})
            code, _, ended, _ = required.end(60)
        self.assertNotEqual(code, 0, ended)
        self.assertIn("and TRIB_MPI=require ends it: rank 2 runs without", ended)
        self.assertEqual(ended.count("tributary:"), 1, ended)
        self.assertIsNone(report)
        told = [line for line in err.splitlines() if line.startswith("tributary:")]
        self.assertEqual(len(told), 1, err)
        self.assertIn("rank 2 runs without Tributary's component", told[0])

    def test_the_first_rank_that_has_it_says_which_one_lacks_it(self):
        with Fabric() as fabric:
            own = {
                "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "require", "OMPI_MCA_coll_tributary_enable": "1",
                "OMPI_MCA_mca_base_component_path": f"SYSTEM_DEFAULT:{COMPONENT}:USER_DEFAULT",
            }
            having = (":", "-np", "2", *(word for name, value in own.items() for word in ("-x", f"{name}={value}")), PROGRAMS / "first_calls")
            code, _, err, _ = Mpi(None, 2, PROGRAMS / "first_calls", *having, through=None).end(60)
        self.assertNotEqual(code, 0, err)
        self.assertIn("and TRIB_MPI=require ends it: rank 0 runs without", err)
        self.assertEqual(err.count("tributary:"), 1, err)

    def test_what_ranks_have_is_found_where_it_is_fetched_when_it_is_asked_for(self):
        """Of ranks on another host, which is this one under another name: a shell stands in for ssh."""
        with tempfile.TemporaryDirectory(prefix="trib-test-") as folder, Fabric() as fabric:
            shell = pathlib.Path(folder) / "shell"
            shell.write_text(f'#!/bin/sh\nmkdir {folder}/$1\nexport TMPDIR={folder}/$1\nshift\nexec sh -c "$*"\n')
            shell.chmod(0o755)
            words = ["--host", "one:2,two:2"]
            # Open MPI's daemons put their topology into shared memory, over which one crashed.
            unshared = ("rtc", "^hwloc")
            for name, value in (("plm_rsh_agent", shell), ("pml", "ob1"), ("btl", "tcp,self"), ("pmix_base_collect_data", "0"), unshared):
                words += ["--mca", name, value]
            _, _, report = self.run_one(fabric, 4, *words, PROGRAMS / "first_calls", timeout=60)
            self.assertEqual(self.tree(report), 80)
            shutil.rmtree(pathlib.Path(folder) / "two")
            lacking = (":", "-np", "2", PROGRAMS / "first_calls")
            _, err, report = self.run_one(fabric, 2, *words, PROGRAMS / "first_calls", *lacking, timeout=60)
            self.assertIsNone(report)
            self.assertIn("rank 2 runs without Tributary's component", err)

    def test_the_preloaded_library_steps_aside(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "first_calls", LD_PRELOAD=str(BUILD / "libtrib_mpi.so"))
            self.assertEqual(self.tree(report), 40)
            jobs = subprocess.run([TRIB, "jobs", "--all", "--json", "--manager", fabric.manager], capture_output=True, text=True,
                                  timeout=30, check=True).stdout
            self.assertEqual(jobs.count('"first_calls"'), 1, jobs)
            # Nor does it say that collectives stay with the MPI, when they do not.
            _, err, _ = self.run_one(fabric, 2, PROGRAMS / "fortran_init", "init", LD_PRELOAD=str(BUILD / "libtrib_mpi.so"))
            self.assertNotIn("stay with the MPI", err)

    def test_trib_mpirun_loads_what_fits(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory(prefix="trib-test-") as folder:
            file = pathlib.Path(folder) / "report.json"
            env = {**os.environ, "TRIB_MANAGER": fabric.manager, "TRIB_MPI": "force", "TRIB_MPI_REPORT_FILE": str(file),
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            for through, irregular in ((), True), (("--through", "preload"), False):
                command = [TRIB, "mpirun", *through, "--oversubscribe", "-np", "2", PROGRAMS / "requests", "2"]
                done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(file.read_text())["collectives"]["MPI_Iallreduce"]["tree"] > 0, irregular, through)
            told = subprocess.run([TRIB, "mpirun", "--launcher", "true", "-n", "2", "x"], env=env, capture_output=True, text=True)
            self.assertEqual(told.returncode, 3, told.stderr)
            said = subprocess.run([TRIB, "doctor", "--json", "--program", PROGRAMS / "requests"], env=env, capture_output=True,
                                  text=True, timeout=60).stdout
            (found,) = [check["found"] for check in json.loads(said)["checks"] if check["check"] == "mpi"]
            self.assertIn("is linked for Open MPI's ABI: the component takes", found)

    def test_it_does_nothing_unless_it_is_asked(self):
        with Fabric() as fabric:
            _, err, report = self.run_one(fabric, 2, PROGRAMS / "first_calls", OMPI_MCA_coll_tributary_enable="0")
        self.assertIsNone(report)
        self.assertNotIn("tributary", err)

    def test_without_a_manager_the_mpi_does_it_all(self):
        for manager in ("", "tls://127.0.0.1:1?credentials=/nonexistent"):
            _, err, report = self.run_one(
                None, 4, PROGRAMS / "comm_churn", "50", TRIB_MANAGER=manager, TRIB_TIMEOUT_MS="5000")
            self.assertFalse(report["job"])
            self.assertTrue(report["reason"])
            self.assertEqual(self.tree(report), 0)
            self.assertIn("collectives of this program stay with the MPI", err)

    def test_parameters_stand_for_the_environment(self):
        with Fabric() as fabric:
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "first_calls", TRIB_MPI="off",
                                        OMPI_MCA_coll_tributary_mode="force")
            self.assertGreater(self.tree(report), 0)
            _, _, report = self.run_one(fabric, 2, PROGRAMS / "first_calls",
                                        OMPI_MCA_coll_tributary_min_bytes="1M")
            self.assertEqual(set(report["collectives"]["MPI_Allreduce"]["mpi"]), {"small"})

    def reasons(self, report, name="MPI_Allreduce"):
        return set(report["collectives"][name]["mpi"])

    def test_names_that_hcoll_has(self):
        program, on = PROGRAMS / "first_calls", {"TRIB_MPI": "", "OMPI_MCA_coll_tributary_enable": None}
        with Fabric() as fabric:
            run = lambda **env: self.run_one(fabric, 2, program, **{**on, "OMPI_MCA_coll_hcoll_enable": "1", **env})
            _, err, report = run(HCOLL_ENABLE_SHARP="2", HCOLL_ML_DISABLE_BCAST="1", HCOLL_ML_DISABLE_IBARRIER="0",
                                 HCOLL_FOO="1", HCOLL_BAR="2", HCOLL_MAIN_IB="mlx5_0:1")
            self.assertEqual(self.reasons(report), set())
            self.assertEqual(self.reasons(report, "MPI_Bcast"), {"disabled"})
            told = [line for line in err.splitlines() if "no meaning" in line]
            self.assertEqual(len(told), 1, err)
            self.assertTrue("HCOLL_FOO" in told[0] and "HCOLL_BAR" in told[0] and "SHARP" not in told[0], told)
            self.assertIn("mlx5_0:1' is a hint", err)
            _, err, _ = run(HCOLL_ENABLE_SHARP="2", **{f"HCOLL_{'X' * 90}{n}": "1" for n in range(8)})
            self.assertRegex(err, "(?m)have no meaning here and are ignored: HCOLL_X.* and 3 more$")
            _, _, report = run(HCOLL_ENABLE_SHARP="0")
            self.assertIsNone(report["job"] or None)
            _, _, report = run(HCOLL_ENABLE_SHARP="1")
            self.assertEqual(self.reasons(report), {"one_host"})
            for level, reasons in (("3", {"large"}), ("4", set())):
                _, _, report = run(HCOLL_ENABLE_SHARP=level, HCOLL_BCOL_P2P_ALLREDUCE_SHARP_MAX="2")
                self.assertEqual(self.reasons(report), reasons, level)
            _, _, report = run(HCOLL_ENABLE_SHARP="4", TRIB_MPI_MIN_BYTES="1M")
            self.assertEqual(self.reasons(report), {"small"}, "our own setting counts")
            _, _, report = run(HCOLL_ENABLE_SHARP="2", OMPI_MCA_coll_tributary_enable="0")
            self.assertIsNone(report, "our own setting counts")
            _, _, report = run(HCOLL_ENABLE_SHARP="2", HCOLL_BCOL_P2P_ALLREDUCE_SHARP_MAX="2")
            self.assertEqual(self.reasons(report), {"large"})
            _, _, report = run(HCOLL_ENABLE_SHARP="2", HCOLL_SHARP_NP="2")
            self.assertEqual(self.reasons(report), {"few"})
            _, _, report = run(HCOLL_ENABLE_SHARP="2", OMPI_MCA_coll_hcoll_np="3")
            self.assertEqual(self.reasons(report), {"few"})
            for few in ({"TRIB_MPI_MIN_RANKS": "3"}, {"TRIB_MPI_MIN_HOSTS": "2"}):
                for mode in ("force", "report"):
                    for through in ("component", "preload"):
                        mpi = Mpi(fabric, 2, program, env={**few, "TRIB_MPI": mode}, through=through)
                        _, err, report = self.good(mpi, 60)
                        self.assertEqual(self.reasons(report), {"few"}, (few, mode, through))
            _, _, report = run(HCOLL_ENABLE_SHARP="0", TRIB_MPI="force")
            self.assertGreater(self.tree(report), 0, "our own setting counts")
        code, _, err, _ = Mpi(None, 2, program, env={**on, "OMPI_MCA_coll_hcoll_enable": "1", "HCOLL_ENABLE_SHARP": "3"},
                              through="component").end(60)
        self.assertNotEqual(code, 0)
        self.assertEqual(err.count("asks for the tree, and TRIB_MANAGER is not set"), 1, err)

    def test_what_sharp_coll_asks_for(self):
        with Fabric() as fabric:
            asked = {"SHARP_COLL_JOB_QUOTA_MAX_GROUPS": "2", "SHARP_COLL_ENABLE_SAT": "0", "SHARP_COLL_JOB_QUOTA_OSTS": "none"}
            _, err, report = self.run_one(fabric, 4, PROGRAMS / "requests", "6", **asked)
            self.assertGreater(report["groups"]["refused"], 0)
            self.assertIn("SHARP_COLL_JOB_QUOTA_OSTS='none' is no whole number", err)
            _, _, report = self.run_one(fabric, 4, PROGRAMS / "requests", "6", TRIB_QUOTA="groups=100", **asked)
            self.assertEqual(report["groups"]["refused"], 0, "our own setting counts")

    def test_levels_that_hcoll_lists(self):
        with Fabric(shared_host=True) as fabric:
            for groups, carriers, boards in (("basesmuma,p2p", "basesmuma,ucx_p2p", True), ("p2p", "ucx_p2p", False),
                                             ("basesmuma", "basesmuma,ucx_p2p", True)):
                _, err, report = self.run_one(fabric, 2, PROGRAMS / "first_calls", HCOLL_SBGP=groups, HCOLL_BCOL=carriers)
                self.assertEqual(report["counters"]["operations_board"] > 50, boards, groups)
                self.assertEqual("lists of equal length" in err, groups == "basesmuma")


class FewCalls(test_mpi.Programs):
    """Communicators other than MPI_COMM_WORLD get a tree when they have had enough calls for one."""

    def made(self, fabric, ranks, *words, through="component", name="MPI_Allreduce", **env):
        """Of each rank: calls in the tree, those that came too early, and trees of communicators other than MPI_COMM_WORLD."""
        mpi = Mpi(fabric, ranks, PROGRAMS / "few_calls", *words, through=through, env={"TRIB_MPI": "on", **env})
        _, _, report = self.good(mpi, 60)
        figures, groups = report["collectives"][name], report["groups"]
        self.assertEqual(set(figures["mpi"]) - {"few_calls"}, set(), report)
        self.assertEqual(groups["freed"], groups["made"] - ranks, report)
        return tuple(count // ranks for count in (figures["tree"], figures["mpi"].get("few_calls", 0), groups["freed"]))

    def test_a_tree_is_made_for_the_call_that_makes_it_worth_while(self):
        with Fabric(shared_host=True) as fabric:
            for through in ("component", "preload"):
                def made(*words, **env):
                    return self.made(fabric, 3, *words, through=through, **env)

                self.assertEqual(made("short", "31"), (0, 31, 0), through)
                self.assertEqual(made("short", "100"), (69, 31, 1), through)
                self.assertEqual(made("short", "100", TRIB_MPI_MIN_CALLS="0"), (100, 0, 1), through)
                self.assertEqual(made("short", "100", TRIB_MPI="force"), (100, 0, 1), through)
                self.assertEqual(made("short", "100", TRIB_SUMS="exact"), (100, 0, 1), through)
                self.assertEqual(made("ordered", "100"), (100, 0, 1), through)
                self.assertEqual(made("saturated", "100"), (100, 0, 1), through)
                self.assertEqual(made("long", str(1 << 20)), (1, 0, 1), through)
                self.assertEqual(made("long", str(1 << 18)), (0, 1, 0), through)
                self.assertEqual(made("churn", "100"), (0, 200, 0), through)

    def test_calls_that_wait_for_nobody_count_too(self):
        with Fabric(shared_host=True) as fabric:
            self.assertEqual(self.made(fabric, 3, "waitless", "100", name="MPI_Iallreduce"), (69, 31, 1))
            self.assertEqual(self.made(fabric, 3, "persistent", "100", name="MPI_Allreduce_init"), (100, 0, 1))

    def test_where_the_tree_is_refused_the_mpi_goes_on(self):
        with Fabric(shared_host=True) as fabric:
            for words, name, ways in ((("short", "100"), "MPI_Allreduce", ("component", "preload")),
                                      (("waitless", "100"), "MPI_Iallreduce", ("component",))):
                for through in ways:
                    mpi = Mpi(fabric, 3, PROGRAMS / "few_calls", *words, through=through,
                              env={"TRIB_MPI": "on", "TRIB_QUOTA": "groups=1"})
                    _, err, report = self.good(mpi, 60)
                    self.assertEqual(report["groups"]["refused"], 3, report)
                    self.assertEqual(report["collectives"][name]["mpi"], {"few_calls": 3 * 31, "no_group": 3 * 69}, (name, through))
                    self.assertIn("quota of groups is used up", err)

    def test_who_comes_late_to_the_call_for_which_a_tree_is_made_is_waited_for(self):
        with Fabric(shared_host=True) as fabric:
            for through in ("component", "preload"):
                made = self.made(fabric, 3, "short", "32", "3000", through=through, TRIB_TIMEOUT_MS="1000")
                self.assertEqual(made, (1, 31, 1), through)


class Hosts(test_mpi.Programs):
    def test_ranks_of_a_host_share_memory(self):
        with Fabric(shared_host=True) as fabric:
            _, _, report = self.good(Mpi(fabric, 4, PROGRAMS / "requests", "6", through="component", env={"TRIB_MPI": "on"}), 60)
            self.assertGreater(report["counters"]["operations_board"], 500, report)
            self.assertEqual(set(report["collectives"]["MPI_Ireduce"]["mpi"]), {"measured_slower", "few_calls"})


    def test_only_what_is_faster_in_memory_goes_there(self):
        with Fabric(shared_host=True) as fabric:
            _, _, report = self.good(
                Mpi(fabric, 4, PROGRAMS / "benchmarks", "65536", "1", "1", through="component", env={"TRIB_MPI": "on"}), 60)
        for name in ("MPI_Allreduce", "MPI_Allgather", "MPI_Barrier", "MPI_Reduce_scatter"):
            self.assertEqual(report["collectives"][name]["mpi"], {}, name)
        for name in ("MPI_Bcast", "MPI_Gather", "MPI_Scatter", "MPI_Alltoall", "MPI_Allgatherv", "MPI_Scan", "MPI_Exscan"):
            figures = report["collectives"][name]
            self.assertGreater(figures["tree"], 0, name)
            self.assertEqual(set(figures["mpi"]), {"measured_slower"}, name)


if __name__ == "__main__":
    unittest.main()
