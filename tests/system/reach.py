"""What one process may reach of another's memory on the same machine:

python3 reach.py hold               holds a secret in its memory and in a file in memory, says its
                                    process id and where the secret is, and waits for its input to end
python3 reach.py look PID ADDRESS   looks for that secret by every way that takes a process id, and
                                    says by which it came, a line each
"""

import ctypes
import os
import pathlib
import sys

SECRET = b"the vector of another host"
NAME = "reach-secret"


def hold():
    memory = ctypes.create_string_buffer(SECRET)
    file = os.memfd_create(NAME)
    os.write(file, SECRET)
    print(os.getpid(), ctypes.addressof(memory), flush=True)
    sys.stdin.read()


def read_memory(pid, address):
    """What process_vm_readv brings."""
    into = ctypes.create_string_buffer(len(SECRET))
    near = (ctypes.c_void_p * 2)(ctypes.addressof(into), len(SECRET))
    far = (ctypes.c_void_p * 2)(address, len(SECRET))
    ctypes.CDLL(None).process_vm_readv(pid, near, ctypes.c_ulong(1), far, ctypes.c_ulong(1), ctypes.c_ulong(0))
    return into.raw


def open_files():
    """What is in the files of this name that processes have open."""
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if NAME in os.readlink(link):
                yield link.read_bytes()
        except OSError:
            pass


def processes():
    return [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]


def look(pid, address):
    if any(read_memory(other, address) == SECRET for other in {pid, *processes()}):
        print("memory")
    if SECRET in open_files():
        print("file")
    if any(b"hold" in pathlib.Path(f"/proc/{other}/cmdline").read_bytes().split(b"\0") for other in processes()):
        print("process")


if __name__ == "__main__":
    {"hold": hold, "look": look}[sys.argv[1]](*map(int, sys.argv[2:]))
