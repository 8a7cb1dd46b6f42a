"""What `make install` leaves: programs and libraries without debug lines, and peers that are built where they are wanted."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, ROOT, Fabric
from installed import Home, is_there
from test_mpi import COMPONENT

MIB = 1 << 20


def binaries(prefix):
    files = [p for folder in ("bin", "lib") for p in (prefix / folder).iterdir() if p.is_file() and not p.is_symlink()]
    return [p for p in files if p.read_bytes()[:4] == b"\x7fELF"]


def every_file(folder):
    """All paths below a folder, with those of folders."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def links(text):
    """The relative links of a document, without what they name inside of another."""
    found = (target.partition("#")[0] for target in re.findall(r"\]\(([^)]*)\)", text))
    return [target for target in found if target and not re.match(r"[a-z]+:", target)]


def sections(path):
    listed = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, timeout=60, check=True).stdout
    return {words[1] for words in map(str.split, listed.splitlines()) if len(words) > 2}


def make(*words, **variables):
    """Runs make as after a login: only these variables say what was built and where it goes."""
    of_make = ("TRIB_", "CARGO_TARGET_", "MAKE", "MFLAGS", "PREFIX", "DESTDIR", "BUILD_NOTE")
    env = {name: value for name, value in os.environ.items() if not name.startswith(of_make)} | {"CARGO": "/bin/false"}
    return subprocess.run(["make", *map(str, words)], cwd=ROOT, env={**env, **variables}, capture_output=True, text=True, timeout=300)


class Built(unittest.TestCase):
    def test_an_mpi_is_served_where_others_are_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder) / "mpicc.openmpi"
            compiler.symlink_to("/bin/true")
            for name in ("make", "sh", "sed", "head"):
                (pathlib.Path(folder) / name).symlink_to(shutil.which(name))
            done = subprocess.run(["make", "--dry-run", "build"], cwd=ROOT, env={"PATH": folder}, capture_output=True, text=True, timeout=60)
            self.assertIn(f"for compiler in {compiler};", done.stdout, done.stderr)


class Refused(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="trib-refused-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.note = f"BUILD_NOTE={self.folder}/last-build"
        #: Words that name the build at hand.
        self.build = (f"CARGO_TARGET_DIR={BUILD.parent}", f"TRIB_PROFILE={BUILD.name}")

    def refuses(self, *words, **variables):
        before = every_file(self.folder)
        done = make(*words, **variables)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(every_file(self.folder), before, "nothing is made or removed")
        said = [line for line in done.stderr.splitlines() if not line.startswith("make: *** [")]
        self.assertEqual(len(said), 1, done.stderr)
        return said[0]

    def test_a_blank_in_a_path_names_no_other_one(self):
        prefix = self.folder / "trib"
        done = make("install-files", f"PREFIX={prefix}", self.note, *self.build)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ([f"PREFIX={prefix} x"], [f"DESTDIR={self.folder}/a b"], [f"PREFIX={prefix}", f"DESTDIR= {self.folder}/a b"], ["PREFIX="]):
            for goal in ("install", "install-files", "uninstall"):
                with self.subTest(goal=goal, words=words):
                    self.assertIn("blank", self.refuses(goal, *words, self.note, *self.build))
        before = every_file(self.folder)
        done = subprocess.run([ROOT / "scripts/uninstall", prefix, "x"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, every_file(self.folder)), (2, before), done.stderr)

    def test_an_older_build_is_not_installed_for_the_last_one(self):
        prefix = f"PREFIX={self.folder}/trib"
        theirs = (f"CARGO_TARGET_DIR={self.folder}/elsewhere", "TRIB_PROFILE=quick")
        (self.folder / "elsewhere/quick").mkdir(parents=True)
        # With nothing behind its commands it builds nothing.
        done = make("build", "MAKE=true", "CARGO=true", "MPICCS=", self.note, **dict(word.split("=") for word in theirs))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.refuses("install-files", prefix, self.note, CARGO_TARGET_DIR=str(BUILD.parent), TRIB_PROFILE=BUILD.name)
        self.assertIn(" ".join(theirs), said)
        self.assertIn("make build", self.refuses("install-files", prefix, self.note, *theirs))
        (self.folder / "last-build").write_text(f"{BUILD}\n")
        done = make("install-files", prefix, self.note, *self.build)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_folder_of_others_is_left_alone_with_a_word_of_what_helps(self):
        closed = self.folder / "closed"
        closed.mkdir()
        closed.chmod(0o555)
        self.folder.chmod(0o755)
        script = shutil.copy(ROOT / "scripts/install-staged", self.folder)
        # Root may write anywhere.
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        done = subprocess.run(["bash", script, "", closed / "opt/trib", "false"], cwd="/", capture_output=True, text=True, timeout=60, **nobody)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("sudo make install-files", done.stderr)
        self.assertEqual(list(closed.iterdir()), [])


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

    def test_it_takes_no_cargo_and_nothing_stays_when_it_is_removed(self):
        with tempfile.TemporaryDirectory(prefix="trib-prefix-") as folder:
            home, prefix = pathlib.Path(folder) / "home", pathlib.Path(folder) / "prefix"
            home.mkdir()
            (prefix / "bin").mkdir(parents=True)
            (prefix / "bin/theirs").write_text("of somebody else")
            before = every_file(prefix)
            path = "/usr/sbin:/usr/bin:/sbin:/bin"
            env = {"PATH": path, "HOME": str(home), "CARGO_TARGET_DIR": str(BUILD.parent), "TRIB_PROFILE": BUILD.name}
            if shutil.which("cargo", path=path):
                env["CARGO"] = "/bin/false"
            make = lambda goal, *words: subprocess.run(
                ["sh", "-c", 'umask 077; exec make "$@"', "sh", goal, f"PREFIX={prefix}", f"BUILD_NOTE={home}/last-build", *words], cwd=ROOT, env=env,
                capture_output=True, text=True, timeout=300)
            for words in ([], ["SPLIT_DEBUG=1"]):
                done = make("install-files", *words)
                self.assertEqual(done.returncode, 0, done.stderr)
            installed = every_file(prefix)
            self.assertLessEqual({"bin/trib", "lib/libtributary.so", "bin/.debug/trib.debug", "share/tributary/installed.txt"}, installed)
            self.assertEqual({name for name in installed if name.startswith(".")}, set(), "the stage is gone")
            closed = [name for name in installed if not (prefix / name).stat().st_mode & 0o004]
            self.assertEqual([name for name in closed if name != "bin/theirs"], [], "all may read it")
            self.assertIn(f"prefix={prefix}\n", (prefix / "lib/pkgconfig/tributary.pc").read_text())
            done = make("uninstall")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(every_file(prefix), before)
            again = make("uninstall")
            self.assertNotEqual(again.returncode, 0)
            self.assertIn("installed.txt", again.stderr)

    def test_files_get_the_label_of_where_they_are_installed(self):
        with tempfile.TemporaryDirectory(prefix="trib-label-") as folder:
            folder = pathlib.Path(folder)
            (folder / "bin").mkdir()
            restorecon, asked = folder / "bin/restorecon", folder / "asked"
            restorecon.write_text(f'#!/bin/sh\nfor path; do [ ! -e "$path" ] || printf "%s\\n" "$path"; done >> {asked}\n')
            restorecon.chmod(0o755)
            words = (f"BUILD_NOTE={folder}/last-build", f"CARGO_TARGET_DIR={BUILD.parent}", f"TRIB_PROFILE={BUILD.name}")
            path = f"{folder}/bin:{os.environ['PATH']}"
            # What lies below a DESTDIR gets its label where it is unpacked.
            done = make("install-files", f"DESTDIR={folder}/stage", "PREFIX=/trib", *words, PATH=path)
            self.assertEqual((done.returncode, asked.exists()), (0, False), done.stderr)
            prefix = folder / "trib"
            done = make("install-files", f"PREFIX={prefix}", *words, PATH=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(set(asked.read_text().splitlines()), {str(prefix), *(f"{prefix}/{name}" for name in every_file(prefix))})

    def test_documents_of_the_package_lead_to_what_is_installed(self):
        with tempfile.TemporaryDirectory(prefix="trib-share-") as folder:
            share = pathlib.Path(folder)
            # As `make install` and scripts/make-deb put them.
            for name, source in (("examples", "examples"), ("grafana", "deploy/grafana")):
                shutil.copytree(ROOT / source, share / "tributary" / name)
            subprocess.run([ROOT / "scripts/install-documents", share], check=True, timeout=60)
            documents = sorted((share / "doc/tributary").rglob("*.md"))
            self.assertGreater(len(documents), 20)
            missing = [f"{document.name}: {link}" for document in documents for link in links(document.read_text())
                       if not (document.parent / link).exists()]
            self.assertEqual(missing, [])

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
