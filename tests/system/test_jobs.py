"""Many jobs: all are admitted, run and end, and nothing of them stays."""

import json
import pathlib
import subprocess
import unittest

from harness import TRIB, Fabric, resident_bytes, wait_until


def start(manager, *words):
    command = [TRIB, "bench", "jobs", "--json", "--manager", manager, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process, timeout=120):
    try:
        said, complaints = process.communicate(timeout=timeout)
    finally:
        process.kill()
    found = json.loads(said)
    assert process.returncode == 0 and found["failed"] == 0, complaints
    return found


def held(pid):
    """Memory in bytes, descriptors and threads of a daemon."""
    process = pathlib.Path(f"/proc/{pid}")
    return resident_bytes(pid), len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


class Jobs(unittest.TestCase):
    def test_a_thousand_jobs_leave_nothing_behind(self):
        with Fabric() as fabric:
            def everything():
                return {name: held(pid) for name, pid in fabric.processes().items()}

            def is_quiet(before):
                now = everything()
                return not fabric.status()["jobs"] and all(now[name][1:] == before[name][1:] for name in before)

            fresh = everything()
            found = outcome(start(fabric.manager, "--jobs", "500", "--at-once", "64"))
            wait_until(lambda: is_quiet(fresh), 30, "the first half is gone")
            half = everything()
            again = outcome(start(fabric.manager, "--jobs", "500", "--at-once", "64"))
            wait_until(lambda: is_quiet(fresh), 30, "the second half is gone")
            whole = everything()
            self.assertEqual((found["jobs"], again["jobs"]), (500, 500))
            for name in fresh:
                grown = whole[name][0] - half[name][0]
                # The allocator's own ups and downs; a job's buffers are megabytes.
                self.assertLess(grown, 64 << 20, f"{name} grew with the second half")
            rates = f"{found['jobs_per_second']:.0f} and {again['jobs_per_second']:.0f} jobs a second"
            memory = {name: f"{whole[name][0] >> 20} MiB" for name in fresh}
            print(f"{rates}, 64 at once; joining took {found['join_us']['median'] / 1000:.0f} ms; afterwards {memory}")

    def test_ten_thousand_groups_at_once(self):
        with Fabric() as fabric:
            process = start(fabric.manager, "--jobs", "64", "--at-once", "64", "--groups", "160", "--operations", "0", "--hold", "6")
            wait_until(lambda: groups(fabric) >= 64 * 160, 60, "all groups are there")
            memory = {name: f"{held(pid)[0] >> 20} MiB" for name, pid in fabric.processes().items()}
            outcome(process)
            wait_until(lambda: groups(fabric) == 0, 30, "all groups are gone")
            print(f"{64 * 160} groups of 64 jobs: {memory}")


def groups(fabric):
    """Groups alive at the busiest node."""
    told = [node["counters"] for node in fabric.status()["nodes"] if node["counters"]]
    return max((counters["groups_made"] - counters["groups_freed"] for counters in told), default=0)


if __name__ == "__main__":
    unittest.main()
