"""The source distributions of mpi4py, whose own tests run with ours: fetched once, and known by their SHA-256."""

import hashlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import wheels

#: Debian has the first; PyPI's MPIs go with the second.
DEBIANS = "3.1.4"
SHA256 = {
    DEBIANS: "17858f2ebc623220d0120d1fa8d428d033dde749c4bc35b33d81a66ad7f93480",
    wheels.MPI4PY: "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02",
}


class Missing(Exception):
    """Why a source distribution cannot be had, for a person."""


def index():
    """The package index that pip is configured with."""
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip is None:
        raise Missing("there is no pip to tell which package index to use; scripts/install-dependencies installs it")
    told = subprocess.run([pip, "install", "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.search(r"--index-url\s.*?\(default\s+(\S+?)\)", told, re.S)
    if found is None:
        raise Missing("pip install --help names no package index")
    return found[1]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except OSError as error:
        raise Missing(str(error)) from error


def fetch(archive, digest):
    """Puts the source distribution there. `pip download` would build it first, which takes long."""
    page_url = f"{index().rstrip('/')}/mpi4py/"
    page = get(page_url).decode()
    link = re.search(rf'href="([^"#]*{re.escape(archive.name)})[#"]', page)
    if link is None:
        raise Missing(f"the package index that pip uses has no {archive.name}")
    data = get(urllib.parse.urljoin(page_url, link[1]))
    if hashlib.sha256(data).hexdigest() != digest:
        raise Missing(f"{archive.name} is not the file that it was; its SHA-256 should be {digest}")
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(data)


def unpack(version, kept, folder):
    """Unpacks it below `folder`, from the folder of files that are kept. Returns where it is; raises Missing."""
    archive, digest = kept / f"mpi4py-{version}.tar.gz", SHA256[version]
    if not archive.exists() or hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        fetch(archive, digest)
    shutil.unpack_archive(archive, folder)
    return folder / f"mpi4py-{version}"
