"""Where torch is for these tests: an environment of Python's own for each version, outside the clone.

It is kept in ~/.cache/tributary/torch-VERSION, or in the folder that TRIB_TORCH_CACHE names, and
made once. PyPI's torch for Linux brings CUDA's libraries, and there is no smaller one.
"""

import os
import pathlib
import shutil
import subprocess
import sys

#: The newest version, which most steps take.
NEWEST = "2.15.0"
#: The oldest that the package promises to work with, and one between them, whose process groups can
#: be made in Python in fewer ways than those of either.
OTHERS = {"oldest": "2.6.0", "between": "2.11.0"}
#: What the models of the tests need beside it, and torch's own tests, pinned to what was there with
#: that torch.
BESIDE = ["numpy==2.4.6", "scikit-learn==1.9.1", "expecttest==0.3.0"]
CACHE = pathlib.Path(os.environ.get("TRIB_TORCH_CACHE") or pathlib.Path.home() / ".cache" / "tributary")
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
#: What a version takes, in gigabytes: to download, and on disk.
DOWNLOAD_GB, DISK_GB = 2.9, 5.5


class Missing(Exception):
    """Torch is not here and could not be brought here."""


def python_of(version, within=None):
    """The interpreter that has this torch, and what else the tests need. What is not here is brought,
    in so many seconds at most. Raises Missing."""
    folder, packages = CACHE / f"torch-{version}", [f"torch=={version}", *BESIDE]
    python = folder / "bin" / "python"
    # It says what is there. A folder that was not finished has no such file, and is made anew.
    complete = folder / "complete"
    if complete.exists() and complete.read_text() == "\n".join(packages):
        return python
    try:
        if not complete.exists():
            make(version, folder)
        add(python, packages, within)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
        late = isinstance(failure, subprocess.TimeoutExpired)
        # python -m pip, or python -m venv
        why = f"was not there after {within:.0f} s" if late else f"could not be brought here: {failure.cmd[2]} ended with {failure.returncode}"
        raise Missing(f"torch {version} {why}") from None
    complete.write_text("\n".join(packages))
    return python


def make(version, folder):
    """An environment without torch; says first what torch takes."""
    print(f"torch {version}: {DOWNLOAD_GB} GB to download, {DISK_GB} GB on disk in {folder}", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free / 1e9
    if free < 2 * DISK_GB:
        raise Missing(f"{free:.1f} GB are free for torch {version}, and pip needs {2 * DISK_GB:.0f}; TRIB_TORCH_CACHE names another folder")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)


def installed(python, folder):
    """The package as a user has it: a wheel, installed."""
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, PACKAGE], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "package", wheel], check=True)
    return folder / "package"


def add(python, packages, within=None):
    """What a program needs in an environment; quick if it is there."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "5", "--no-cache-dir"]
    subprocess.run([*pip, *packages], check=True, timeout=within)
