"""Every command of README.md runs as it stands, on an installation in a home folder of its own, or is named here with the
reason why it cannot run in a test."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import PYTHON, ROOT
from installed import Home, is_there

#: Commands that do not run here.
NOT_HERE = {
    "make demo": "it takes minutes; `make demo` is its own test",
    "make test": "this is it",
    "scripts/install-dependencies": "it installs packages; .ci/run begins with it",
    "make build && sudo make install-files && sudo ldconfig": "it installs below /usr/local; test_install.py",
    "make build && sudo make install-files": "it installs below /usr/local; test_install.py",
    "sudo make uninstall": "it removes what is below /usr/local; test_install.py",
    "make install PREFIX=$HOME/tributary": "that is what all the others run on",
    "trib status --watch": "it goes on until Ctrl-C; test_watch.py",
    "trib explain 17/42": "it takes a job that runs and has a group 42; test_explain.py",
    "python3 -m venv ~/venv && . ~/venv/bin/activate": "the commands after it have packages of the system; tests/torch/run",
    "pip install './python[torch]' numpy": "it asks PyPI; tests/torch/run",
    "trib run -n 4 -- python3 program.py": "it stands for the reader's own program; test_python.py",
    "torchrun --nproc-per-node 4 examples/torch/ddp.py": "it takes torch; tests/torch/run",
    "trib service install am": "it makes a system user; tests/package/run",
    "trib service install an": "it makes a system user; tests/package/run",
    "chgrp tributary-am /etc/tributary/manager.key && chmod 640 /etc/tributary/manager.key": "it takes the system user; tests/package/run",
    "chgrp tributary-an /etc/tributary/node.key && chmod 640 /etc/tributary/node.key": "it takes the system user; tests/package/run",
    "systemctl enable --now tributary-am": "it takes systemd; tests/package/run",
    "systemctl enable --now tributary-an": "it takes systemd; tests/package/run",
    "rsync -a /etc/tributary/users node17:/etc/tributary/": "it takes another machine",
    "export TRIB_MANAGER='tls://IP:7070?credentials=/etc/tributary/users'": "it takes another machine",
}
#: What stands in README for something of the reader's, and what it is here.
STAND_INS = {
    "explain 17": "explain 1",
    "/etc/slurm/topology.conf": "$HOME/topology.conf",
    "/etc/tributary": "$HOME/etc",
    "--group users": f"--group {os.getgid()}",
}
TOPOLOGY = "".join(
    [f"SwitchName=leaf{n} Nodes=tux[{2 * n}-{2 * n + 1}]\n" for n in range(16)]
    + [f"SwitchName=spine{n} Switches=leaf[0-15]\n" for n in range(4)]
)


def commands(text):
    """The commands of the indented blocks, without comments, each with its continuation lines."""
    text = re.sub(r"\\\n\s*", "", text)
    found = []
    for line in text.splitlines():
        if re.match(r"    \S", line):
            found.append(re.sub(r"\s+#.*", "", line).strip())
    return found


class Readme(unittest.TestCase):
    def test_a_comment_ends_a_command_and_a_backslash_does_not(self):
        text = "x\n\n    a b   # c\n\n    d \\\n        e\n       [toml]\n| table |\n"
        self.assertEqual(commands(text), ["a b", "d e"])

    def test_every_command_runs_or_is_named_here(self):
        found = commands((ROOT / "README.md").read_text())
        self.assertEqual([command for command in NOT_HERE if command not in found], [], "no longer in README")
        wanted = [command for command in found if command not in NOT_HERE]
        self.assertGreater(len(wanted), 15)
        if os.getuid() != 0:
            self.skipTest("the laboratory and a /run of its own take root")
        if not is_there("mpirun.openmpi") or subprocess.run([PYTHON, "-c", "import mpi4py, numpy"]).returncode != 0:
            self.skipTest("there is no Open MPI, or no mpi4py and numpy")
        lines = []
        for number, command in enumerate(wanted):
            for word, other in STAND_INS.items():
                command = command.replace(word, other)
            lines.append(f"{command}\necho \"@@@ {number} $?\" >> $HOME/codes")
        with Home() as home:
            (home.path / "topology.conf").write_text(TOPOLOGY)
            shutil.copytree(ROOT / "examples", home.path / "examples")
            # Fabrics and laboratories of other names, made by the user who runs this test, are in
            # the machine's /run: this one is not to find them, and what it makes goes with it.
            prelude = "mount -t tmpfs -o mode=755 none /run\ntrap 'trib fabric down; trib lab down' EXIT\n"
            script = prelude + "\n".join(lines) + "\n"
            # A file: daemons outlive their commands, and a pipe would wait for them.
            with open(home.path / "output", "w+") as output:
                subprocess.run(["unshare", "--mount", "bash", "-c", script], cwd=home.path, env=home.env(), timeout=300,
                               stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            said = (home.path / "output").read_text()
            codes = dict(line.split()[1:] for line in (home.path / "codes").read_text().splitlines())
            failed = [f"{command} ({codes.get(str(n))})" for n, command in enumerate(wanted) if codes.get(str(n)) != "0"]
            self.assertEqual(failed, [], said[-6000:])
            self.assertIn("Nothing stands in the way of a job", said)
            self.assertTrue((home.path / "fabric.svg").exists())


if __name__ == "__main__":
    unittest.main()
