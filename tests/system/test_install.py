"""What `make install` leaves: programs and libraries without debug lines, and peers that are built where they are wanted."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT, Fabric
from installed import Home, is_there
from test_mpi import COMPONENT

MIB = 1 << 20


def binaries(prefix):
    files = [p for folder in ("bin", "lib") for p in (prefix / folder).iterdir() if p.is_file() and not p.is_symlink()]
    return [p for p in files if p.read_bytes()[:4] == b"\x7fELF"]


def sections(path):
    listed = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, timeout=60, check=True).stdout
    return {words[1] for words in map(str.split, listed.splitlines()) if len(words) > 2}


class Built(unittest.TestCase):
    def test_an_mpi_is_served_where_others_are_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder) / "mpicc.openmpi"
            compiler.symlink_to("/bin/true")
            for name in ("make", "sh", "sed", "head"):
                (pathlib.Path(folder) / name).symlink_to(shutil.which(name))
            done = subprocess.run(["make", "--dry-run", "build"], cwd=ROOT, env={"PATH": folder}, capture_output=True, text=True, timeout=60)
            self.assertIn(f"for compiler in {compiler};", done.stdout, done.stderr)


class Installed(unittest.TestCase):
    def test_no_debug_lines_and_no_needless_symbols(self):
        with Home() as home:
            found = binaries(home.prefix)
            self.assertGreaterEqual(len(found), 6, found)
            for path in found:
                debug = {s for s in sections(path) if (s.startswith(".debug_") or s == ".symtab") and s != ".debug_gdb_scripts"}
                self.assertEqual(debug, set(), path)
            size = {p.name: p.stat().st_size for p in found}
            self.assertIn("libnccl-net-tributary.so", size)
            # Not optimized, as `make test` builds it. With debug lines it has three times that.
            self.assertLess(size["trib"], 36 * MIB, size)
            self.assertLess(max(v for k, v in size.items() if k != "trib"), 10 * MIB, size)
            print(", ".join(f"{name} {bytes / MIB:.1f} MiB" for name, bytes in sorted(size.items())))
            # They work as they stand.
            version = home.run(home.prefix / "bin/trib", "--version")
            self.assertEqual(version.returncode, 0, version.stderr)
            with Fabric() as fabric:
                done = home.run("trib", "bench", "--ranks", "2", "--max", "1K", TRIB_MANAGER=fabric.manager)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_debug_lines_beside_where_they_are_wanted(self):
        with Home("SPLIT_DEBUG=1") as home:
            for path in binaries(home.prefix):
                self.assertIn(".gnu_debuglink", sections(path), path)
                beside = path.parent / ".debug" / f"{path.name}.debug"
                self.assertTrue(beside.exists(), beside)
            self.assertIn(".debug_line", sections(home.prefix / "bin/.debug/trib.debug"))

    def test_what_the_module_sets_switches_the_component_on(self):
        if not (COMPONENT / "mca_coll_tributary.so").exists():
            self.skipTest("no Open MPI 4.1 with its inner headers is here, so there is no component")
        with Home() as home, Fabric() as fabric:
            (file,) = (home.prefix / "share/modulefiles/tributary").iterdir()
            said = file.read_text()
            self.assertTrue((home.prefix / "lib/tributary/openmpi/mca_coll_tributary.so").exists())
            prefix = re.search(r'^set prefix "(.*)"$', said, re.M)[1]
            sets = dict(re.findall(r"^ *setenv (OMPI_\S+) (\S+)$", said, re.M))
            self.assertEqual(len(sets), 2, said)
            env = {name: value.replace("$prefix", prefix) for name, value in sets.items()}
            root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            program = ("/usr/bin/python3", "-c", "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))")
            done = home.run("mpirun", "--oversubscribe", "-np", "2", *program, TRIB_MANAGER=fabric.manager, TRIB_MPI="force",
                            TRIB_MPI_REPORT="1", **env, **root)
            self.assertEqual((done.returncode, done.stdout.count("2")), (0, 2), done.stderr)
            self.assertRegex(done.stderr, r"trees of communicators: [1-9]")

    @unittest.skipUnless(is_there("mpicc.openmpi"), "there is no Open MPI to build a peer for")
    def test_bench_compare_builds_its_peers_in_the_users_cache(self):
        with Home() as home:
            done = home.run("trib", "bench", "compare", "--peers-only")
            self.assertEqual(done.returncode, 0, done.stderr)
            folder = pathlib.Path(done.stdout.strip())
            self.assertTrue(folder.is_relative_to(home.path / ".cache/tributary"), done.stdout)
            self.assertTrue((folder / "collectives.openmpi").exists())
            self.assertTrue((folder / "gloo.py").exists())
            # Without a compiler one line says what is missing, and nothing is measured in vain.
            (folder / "collectives.openmpi").unlink()
            bare = home.path / "bare"
            bare.mkdir()
            done = home.run(home.prefix / "bin/trib", "bench", "compare", "--peers-only", PATH=str(bare))
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("make", done.stderr)


if __name__ == "__main__":
    unittest.main()
