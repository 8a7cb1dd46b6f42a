"""What the runners below this folder share: a folder for one library and the programs that are
linked with it."""

import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def patience(under, flags):
    """The environment of programs that a tool slows down, be it one under which they run or a
    sanitizer. It gives more time for each test and for the making of jobs, and asks for a job
    before the tests, for tools that translate code when it is first run."""
    if not under and not any(flag.startswith("-fsanitize") for flag in flags):
        return {}
    told = {"CONFORMANCE_LIMIT_S": "900", "SHARP_COLL_JOB_CREATE_TIMEOUT": "150000"}
    return {**told, "CONFORMANCE_WARM_UP": "1"} if under else told


def limit_s(patience):
    """Seconds for one program on one number of ranks; each of its tests has a limit of its own."""
    return 3600 if patience else 600


def link(folder, library):
    """Makes `library` the one with which programs in `folder` are linked and which they load."""
    for name in ("libsharp_coll.so", "libsharp_coll.so.5"):
        (folder / name).symlink_to(pathlib.Path(library).resolve())


def compiled(command):
    """Runs a compiler; if it fails, ends this process with its messages."""
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
