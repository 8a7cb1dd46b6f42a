"""Commands in a terminal of our own, and what stands on its screen."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time


class Terminal:
    """A command in a pseudo-terminal of so many columns and rows."""

    def __init__(self, command, columns, rows=40, env=None):
        self.output = b""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            # The size is there before anybody asks for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            words = [os.fspath(word) for word in command]
            os.execve(words[0], words, {**os.environ, "TERM": "xterm-256color", **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)

    def read(self, limit=0.1):
        """Takes what has come within `limit` seconds; whether more may come."""
        if not select.select([self.descriptor], [], [], limit)[0]:
            return True
        try:
            more = os.read(self.descriptor, 1 << 16)
        except OSError:
            # The command was the last to have it open.
            return False
        self.output += more
        return bool(more)

    def until(self, condition, limit=30.0):
        """The first whole picture of which this is true."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            pictures = self.pictures()
            if pictures and condition(pictures[-1]):
                return pictures[-1]
            if not self.read():
                break
        raise AssertionError(f"not within {limit} s: {self.output[-4000:]!r}")

    def pictures(self):
        """What was drawn, each picture as text."""
        frames = re.findall(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", self.output, re.DOTALL)
        return [text_of(re.sub(rb"\x1b\[\d+;1H", b"\n", frame)).lstrip("\n") for frame in frames]

    def press(self, keys):
        os.write(self.descriptor, keys)

    def end(self, limit=30.0):
        """How the command ended, as `os.waitstatus_to_exitcode` says it."""
        deadline = time.monotonic() + limit
        while self.read():
            if time.monotonic() > deadline:
                raise AssertionError(f"it goes on after {limit} s: {self.output[-4000:]!r}")
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.waitstatus_to_exitcode(status)


def text_of(output):
    """Output without the codes that colour it or move the cursor."""
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", output).decode()
