"""Measures a part of a layout on the fabric of TRIB_MANAGER, or in the laboratory of TRIB_LAB: plain
Open MPI, and with the component, in turn. All figures go to standard output, as JSON.

turns.py LAYOUT PART MODE PLACEMENT TURNS PROGRAMS FOLDER
"""

import json
import pathlib
import subprocess
import sys

from layouts import LAYOUTS

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "tests/apps")]
from launch import OPEN_MPI, PARAMETERS, Failed  # noqa: E402

from harness import TRIB  # noqa: E402

WAYS = ("plain", "ours")
#: Of one run, seconds.
LIMIT = 570


def main():
    name, part, mode, placement, turns, programs, folder = sys.argv[1:]
    layout, report, cells = LAYOUTS[name], pathlib.Path(folder) / "report.json", []
    for program in layout.parts[part]:
        words = [f"{programs}/{program.split()[0]}", *program.split()[1:]]
        rounds = []
        for turn in range(1, int(turns) + 1):
            rounds.append({})
            for way in WAYS:
                print(f"{name} {part}: {program}, turn {turn} of {turns}, {way}", file=sys.stderr, flush=True)
                variables = {"TRIB_MPI": mode, "TRIB_MPI_REPORT_FILE": report} if way == "ours" else {}
                rounds[-1][way] = told(said(layout, placement, variables, words, report), layout.ranks)
        cells += merged(rounds)
    json.dump(cells, sys.stdout)


def said(layout, placement, variables, words, report):
    """What a program says. Without variables it has nothing of ours."""
    report.unlink(missing_ok=True)
    done = subprocess.run([str(word) for word in command(layout, placement, variables, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"it ended with {done.returncode}:\n{done.stdout[-2000:]}")
    # Else the MPI's own figures would go for those of the tree.
    if variables and not (report.exists() and json.loads(report.read_text())["groups"]["made"]):
        raise Failed("there was no tree")
    return done.stdout


def command(layout, placement, variables, words):
    settings = [f"{name}={value}" for name, value in variables.items()]
    parameters = [word for pair in PARAMETERS.items() for word in ("--mca", *pair)] if variables else []
    if layout.hosts == 1:
        always = [f"{name}={value}" for name, value in OPEN_MPI.items()]
        return ["env", *always, *settings, "mpirun", "--timeout", LIMIT, "-np", layout.ranks, *parameters, *words]
    launcher = [TRIB, "lab", "mpirun", "--ranks-per-host", layout.per_host, "--placement", placement, "--timeout", LIMIT]
    return [*launcher, *(word for setting in settings for word in ("--env", setting)), *parameters, "--", *words]


def told(text, ranks):
    """{(collective, bytes): figures}, one for each line that a program says."""
    found = {}
    for line in text.splitlines():
        try:
            figures = json.loads(line)
            collective, length, of = (figures.pop(name) for name in ("collective", "bytes", "ranks"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failed(f"these are no figures: {line}") from None
        if of != ranks:
            raise Failed(f"this is of {of} ranks instead of {ranks}: {line}")
        if (collective, length) in found:
            raise Failed(f"this is told twice: {line}")
        found[collective, length] = figures
    return found


def merged(rounds):
    """What all turns have told, by collective and length, which must be the same in each."""
    keys = list(dict.fromkeys(key for each in rounds for way in WAYS for key in each[way]))
    if not keys:
        raise Failed("the programs have told nothing")
    for turn, each in enumerate(rounds, 1):
        for way in WAYS:
            if missing := [f"{collective} of {length} bytes" for collective, length in keys if (collective, length) not in each[way]]:
                raise Failed(f"turn {turn}, {way}: there is no {', no '.join(missing)}")
    return [{"collective": key[0], "bytes": key[1], **{way: [each[way][key] for each in rounds] for way in WAYS}} for key in keys]


if __name__ == "__main__":
    try:
        main()
    except (Failed, OSError) as failed:
        sys.exit(f"bench/mpi/turns.py: {failed}")
    except KeyboardInterrupt:
        sys.exit(130)
