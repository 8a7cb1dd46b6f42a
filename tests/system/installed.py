"""What `make install` puts somewhere, for tests of what users have: not the build folder."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import BUILD, ROOT

#: Their own homes, where a test gives HOME another meaning.
TOOLS = {
    "CARGO_HOME": os.environ.get("CARGO_HOME", str(pathlib.Path.home() / ".cargo")),
    "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(pathlib.Path.home() / ".rustup")),
}


class Home:
    """A home folder of its own with Tributary installed in it, as README says, from what has been built."""

    def __init__(self, *words):
        self.temporary = tempfile.TemporaryDirectory(prefix="trib-home-")
        self.path = pathlib.Path(self.temporary.name)
        self.prefix = self.path / "tributary"
        # What is built is built: `-o` takes the goal for done. It need not be what was built last.
        self.make("-o", "build", "install", f"PREFIX={self.prefix}", f"BUILD_NOTE={self.path}/last-build", *words)

    def make(self, *words):
        done = subprocess.run(["make", *words], cwd=ROOT, env=self.env(), capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"make {' '.join(words)}:\n{done.stdout}\n{done.stderr}")
        return done

    def env(self):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("TRIB_", "XDG_", "MAKE", "MFLAGS"))}
        plain |= {"CARGO_TARGET_DIR": str(BUILD.parent), "TRIB_PROFILE": BUILD.name}
        return {**plain, **TOOLS, "HOME": str(self.path), "PATH": f"{self.prefix}/bin:{plain['PATH']}"}

    def run(self, *words, timeout=120, **env):
        command = [str(word) for word in words]
        return subprocess.run(command, env={**self.env(), **env}, cwd=self.path, capture_output=True, text=True, timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()


def is_there(program):
    return shutil.which(program) is not None
