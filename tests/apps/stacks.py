"""Where the processes of a program stand that does not come to its end."""

import pathlib
import shutil
import subprocess

#: Frames of each process, the innermost first, and how long a debugger may look for them.
FRAMES, LIMIT = 16, 30


def parent_of(stat):
    """From the text of /proc/PID/stat, in which the program's name may hold anything."""
    return int(stat.rpartition(")")[2].split()[1])


def children():
    """{process: those that it started}, of all processes."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found.setdefault(parent_of((folder / "stat").read_text()), []).append(int(folder.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def last_ones(process, known=None):
    """The processes below this one that started no other: the ranks, below a launcher."""
    known = children() if known is None else known
    below = known.get(process, [])
    return [last for child in below for last in last_ones(child, known)] if below else [process]


def of_process(process):
    gdb = shutil.which("gdb")
    if gdb is None:
        return f"process {process}: there is no gdb to tell where it stands"
    try:
        told = subprocess.run([gdb, "-nx", "-batch", "-p", str(process), "-ex", f"backtrace {FRAMES}"], capture_output=True, text=True, errors="replace",
                              timeout=LIMIT).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"process {process}: {error}"
    frames = [line for line in told.splitlines() if line.startswith("#")]
    return "\n".join([f"process {process}:", *frames])


def below(process):
    """The stacks of the ranks below a launcher, for people."""
    return "\n".join(of_process(each) for each in last_ones(process) if each != process)
