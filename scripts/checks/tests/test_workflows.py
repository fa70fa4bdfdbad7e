import re
import tempfile
import unittest
from pathlib import Path

from checks import workflows
from checks.containers.checks import CPU, FILE, config

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


class WorkflowTest(unittest.TestCase):
    def findings(self, before="", after=""):
        """Returns the findings for a workflow with one change."""
        self.assertIn(before, GOOD)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "example.yml").write_text(GOOD.replace(before, after))
            return " ".join(workflows.check(Path(folder)))

    def test_the_workflows_of_this_repository_pass(self):
        self.assertEqual(workflows.check(), [])

    def test_a_valid_workflow_passes(self):
        self.assertEqual(self.findings(), "")

    def test_syntax_errors_are_found(self):
        self.assertIn('unexpected key "step"', self.findings("steps:", "step:"))
        self.assertIn('needs job "nobody" which does not exist', self.findings("    steps:", "    needs: nobody\n    steps:"))
        self.assertIn("unknown permission scope", self.findings("contents: read", "content: read"))
        self.assertIn("could not parse as YAML", self.findings("jobs:", "jobs"))

    def test_an_action_not_pinned_to_a_commit_is_found(self):
        self.assertIn("unpinned-uses", self.findings("3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "v7"))

    def test_excessive_permissions_are_found(self):
        self.assertIn("excessive-permissions", self.findings("    permissions:\n      contents: read", "    permissions: write-all"))

    def test_script_injection_is_found(self):
        self.assertIn("potentially untrusted", self.findings('"$GITHUB_SHA"', "${{ github.event.head_commit.message }}"))


class ReleaseTest(unittest.TestCase):
    def test_every_image_of_compose_is_published(self):
        services = [*config([FILE], ["central", "tools"])["services"].values(), config([FILE, CPU])["services"]["worker"]]
        built = {service["build"]["target"] for service in services if service.get("build")}
        [listed] = re.findall(r"^ +target: \[(.+)\]$", (workflows.FOLDER / "release.yml").read_text(), re.M)
        self.assertEqual(set(listed.split(", ")), built)


if __name__ == "__main__":
    unittest.main()
