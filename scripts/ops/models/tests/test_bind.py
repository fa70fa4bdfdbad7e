import contextlib
import io
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from common.config import REPO
from common.console import Problem
from ops.models import ability, bind, demand, tools_text, worker_check
from ops.models.catalog import Catalog

SHIPPED = (REPO / "models/tools.toml").read_text()
MANIFEST = """\
name = "{name}"
task = "exemplar-fill"
licence = "MIT"
commercial_use = true
homepage = "https://example.com"
"""


def facts(name):
    return tomllib.loads((REPO / "models" / name / "model.toml").read_text())


# As it is before the tests replace it.
CHECK = worker_check.require


def scopes(*words, device="any"):
    return [scope for word in words for scope in demand.parse(word, device)]


class ToolsTextTest(unittest.TestCase):
    """Edits the tools.toml that is shipped."""

    def bound(self, *words, device="any", text=SHIPPED):
        return tools_text.bound(text, "new", scopes(*words, device=device))

    def comments(self, text):
        return [line for line in text.splitlines() if line.startswith("#")]

    def assert_serves(self, text, changed):
        """Checks that exactly these demands are served by the new model, and all others as before."""
        old, new = demand.served(SHIPPED), demand.served(text)
        self.assertEqual({point for point in new if new[point] == "new"}, changed)
        self.assertEqual({point: new[point] for point in old.keys() - changed}, {point: old[point] for point in old.keys() - changed})

    def test_a_mode_is_bound_on_every_device_in_place_of_the_old_line(self):
        text = self.bound("edit", "add")
        self.assertEqual(text, SHIPPED.replace('"shapes-demo"', '"new"'))

    def test_clicks_are_bound_and_unbound_in_tables_of_their_own(self):
        text = self.bound("select")
        self.assertEqual(text, SHIPPED.rstrip("\n") + '\n\n[[select]]\ndevice = "any"\nmodel = "new"\n')
        self.assertEqual(demand.served(text)["clicks", "cuda"], "new")
        narrower = tools_text.bound(text, "newer", scopes("select", device="cuda"))
        served = demand.served(narrower)
        self.assertEqual((served["clicks", "cpu"], served["clicks", "cuda"]), ("new", "newer"))
        self.assertEqual(tomllib.loads(tools_text.unbound(narrower, "newer", scopes("select"))), tomllib.loads(text))
        self.assertEqual(tools_text.bound("", "new", scopes("select")), '[[select]]\ndevice = "any"\nmodel = "new"\n')

    def test_every_binding_serves_what_it_says_and_nothing_else(self):
        every = {(f"remove-background:{tier}", device) for tier in ("paid", "free", "visitor") for device in ("cpu", "cuda")}
        for words, device, changed in (
            (("edit",), "cuda", {("magic-fix:paid:edit", "cuda")}),
            (("enhance",), "any", {("magic-fix:paid:enhance", "cpu"), ("magic-fix:paid:enhance", "cuda")}),
            (("upscale:paid:4x",), "any", {("upscale:paid:4x", "cpu"), ("upscale:paid:4x", "cuda")}),
            (("upscale:free",), "cpu", {("upscale:free:2x", "cpu")}),
            (("remove-background",), "any", every),
            (("magic-fix:paid:add",), "any", {("magic-fix:paid:add", "cpu"), ("magic-fix:paid:add", "cuda")}),
            (("magic-fix",), "any", {(f"magic-fix:paid:{mode}", device) for mode in demand.MODES for device in ("cpu", "cuda")}),
        ):
            with self.subTest(words):
                text = self.bound(*words, device=device)
                self.assert_serves(text, changed)
                self.assertEqual(self.bound(*words, device=device, text=text), text, "binding twice changes the file again")
                self.assertLessEqual(set(self.comments(text)), set(self.comments(SHIPPED)))

    def test_comments_of_other_lines_stay(self):
        text = self.bound("upscale:paid:4x")
        self.assertEqual(self.comments(text), self.comments(SHIPPED))

    def test_lines_that_can_never_win_are_removed(self):
        twice = SHIPPED + '\n[[bind]]\ntool = "magic-fix"\ntier = "paid"\nmode = "edit"\ndevice = "cuda"\nmodel = "late"\n'
        self.assertNotIn("late", self.bound("edit", text=twice))

    def test_an_empty_file_gets_its_first_lines(self):
        for text in ("", "# Nothing is bound yet.\n"):
            made = self.bound("edit", "add", text=text)
            self.assertTrue(made.startswith(text))
            self.assertEqual([line["mode"] for line in tomllib.loads(made)["bind"]], ["edit", "add"])
            self.assertNotIn("\n\n\n", made)

    def test_unbinding_undoes_a_binding(self):
        text = self.bound("upscale:paid:4x", "edit", device="cuda")
        self.assertEqual(tools_text.unbound(text, "new", scopes("upscale", "magic-fix", device="cuda")), SHIPPED)
        partly = tools_text.unbound(text, "new", scopes("edit"))
        self.assert_serves(partly, {("upscale:paid:4x", "cuda")})

    def test_words_that_mean_nothing_are_refused_with_what_is_accepted(self):
        for word, message in (
            ("paint", "'paint' names neither a tool nor a mode of Magic Fix; the tools are remove-background, upscale, magic-fix, the modes edit"),
            ("edit:free", "'free' is not a tier of magic-fix; its tiers are paid"),
            ("upscale:paid:3x", "too many parts at '3x'"),
            ("upscale:free:4x", "too many parts at '4x'"),
            ("remove-background:gold", "'gold' is not a tier of remove-background; its tiers are paid, free, visitor"),
        ):
            with self.subTest(word), self.assertRaises(Problem) as caught:
                demand.parse(word, "any")
            self.assertIn(message, str(caught.exception))

    def test_a_line_that_is_wrong_already_is_named(self):
        with self.assertRaisesRegex(Problem, "a line whose tier is 'gold'; accepted are paid, free, visitor"):
            self.bound("edit", text='[[bind]]\ntool = "upscale"\ntier = "gold"\ndevice = "any"\nmodel = "x"\n')


class AbilityTest(unittest.TestCase):
    """Asks what shipped models can serve."""

    def test_every_shipped_binding_is_one_that_its_model_can_serve(self):
        for (demanded, device), chain in demand.chains(SHIPPED).items():
            for name, _ in chain:
                with self.subTest(demanded, device=device, name=name):
                    self.assertIsNone(ability.objection(facts(name), demanded))

    def test_a_model_is_bound_only_to_what_its_task_can_do(self):
        for name, demanded, reason in (
            ("classical", "upscale:free:2x", "its task is exemplar-fill"),
            ("isnet", "magic-fix:paid:edit", "its task is segmentation"),
            ("isnet", "clicks", "its task is segmentation"),
            ("sam2-hiera-tiny", "clicks", None),
            ("sam2-hiera-tiny", "remove-background:free", "its task is segment-anything"),
            ("classical", "magic-fix:paid:edit", "its modes are remove, restore"),
            ("flux2-klein-4b", "magic-fix:paid:edit", None),
            ("realesrgan-x4plus", "magic-fix:paid:restore", "its modes are enhance"),
            ("dejpg", "magic-fix:paid:restore", None),
            ("dejpg", "upscale:free:2x", "its scale is 1: it cleans a picture without enlarging it; bind it to enhance or restore"),
        ):
            with self.subTest(name, demanded=demanded):
                self.assertEqual(ability.objection(facts(name), demanded), reason)

    def test_a_scale_serves_the_factors_that_a_worker_makes_of_it(self):
        served = {
            (scale, resample): [
                factor
                for factor in (2, 4)
                if not ability.objection({"task": "upscale", "upscale": {"scale": scale, "resample": resample}}, f"upscale:paid:{factor}x")
            ]
            for scale in (1, 2, 3, 4, 8)
            for resample in (False, True)
        }
        expected = {(1, False): [], (2, False): [2], (3, False): [], (4, False): [2, 4], (8, False): []}
        expected |= {(1, True): [], (2, True): [2], (3, True): [2, 4], (4, True): [2, 4], (8, True): [2, 4]}
        self.assertEqual(served, expected)


class BindTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.models = Path(scratch.name)
        for name in ("one", "two"):
            (self.models / name).mkdir()
            (self.models / name / "model.toml").write_text(MANIFEST.format(name=name))
        self.tools = self.models / "tools.toml"
        for module in (ability, worker_check):
            patch = mock.patch.object(module, "require", return_value=True)
            patch.start()
            self.addCleanup(patch.stop)

    def run_command(self, command, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            command(Catalog(self.models), *arguments)
        return output.getvalue()

    def take_offline(self, name, *words):
        return self.run_command(bind.unbind, name, words, "any", True)

    def test_the_output_says_what_served_before(self):
        self.run_command(bind.bind, "one", ["remove"], "any", None)
        self.assertIn("magic-fix:paid:remove on cuda: one → two\n", self.run_command(bind.bind, "two", ["remove"], "cuda", None))
        self.assertIn("Nothing changes", self.run_command(bind.bind, "two", ["remove"], "cuda", None))
        self.assertIn("magic-fix:paid:remove on cuda: two → one\n", self.run_command(bind.unbind, "two", [], "any"))

    def test_paid_runs_without_commercial_use_are_noticed(self):
        manifest = self.models / "one/model.toml"
        manifest.write_text(manifest.read_text().replace("commercial_use = true", "commercial_use = false"))
        notice = "! one serves paid runs now, but its license, MIT, does not allow commercial use.\n"
        self.assertIn(notice, self.run_command(bind.bind, "one", ["remove"], "any", None))
        self.assertNotIn("!", self.run_command(bind.bind, "one", ["upscale:free"], "any", None))
        self.assertNotIn("!", self.run_command(bind.bind, "two", ["remove"], "any", None))

    def test_the_file_is_replaced_in_one_step_and_keeps_its_mode(self):
        self.tools.write_text("")
        self.tools.chmod(0o640)
        before = self.tools.stat().st_ino
        self.run_command(bind.bind, "one", ["remove"], "any", None)
        after = self.tools.stat()
        self.assertNotEqual(after.st_ino, before)
        self.assertEqual(after.st_mode & 0o777, 0o640)

    def test_unbinding_what_is_not_bound_says_what_is(self):
        self.run_command(bind.bind, "one", ["remove"], "any", None)
        with self.assertRaisesRegex(Problem, "does not bind two to any of that. It binds one"):
            self.run_command(bind.unbind, "two", [], "any")
        with self.assertRaisesRegex(Problem, "does not bind one to any of that"):
            self.run_command(bind.unbind, "one", ["edit"], "any")

    def test_a_line_that_is_for_more_than_what_is_unbound_is_not_called_missing(self):
        self.run_command(bind.bind, "one", ["remove-background"], "any", None)
        for words in (["remove-background:free"], []):
            with self.subTest(words), self.assertRaises(Problem) as caught:
                self.run_command(bind.unbind, "one", words, "cuda")
            self.assertIn("binds one to remove-background:free on cuda", str(caught.exception))
            self.assertIn("in lines that are for more than that. Bind another model there instead", str(caught.exception))

    def test_a_tool_is_taken_offline_only_on_request(self):
        self.tools.write_text(SHIPPED)
        self.run_command(bind.bind, "two", ["remove-background:paid"], "any", None)
        bound = self.tools.read_text()
        with self.assertRaisesRegex(Problem, "without two, nothing would serve remove-background:paid. Bind another model"):
            self.run_command(bind.unbind, "two", ["remove-background:paid"], "any")
        self.assertEqual(self.tools.read_text(), bound)
        self.assertIn("remove-background:paid: two → nothing\n", self.take_offline("two", "remove-background:paid"))

    def test_clicks_fall_back_to_the_net_of_remove_background(self):
        self.tools.write_text(SHIPPED)
        said = self.run_command(bind.bind, "two", ["select"], "any", None)
        self.assertIn("clicks: the net of Remove Background → two\n", said)
        said = self.run_command(bind.unbind, "two", [], "any")
        self.assertIn("clicks: two → the net of Remove Background\n", said)
        self.assertNotIn("nobody", said)

    def test_the_last_binding_stays(self):
        self.run_command(bind.bind, "one", ["remove"], "any", None)
        before = self.tools.read_text()
        with self.assertRaisesRegex(Problem, "Without one, tools.toml would bind nothing, and workers refuse such a file"):
            self.run_command(bind.unbind, "one", [], "any")
        self.assertEqual(self.tools.read_text(), before)

    def test_a_line_with_a_size_limit_keeps_one_for_larger_pictures(self):
        self.tools.write_text(SHIPPED)
        for words, device in ((["upscale:paid"], "any"), (["upscale"], "cpu"), ([], "any")):
            with self.subTest(words), self.assertRaises(Problem) as caught:
                self.run_command(bind.unbind, "realesr-animevideov3-x4", words, device)
            refusal = "only realesrgan-x4plus would serve upscale:paid:2x on cpu, up to 65536 pixels and nothing larger"
            self.assertIn(refusal, str(caught.exception))
            self.assertEqual(self.tools.read_text(), SHIPPED)
        self.run_command(bind.unbind, "realesrgan-x4plus", ["upscale:paid"], "cpu")
        self.take_offline("realesr-animevideov3-x4", "upscale:paid")

    def test_a_file_that_workers_refuse_stays_as_it_is(self):
        text = '[[bind]]\ntool = "upscale"\ntier = "paid"\ndevice = "cpu"\nlargest_pixels = 9\nmodel = "one"\n'
        self.tools.write_text(text)
        with self.assertRaisesRegex(Problem, "only one would serve upscale:paid:2x on cpu, up to 9 pixels"):
            self.run_command(bind.bind, "two", ["upscale:free"], "any", None)
        self.assertEqual(self.tools.read_text(), text)

    def test_the_output_names_size_limits(self):
        self.tools.write_text(SHIPPED)
        output = self.run_command(bind.bind, "two", ["upscale:paid"], "any", None)
        self.assertIn("upscale:paid:2x on cpu: realesrgan-x4plus up to 65536 pixels, then realesr-animevideov3-x4 → two\n", output)

    def test_paid_upscales_are_served_once_both_factors_are_bound(self):
        output = self.run_command(bind.bind, "one", ["upscale:paid:2x"], "cpu", None)
        self.assertIn("! upscale:paid:2x on cpu is bound, but nobody serves it", output)
        self.assertNotIn("→", output)
        output = self.run_command(bind.bind, "two", ["upscale:paid:4x"], "cpu", None)
        self.assertIn("upscale:paid:2x on cpu: nothing → one\nupscale:paid:4x on cpu: nothing → two\n", output)
        self.assertNotIn("!", output)
        self.assertIn("upscale:paid:2x on cpu: one → nothing\n", self.take_offline("two"))

    def test_the_file_before_each_change_is_kept(self):
        self.tools.write_text(SHIPPED)
        self.assertIn("tools.toml.before.1; rename it", self.run_command(bind.bind, "two", ["upscale:paid"], "any", None))
        # Nothing changes, so there is nothing to go back to.
        self.assertNotIn("tools.toml.before", self.run_command(bind.bind, "two", ["upscale:paid"], "any", None))
        self.assertIn("tools.toml.before.2; rename it", self.run_command(bind.bind, "one", ["upscale:paid"], "any", None))
        Path(f"{self.tools}.before.1").rename(self.tools)
        self.assertEqual(self.tools.read_text(), SHIPPED)
        self.assertIn("tools.toml.before.3; rename it", self.run_command(bind.bind, "one", ["edit"], "any", None))

    def test_a_model_that_nobody_checked_is_not_said_to_load(self):
        with mock.patch.object(worker_check, "require", return_value=False):
            output = self.run_command(bind.bind, "one", ["edit"], "any", None)
        self.assertIn("Running workers will check one, and keep the old model if it fails: look at `/readyz`.", output)
        self.assertNotIn("load one", output)

    def test_a_refusal_names_the_models_folder_and_not_a_copy_of_it(self):
        model = Catalog(self.models).model("one")
        program = self.models / "retouch-worker"
        program.write_text('#!/bin/sh\necho "  golden    WRONG: $RETOUCH_MODELS_DIR/one/meta.json: it is missing"\nexit 1\n')
        program.chmod(0o755)
        with mock.patch.object(worker_check, "PROGRAMS", self.models), contextlib.redirect_stderr(io.StringIO()):
            settings = mock.Mock(values={"ORT_DYLIB_PATH": "x"})
            with self.assertRaisesRegex(Problem, f"WRONG: {self.models}/one/meta.json: it is missing"):
                CHECK(model, "", settings)

    def test_a_model_that_could_not_be_checked_is_not_called_wrong(self):
        said = "  memory    UNCHECKED: it needs 9 MiB\n  UNCHECKED it has no room here\n"
        unchecked = worker_check.refusal("one", said)
        self.assertEqual(unchecked[:2], ["one was not bound, because it could not be checked here:", "memory    UNCHECKED: it needs 9 MiB"])
        self.assertIn("a worker would refuse it", worker_check.refusal("one", "golden WRONG: no\n" + said)[0])

    def test_a_refusal_of_the_worker_changes_nothing(self):
        def refuse(*arguments):
            raise Problem("it is wrong")

        with mock.patch.object(worker_check, "require", refuse), self.assertRaisesRegex(Problem, "it is wrong"):
            self.run_command(bind.bind, "one", ["remove"], "any", None)
        self.assertFalse(self.tools.exists())


if __name__ == "__main__":
    unittest.main()
