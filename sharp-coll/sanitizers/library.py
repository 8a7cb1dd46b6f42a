"""The libsharp_coll of this repository, built with a sanitizer by a nightly Rust toolchain."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Kinds that need the standard library built in the same way. The address sanitizer does not,
#: because it sees the heap of any code. The thread sanitizer would not see what the standard
#: library's locks do.
WITH_STANDARD_LIBRARY = {"thread"}
#: Packets come through the C library, so that a sanitizer's runtime sees where they are written.
FLAGS = "--cfg=rustix_use_libc"
#: How gcc calls the runtime of each kind; rustc's names differ by their first letter alone.
RUNTIMES = {"address": "asan", "thread": "tsan"}


def rustc(toolchain, *asked):
    """What a toolchain's compiler answers, or None if there is no such toolchain."""
    try:
        done = subprocess.run(["rustc", f"+{toolchain}", *asked], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def archive(kind, toolchain):
    """The runtime that comes with the compiler."""
    folder = rustc(toolchain, "--print", "target-libdir")
    found = sorted(pathlib.Path(folder).glob(f"librustc*_rt.{RUNTIMES[kind]}.a")) if folder else []
    return found[0] if found else None


def missing(kind, toolchain):
    """What building with this sanitizer needs and is missing, and how to get it; None if nothing
    is missing."""
    if rustc(toolchain, "--version") is None:
        return f"there is no Rust toolchain `{toolchain}` (rustup toolchain install {toolchain} --profile minimal --component rust-src)"
    if archive(kind, toolchain) is None:
        return f"the Rust toolchain `{toolchain}` has no runtime for the {kind} sanitizer on this machine"
    sources = pathlib.Path(rustc(toolchain, "--print", "sysroot")) / "lib" / "rustlib" / "src" / "rust" / "library" / "Cargo.toml"
    if kind in WITH_STANDARD_LIBRARY and not sources.exists():
        return f"the Rust toolchain `{toolchain}` has no sources of the standard library (rustup component add rust-src --toolchain {toolchain})"
    return None


def build(kind, folder, toolchain):
    """Builds the library below `folder`, and returns where it is."""
    host = next(line.split()[1] for line in rustc(toolchain, "-vV").splitlines() if line.startswith("host: "))
    flags = f"{os.environ.get('RUSTFLAGS', '')} {FLAGS} -Zsanitizer={kind}".strip()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / kind), "RUSTFLAGS": flags}
    # With --target the flags are for the library alone, and not for what runs while it is built.
    command = ["cargo", f"+{toolchain}", "build", "--release", "--package", "sharp_coll", "--target", host]
    if kind in WITH_STANDARD_LIBRARY:
        command.append("-Zbuild-std")
    if subprocess.run(command, cwd=ROOT, env=environment).returncode != 0:
        sys.exit(f"{' '.join(command)} failed")
    return folder / kind / host / "release"


def runtime(kind, folder, toolchain):
    """Options for gcc: a program brings the runtime of its library's compiler, instead of gcc's,
    and lends it to the library."""
    name = RUNTIMES[kind]
    runtimes = folder / "runtime"
    runtimes.mkdir()
    (runtimes / f"lib{name}.a").symlink_to(archive(kind, toolchain))
    return [f"-static-lib{name}", f"-L{runtimes}", "-rdynamic"]
