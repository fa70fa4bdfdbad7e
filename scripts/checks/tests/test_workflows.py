import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from checks import git_files, validators, workflows
from checks.containers.checks import CPU, FILE, config
from common.console import Problem

GOOD = """\
name: example
on: push
permissions: {}
jobs:
  example:
    runs-on: ubuntu-24.04
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - run: echo "$GITHUB_SHA"
"""


# Workflows by name; each is GOOD with one change.
VARIANTS = {
    "good": ("", ""),
    "unknown-key": ("steps:", "step:"),
    "unknown-job": ("    steps:", "    needs: nobody\n    steps:"),
    "unknown-scope": ("contents: read", "content: read"),
    "no-yaml": ("jobs:", "jobs"),
    "not-pinned": ("3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "v7"),
    "all-permissions": ("    permissions:\n      contents: read", "    permissions: write-all"),
    "injection": ('"$GITHUB_SHA"', "${{ github.event.head_commit.message }}"),
}


class WorkflowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Checks all variants at once, because actionlint takes a second to start."""
        with tempfile.TemporaryDirectory() as folder:
            for name, (before, after) in VARIANTS.items():
                assert before in GOOD, before
                (Path(folder) / f"{name}.yml").write_text(GOOD.replace(before, after))
            output = "\n".join(workflows.check(Path(folder)))
        cls.found = re.split(r"\n+(?=\S+\.yml:|error\[| ?WARN)", output)

    def findings(self, name):
        return " ".join(finding for finding in self.found if f"/{name}.yml" in finding)

    def test_the_workflows_of_this_repository_pass(self):
        self.assertEqual(workflows.check(), [])

    def test_a_valid_workflow_passes(self):
        self.assertEqual(self.findings("good"), "")

    def test_syntax_errors_are_found(self):
        self.assertIn('unexpected key "step"', self.findings("unknown-key"))
        self.assertIn('needs job "nobody" which does not exist', self.findings("unknown-job"))
        self.assertIn("unknown permission scope", self.findings("unknown-scope"))
        self.assertIn("could not parse as YAML", self.findings("no-yaml"))

    def test_an_action_not_pinned_to_a_commit_is_found(self):
        self.assertIn("unpinned-uses", self.findings("not-pinned"))

    def test_excessive_permissions_are_found(self):
        self.assertIn("excessive-permissions", self.findings("all-permissions"))

    def test_script_injection_is_found(self):
        self.assertIn("potentially untrusted", self.findings("injection"))


class CheckoutTest(unittest.TestCase):
    def test_git_reads_a_checkout_of_another_user(self):
        """In a container, the steps run as root, and the checkout belongs to the user of the runner."""
        steps = validators.yaml().safe_load((workflows.FOLDER / "test.yml").read_text())["jobs"]["test"]["steps"]
        commands = [step["run"] for step in steps if "git config" in step.get("run", "")]
        with tempfile.TemporaryDirectory() as folder:
            checkout = Path(folder) / "retouch"
            subprocess.run(["git", "init", "--quiet", checkout], check=True)
            (checkout / "page.md").write_text("# Page\n")
            other_user = {"HOME": folder, "GITHUB_WORKSPACE": str(checkout), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "GIT_CONFIG_NOSYSTEM": "1"}
            with mock.patch.dict(os.environ, other_user):
                with self.assertRaisesRegex(Problem, "dubious ownership"):
                    git_files.listed(checkout, "--others")
                for command in commands:
                    subprocess.run(["bash", "-ec", command], check=True)
                self.assertEqual(git_files.listed(checkout, "--others"), ["page.md"])


class ReleaseTest(unittest.TestCase):
    def test_every_image_of_compose_is_published(self):
        services = [*config([FILE], ["central", "worker", "tools"])["services"].values(), config([FILE, CPU], ["worker"])["services"]["worker"]]
        built = {service["build"]["target"] for service in services if service.get("build")}
        [listed] = re.findall(r"^ +target: \[(.+)\]$", (workflows.FOLDER / "release.yml").read_text(), re.M)
        self.assertEqual(set(listed.split(", ")), built)


if __name__ == "__main__":
    unittest.main()
