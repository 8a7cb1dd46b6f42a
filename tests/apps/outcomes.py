"""Runs mpi4py's own tests unchanged, and writes down on each rank how each test ended, and which one it has begun.

outcomes.py FOLDER-OF-THE-SUITE FOLDER-FOR-RESULTS [OPTION-OF-RUNTESTS ...]
"""

import json
import pathlib
import sys
import unittest


def rank():
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank()


class Noted(unittest.TextTestResult):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.noted = {}

    def startTest(self, test):
        super().startTest(test)
        (Runner.folder / f"{rank()}.begun").write_text(test.id())

    def note(self, test, how):
        self.noted[test.id()] = how

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "error")

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "failed as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "passed unexpectedly")


class Runner(unittest.TextTestRunner):
    resultclass = Noted
    folder = None

    def run(self, test):
        result = super().run(test)
        (self.folder / f"{rank()}.json").write_text(json.dumps(result.noted))
        return result


def main():
    suite, Runner.folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(suite / "test"))
    sys.dont_write_bytecode = True
    unittest.TextTestRunner = unittest.runner.TextTestRunner = Runner
    if (suite / "test/main.py").exists():  # since mpi4py 4
        sys.argv[1:] = sys.argv[3:]
        import main as suites_own

        suites_own.main(module=None)
    else:
        import runtests

        sys.exit(runtests.main(sys.argv[3:]))


if __name__ == "__main__":
    main()
