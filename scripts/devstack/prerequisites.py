"""Checks for the tools that a build needs, and says how to install missing ones."""

import ctypes.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from common.config import REPO
from common.console import Problem, line, step

RUST = (1, 95)
NODE = (20, 19)


def check(build=True):
    find_cargo_of_rustup()
    missing = []
    packages = []
    if build:
        missing += [problem for problem in (check_rust(), check_node()) if problem]
        if not shutil.which("cc"):
            packages += ["gcc", "libc6-dev"]
    elif not shutil.which("node"):
        missing += [check_node()]
    if not has_pip():
        packages.append("python3-pip")
    if packages:
        install_packages(packages, "The build needs them")
    if missing:
        raise Problem("\n".join(missing))


def find_cargo_of_rustup():
    # rustup changes PATH only for login shells.
    folder = Path.home() / ".cargo" / "bin"
    if not shutil.which("cargo") and (folder / "cargo").exists():
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"


def check_rust():
    if not shutil.which("cargo"):
        return "Rust is not installed. Install it with rustup, see https://rustup.rs, and run this again."
    # rustup may first install the version in rust-toolchain.toml, which can take a minute.
    with step("Checking the Rust toolchain"):
        answer = subprocess.run(["cargo", "--version"], stdout=subprocess.PIPE, text=True, cwd=REPO)
    return too_old("Rust", answer.stdout, RUST, "Run: rustup toolchain install")


def check_node():
    if not shutil.which("node") or not shutil.which("npm"):
        return "Node.js is not installed. Install version 20.19 or newer with npm, see https://nodejs.org."
    answer = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True)
    return too_old("Node.js", answer.stdout, NODE, "Install a newer one, see https://nodejs.org.")


def too_old(name, text, wanted, advice):
    found = re.search(r"\d+(\.\d+)+", text or "")
    if not found:
        return f"Cannot determine the version of {name}. {advice}"
    if tuple(map(int, found.group(0).split(".")))[: len(wanted)] < wanted:
        return f"{name} {found.group(0)} is too old; Retouch needs {'.'.join(map(str, wanted))}. {advice}"
    return None


def has_pip():
    command = [sys.executable, "-m", "pip", "--version"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def advise_heif():
    """Says how to make uploads of HEIC and AVIF possible; everything else works without."""
    if not ctypes.util.find_library("heif"):
        line(f"• HEIC and AVIF will be refused. To read them, run this at any time: {apt_line(['libheif1'])}")


def require_heif():
    if not ctypes.util.find_library("heif"):
        install_packages(["libheif1"], "The tests read HEIC and AVIF with it")


def install_packages(packages, why):
    """Installs Debian packages as root; otherwise raises a Problem with the command to run."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Problem(f"Missing: {', '.join(packages)}. {why}. Run:\n\n  {apt_line(packages)}")
    with step(f"Installing {', '.join(packages)} with apt"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        quiet = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        if subprocess.run(install, **quiet).returncode == 0:
            return
        # The package lists may be missing or outdated.
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        answer = subprocess.run(install, **quiet)
        if answer.returncode:
            raise Problem(f"apt-get could not install {', '.join(packages)}:\n\n{answer.stdout[-2000:]}")


def apt_line(packages):
    return f"sudo apt-get install -y --no-install-recommends {' '.join(packages)}"
