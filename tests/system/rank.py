"""One rank of a system test: python3 rank.py WORKER FUNCTION FOLDER ARGUMENT, started by `trib
run`."""

import importlib
import json
import os
import pathlib
import sys
import time
import traceback


def main():
    worker, function, folder, argument = sys.argv[1:]
    folder, rank = pathlib.Path(folder), os.environ["TRIB_RANK"]
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    try:
        result = getattr(importlib.import_module(worker), function)(json.loads(argument))
    except BaseException:
        print(f"[rank {rank}] {traceback.format_exc()}", file=sys.stderr, flush=True)
        sys.exit(1)
    (folder / f"{rank}.json").write_text(json.dumps(result))


def note(number):
    """Tells the test how far this rank has come."""
    folder, rank = pathlib.Path(sys.argv[3]), os.environ["TRIB_RANK"]
    temporary = folder / f"{rank}.note.new"
    temporary.write_text(str(number))
    temporary.rename(folder / f"{rank}.note")


def await_note(rank):
    """Waits until another rank has told how far it has come."""
    while not (pathlib.Path(sys.argv[3]) / f"{rank}.note").exists():
        time.sleep(0.01)


def end_without_a_word():
    """Ends this rank as a crash would, though the launcher takes it for a good end."""
    (pathlib.Path(sys.argv[3]) / f"{os.environ['TRIB_RANK']}.json").write_text("null")
    os._exit(0)


if __name__ == "__main__":
    sys.modules["rank"] = sys.modules["__main__"]
    main()
