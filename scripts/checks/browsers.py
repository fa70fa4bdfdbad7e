"""Finds the browsers in which the page is tested; installs them if this is root."""

import shutil
import subprocess

from common.console import Problem
from devstack import prerequisites


def chromium():
    # The shell draws no windows and tabs, which would take a third of the processor time.
    names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    return find(names, ["chromium-headless-shell", "fonts-dejavu-core"])


def firefox():
    firefox = find(["firefox-esr", "firefox"], ["firefox-esr"])
    answer = subprocess.run([firefox, "--version"], stdout=subprocess.PIPE, text=True)
    # Older ones report no downloads, and their CSP blocks the driver.
    advice = f"Run: sudo apt-get update && {prerequisites.apt_line(['firefox-esr'])}"
    if problem := prerequisites.too_old("Firefox", answer.stdout, (153,), advice):
        raise Problem(problem)
    return firefox


def find(names, packages):
    for _ in range(2):
        for name in names:
            if found := shutil.which(name):
                return found
        prerequisites.install_packages(packages, "The tests drive the page in real browsers")
    raise Problem(f"{packages[0]} was installed, but is not on PATH.")
