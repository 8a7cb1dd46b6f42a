"""Torch's own tests of `torch.distributed`, which its wheel brings, with this backend on four ranks:
c10d_worker.py [WORD...], those with one of the words in their names.

Prints a line of JSON: what has passed, what has failed with which words, and why others were
skipped. Most want a GPU for each rank, or one of torch's own backends by its name.
"""

import collections
import json
import logging
import os
import sys
import unittest

# Read while torch's tests are imported.
os.environ |= {"BACKEND": "tributary", "WORLD_SIZE": "4", "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60"}

import torch
import tributary.torch  # noqa: F401  registers the backend
from torch.testing._internal.common_distributed import DistTestCases

# What torch's tests ask before they use a backend that is none of torch's.
for feature in ("gpu", "ddp", "subgroup", "plugin"):
    DistTestCases.backend_feature[feature].add("tributary")
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402


class Tributary(TestDistBackend, DistributedTest._DistTestBase):
    """The ranks of a test are forks of this process, which has torch already."""

    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Outcome(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = []

    def startTest(self, test):
        super().startTest(test)
        print(name_of(test), file=sys.stderr, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(name_of(test))


def name_of(test):
    return test.id().split(".")[-1]


def gpus_for(name):
    """How many GPUs a test wants; its ranks would only look for them when they have joined a job."""
    return getattr(getattr(Tributary, name), "_min_gpus_required", 0)


def main():
    words = sys.argv[1:]
    logging.disable()
    torch.set_num_threads(1)
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(Tributary) if not words or any(word in name for word in words)]
    able = [name for name in names if gpus_for(name) <= torch.cuda.device_count()]
    outcome = Outcome()
    unittest.TestSuite(map(Tributary, able)).run(outcome)
    skipped = collections.defaultdict(list)
    for test, why in outcome.skipped:
        skipped[why].append(name_of(test))
    for name in set(names) - set(able):
        skipped[f"it wants {gpus_for(name)} GPUs"].append(name)
    failed = {name_of(test): text for test, text in [*outcome.failures, *outcome.errors]}
    print(json.dumps({"passed": outcome.passed, "failed": failed, "skipped": skipped}), flush=True)


if __name__ == "__main__":
    main()
