"""What the runners below this folder share: a folder for one library and the programs that are linked with it."""

import pathlib
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def link(folder, library):
    """Makes `library` the one that programs in `folder` are linked with and load."""
    for name in ("libsharp_coll.so", "libsharp_coll.so.5"):
        (folder / name).symlink_to(pathlib.Path(library).resolve())


def compiled(command):
    """Runs a compiler; ends this process with what it says if it fails."""
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
