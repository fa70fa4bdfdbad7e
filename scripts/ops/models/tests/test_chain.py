"""The whole way of a pipeline, through the real programs: fetch, convert, check, bind, verify."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

from common.config import PROGRAMS, REPO
from common.console import warn
from ops.models import runtime

from . import hub_model
from .fake_hub import FakeHub

WORKER = PROGRAMS / "retouch-worker"
NAME = "tiny-inpainting"
TOOLS = """\
# Which model serves what.

# The demo, until there is a real one.
[[bind]]
tool = "magic-fix"
tier = "paid"
mode = "edit"
device = "any"
model = "demo" # a placeholder
"""


class ChainTest(unittest.TestCase):
    def setUp(self):
        if not WORKER.is_file():
            reason = f"{WORKER} is not built: the chain from a hub to a bound model was NOT tested"
            warn(reason)
            self.skipTest(reason)
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = Path(scratch.name) / "models"
        (self.models / "templates").mkdir(parents=True)
        (self.models / "tools.toml").write_text(TOOLS)
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.hub.repositories[hub_model.REPOSITORY] = hub_model.published()
        (self.models / f"templates/{NAME}.toml").write_text(hub_model.template(hub_model.published()))
        self.environment = {
            **os.environ,
            **self.hub.environment,
            "RETOUCH_MODELS_DIR": str(self.models),
            "RETOUCH_DEVICE": "cpu",
            "ORT_DYLIB_PATH": str(runtime.fetch("cpu")),
        }

    def run_program(self, *command):
        done = subprocess.run(
            [str(part) for part in command],
            cwd=REPO,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def models_script(self, *words):
        return self.run_program(sys.executable, "-B", REPO / "scripts/models", *words)

    def succeed(self, answer):
        code, output = answer
        self.assertEqual(code, 0, output)
        return output

    def test_two_commands_give_a_model_that_serves_and_agrees_with_diffusers(self):
        self.hub.break_after = [10**9, 10**9, 10**9, 40_000]
        code, output = self.models_script("fetch", NAME)
        self.assertEqual(code, 1)
        self.assertIn("--accept-licence", output)

        self.assertIn("resuming at", self.succeed(self.models_script("fetch", NAME, "--accept-licence")))
        output = self.succeed(self.models_script("bind", NAME, "edit", "add"))
        self.assertIn(f"magic-fix:paid:edit: demo → {NAME}", output)
        self.assertIn(f"magic-fix:paid:add: nothing → {NAME}", output)

        tools = (self.models / "tools.toml").read_text()
        self.assertIn("# The demo, until there is a real one.", tools)
        self.assertEqual([(line["mode"], line["model"]) for line in tomllib.loads(tools)["bind"]], [("edit", NAME), ("add", NAME)])
        checked = self.succeed(self.run_program(WORKER, "models", "check"))
        self.assertIn("RIGHT", checked)
        reference = REPO / "models/tiny/sd-inpaint/reference"
        verified = self.succeed(self.run_program(WORKER, "models", "verify", self.models / NAME, "--reference", reference))
        self.assertIn("cases compared", verified)

        code, output = self.models_script("unbind", NAME, "add")
        self.assertEqual(code, 1)
        self.assertIn(f"without {NAME}, nothing would serve magic-fix:paid:add", output)
        self.assertIn("nobody serves it now", self.succeed(self.models_script("unbind", NAME, "add", "--take-offline")))
        self.assertEqual([line["mode"] for line in tomllib.loads((self.models / "tools.toml").read_text())["bind"]], ["edit"])

    def test_a_pipeline_that_a_worker_refuses_is_not_bound(self):
        export = self.models.parent / "export"
        for path, data in hub_model.published().items():
            (export / path).parent.mkdir(parents=True, exist_ok=True)
            (export / path).write_bytes(data)
        self.succeed(self.models_script("adopt", NAME, export))
        code, output = self.models_script("bind", NAME, "edit")
        self.assertEqual(code, 1)
        self.assertIn(f"{NAME} was not bound, because a worker would refuse it", output)
        self.assertIn("latent_sample", output)
        self.assertEqual((self.models / "tools.toml").read_text(), TOOLS)

    def test_a_model_is_not_bound_to_what_it_cannot_do(self):
        self.succeed(self.models_script("fetch", NAME, "--accept-license"))
        code, output = self.models_script("bind", NAME, "remove-background:free")
        self.assertEqual(code, 1)
        self.assertIn(f"{NAME} was not bound, because it cannot serve remove-background:free: its task is sd-inpaint", output)
        self.assertEqual((self.models / "tools.toml").read_text(), TOOLS)

    def test_without_a_worker_the_model_is_bound_and_the_gap_is_named(self):
        self.succeed(self.models_script("fetch", NAME, "--accept-licence"))
        self.environment["RETOUCH_CARGO_PROFILE"] = "a-profile-that-was-never-built"
        output = self.succeed(self.models_script("bind", NAME, "add"))
        self.assertIn("No worker is built here, so only the manifest and the checksums", output)
        self.assertIn(f"Running workers will check {NAME}", output)
        shutil.rmtree(self.models / NAME / "unet")
        code, output = self.models_script("bind", NAME, "edit")
        self.assertEqual(code, 1)
        self.assertIn(f"are not complete (missing). Run `scripts/models fetch {NAME}` first", output)


if __name__ == "__main__":
    unittest.main()
