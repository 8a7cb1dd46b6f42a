"""What steps have come to so far, for a run that goes on where another one stopped."""

import hashlib
import json
import pathlib

from launch import BUILD, COMPONENTS

TESTED = ("trib", "libtributary.so", "libtrib_mpi*.so")


def digest_of(files, word=""):
    digest = hashlib.sha256(word.encode())
    for file in files:
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def tested():
    return [file for name in TESTED for file in sorted(BUILD.glob(name))] + sorted(COMPONENTS.glob("*.so"))


def binaries():
    """Tells apart what is tested: our binaries."""
    return digest_of(tested())


def mark(shared_host):
    """Tells apart what is tested, and how: our binaries, and the steps themselves with the programs and tests that they run."""
    tests = pathlib.Path(__file__).parents[1]
    steps = [file for pattern in ("apps/*", "mpi/*", "system/test_mpi*.py") for file in sorted(tests.glob(pattern))]
    return digest_of(tested() + steps, str(shared_host))


class Record:
    """A line of JSON for each step that has ended well. Lines with another mark are of other binaries and do not count."""

    def __init__(self, path, of):
        self.path, self.mark = path, of

    def rows(self):
        """{step: what came of it}"""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        rows = [json.loads(line) for line in lines]
        return {row["step"]: row for row in rows if row["mark"] == self.mark}

    def add(self, row):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = {**self.rows(), row["step"]: {**row, "mark": self.mark}}
        self.path.write_text("".join(json.dumps(each) + "\n" for each in kept.values()))
