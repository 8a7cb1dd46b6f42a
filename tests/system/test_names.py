"""One name for a thing everywhere: what programs and commands say of a job with a late rank and a killed node."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import TRIB, Fabric, Ranks, send, wait_until

#: What only the inside of the system knows a thing by.
INSIDE = [r"\bn\d+\b", r"tag 42949", r"\b\d{10}\b", r"\bjob\d"]
NAME = "MPI_COMM_WORLD"


def trib(fabric, *words, check=True):
    command = [TRIB, *words, "--manager", fabric.manager]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if check and done.returncode:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
    return done


class Names(unittest.TestCase):
    def plain(self, text):
        for word in INSIDE:
            self.assertNotRegex(text, word)

    def explained(self, fabric, text):
        """Every form in which the text names a job is one that `trib explain` takes."""
        forms = set(re.findall(r"\bjob \d+\b", text))
        rows = [line.split() for line in text.splitlines()]
        heads = [at for at, row in enumerate(rows) if row[:1] == ["JOB"]]
        forms |= {rows[at + 1][0] for at in heads}
        for form in forms:
            self.assertEqual(trib(fabric, "explain", *form.split(), check=False).returncode, 0, form)
        return forms

    def test_a_late_rank_and_a_killed_node(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            gone = pathlib.Path(folder) / "gone"
            argument = {"counts": [5], "signal": str(gone), "name": NAME}
            with Ranks(fabric, 4, "loop_worker", "until_error", argument, quota={"deputies": 0}) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                pids = ranks.pids()
                send(pids[3], signal.SIGSTOP)
                wait_until(lambda: "waits for rank 3" in trib(fabric, "explain", "1").stdout, 30, "the node says who is late")
                commands = [["status"], ["jobs"], ["jobs", "--all"], ["explain", "1"], ["explain", "1/0"]]
                said = {" ".join(words): trib(fabric, *words).stdout for words in commands}
                for text in said.values():
                    self.plain(text)
                forms = set().union(*(self.explained(fabric, text) for text in said.values()))
                self.assertEqual(forms, {"1", "job 1"})
                who = rf"{NAME} \(ranks 0-3\) waits for rank 3 on \S+ \(PID {pids[3]}\) to come to its \d+(st|nd|rd|th) operation"
                for command in ("explain 1", "explain 1/0"):
                    self.assertRegex(said[command], who + r", allreduce of 5 int64 \(sum\), for \d")
                    self.assertRegex(said[command], r"(?m)^(root|leaf\d) .* rank 3 on \S+$", "the column LATE")
                (program,) = {job["name"] for job in json.loads(trib(fabric, "jobs", "--json").stdout)["live"]}
                for other in (f"1/{NAME}", f"job 1/{NAME}", program, f"{program}/0", f"{program}/{NAME}"):
                    self.assertRegex(trib(fabric, "explain", other).stdout, who, other)
                leaf = trib(fabric, "explain", "leaf1").stdout
                self.assertIn("aggregation node leaf1: connected to the manager", leaf)
                self.assertEqual(self.explained(fabric, leaf), {"1"})
                self.assertEqual(trib(fabric, "explain", "leaf1#2").stdout, leaf, "a further logical node of its")
                send(pids[3], signal.SIGCONT)
                gone.touch()
                send(fabric.processes()["leaf1"], signal.SIGKILL)
                errors = [result["text"] for result in ranks.results(60)]
            for text in errors:
                self.plain(text)
                self.assertRegex(text, rf"^{NAME} \(ranks 0-3\): (allreduce of 5 int64 \(sum\), the \d+\w\w operation: )?")
                self.assertRegex(text, r"node leaf1 of the reduction tree is gone|rank \d on \S+ \(PID \d+\) died .* node")
            ended = trib(fabric, "jobs", "--all").stdout
            self.plain(ended)
            self.explained(fabric, ended)

    def faulty(self, fabric, victim, why):
        """A job of which one side is killed, while it lasts and when it is over. Rank 0, which holds
        it, and the launcher, which would end it, are stopped meanwhile."""
        with tempfile.TemporaryDirectory() as folder:
            argument = {"counts": [5], "signal": f"{folder}/gone", "name": NAME}
            with Ranks(fabric, 4, "loop_worker", "until_error", argument, quota={"deputies": 0}) as ranks:
                ranks.reach(lambda: all(ranks.progress(r) > 5 for r in range(4)), 30, "operations")
                pids = ranks.pids()
                try:
                    send(ranks.process.pid, signal.SIGSTOP)
                    send(pids[0], signal.SIGSTOP)
                    send(pids[1] if victim == "rank 1" else fabric.processes()[victim], signal.SIGKILL)
                    wait_until(lambda: "fault" in trib(fabric, "jobs").stdout, 30, "the manager hears of it")
                    told = [trib(fabric, *words).stdout for words in (["jobs"], ["jobs", "--json"], ["explain", "1"])]
                finally:
                    send(pids[0], signal.SIGCONT)
                    send(ranks.process.pid, signal.SIGCONT)
                wait_until(lambda: "failed" in trib(fabric, "jobs", "--ended", check=False).stdout, 60, "the job has ended")
                # Else the end of this block would interrupt the program, and be the reason.
                ranks.process.wait(30)
        told += [trib(fabric, *words).stdout for words in (["jobs", "--ended"], ["explain", "1"])]
        for text in told:
            self.assertRegex(text, why)
        logs = {name: (fabric.folder() / f"{name}.log").read_text() for name in ("manager", "root", "leaf0", "leaf1")}
        self.assertRegex(logs["manager"], rf"job cannot go on.*{why}|{why}.*job cannot go on")
        for name, log in logs.items():
            self.assertNotRegex(log, r"node=\"?n?\d")
            self.assertTrue(name == "manager" or f"node=\"{name}\"" in log, log)

    def test_a_killed_rank_is_told_of_its_job_by_its_host_and_its_node(self):
        with Fabric(env={"TRIB_LOG": "info"}) as fabric:
            self.faulty(fabric, "rank 1", r"rank 1 on \S+ \(PID \d+\) died or lost its connection to node leaf0")

    def test_a_killed_node_is_told_of_its_job_by_its_name(self):
        with Fabric(env={"TRIB_LOG": "info"}) as fabric:
            self.faulty(fabric, "leaf0", "node leaf0 of the reduction tree is gone or does not answer")

    def test_a_name_that_nothing_has(self):
        with Fabric() as fabric:
            for which in ("7", "job 7", "train.py", "train.py/MPI_COMM_WORLD", "leaf7"):
                done = trib(fabric, "explain", which, check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""), which)
                self.assertIn("the manager knows no", done.stderr)


if __name__ == "__main__":
    unittest.main()
