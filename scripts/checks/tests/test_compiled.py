import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from checks import compiled

BUILT = (
    "deps/libserde-1.rlib",
    "deps/libretouch_core-2.rlib",
    "deps/it-3",
    "build/ring-4/out/x.o",
    ".fingerprint/serde-1/lib-serde",
    ".fingerprint/retouch-core-2/lib-retouch_core",
)
OF_DEPENDENCIES = {"deps/libserde-1.rlib", "build/ring-4/out/x.o", ".fingerprint/serde-1/lib-serde"}


class KeepsCompiled(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.kept = self.place / "kept"
        self.replace(mock.patch.dict(os.environ, RETOUCH_COMPILED=str(self.kept)))
        self.replace(mock.patch.object(compiled, "SOURCES", ("core", *compiled.SHARED)))
        self.sources = {"core/lib.rs": "first", "core/jobs.rs": "first", "migrations/1.sql": "first"}

    def replace(self, patch):
        patch.start()
        self.addCleanup(patch.stop)

    def clone(self, name="clone", time=None):
        """Makes a clone with the present sources, and copies into it what is kept. `time` is that of its files."""
        clone = self.place / name
        shutil.rmtree(clone, ignore_errors=True)
        for path, text in self.sources.items():
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            (clone / path).write_text(text)
            if time:
                os.utime(clone / path, (time, time))
        subprocess.run("git init --quiet && git add .", shell=True, cwd=clone, check=True)
        self.replace(mock.patch.object(compiled, "REPO", clone))
        self.replace(mock.patch.object(compiled, "TARGET", clone / "target"))
        with contextlib.redirect_stdout(io.StringIO()):
            self.state = compiled.restore()
        return clone

    def run_in(self, name="clone"):
        clone = self.clone(name)
        for file in BUILT:
            path = clone / "target/release" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (1_000, 1_000))
        self.keep()
        return clone

    def keep(self):
        with contextlib.redirect_stdout(io.StringIO()):
            compiled.keep(self.state)

    def files_in(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def times(self, clone):
        return {name: (clone / name).stat().st_mtime for name in ("migrations", *self.sources)}

    def test_a_clone_in_another_place_gets_the_dependencies_but_not_our_own_crates(self):
        self.run_in("one")
        copied = self.clone("two") / "target/release"
        self.assertEqual(self.files_in(copied), OF_DEPENDENCIES)
        self.assertEqual((copied / "deps/libserde-1.rlib").stat().st_mtime, 1_000)

    def test_a_clone_in_the_same_place_gets_everything_and_the_times_of_unchanged_files(self):
        self.run_in()
        first = self.state
        self.sources["core/jobs.rs"] = "second"
        clone = self.clone()
        self.assertEqual(self.files_in(clone / "target/release"), set(BUILT))
        times = self.times(clone)
        self.assertAlmostEqual(times["core/lib.rs"], first["core/lib.rs"][1], places=3)
        self.assertAlmostEqual(times["migrations"], first["migrations/1.sql"][1], places=3)
        self.assertGreater(times["core/jobs.rs"], first["core/jobs.rs"][1])
        # Artifacts of the first content may still be there; they must be older than the file.
        self.keep()
        self.sources["core/lib.rs"] = "third"
        self.assertGreater(self.times(self.clone())["core/jobs.rs"], first["core/jobs.rs"][1])

    def test_without_a_record_only_the_dependencies_are_copied(self):
        self.run_in()
        (self.kept / "sources.json").unlink()
        self.assertEqual(self.files_in(self.clone() / "target/release"), OF_DEPENDENCIES)

    def test_a_change_that_all_crates_share_compiles_them_all(self):
        self.run_in()
        first = self.state
        self.sources["migrations/2.sql"] = "first"
        clone = self.clone()
        self.assertTrue(all(time > first["core/lib.rs"][1] for time in self.times(clone).values()))
        self.assertEqual(self.files_in(clone / "target/release"), OF_DEPENDENCIES)

    def test_a_file_that_changes_during_the_run_is_new_in_the_next_one(self):
        clone = self.clone()
        (clone / "target/release/deps").mkdir(parents=True)
        for part in compiled.PARTS:
            (clone / "target/release" / part).mkdir(exist_ok=True)
        self.sources["core/lib.rs"] = "second"
        (clone / "core/lib.rs").write_text("second")
        first = self.state
        self.keep()
        self.assertGreater(self.times(self.clone())["core/lib.rs"], first["core/lib.rs"][1])

    def test_a_changed_file_is_new_in_a_copy_that_keeps_times(self):
        self.run_in()
        first = self.state
        self.sources["core/jobs.rs"] = "second"
        times = self.times(self.clone(time=500))
        self.assertGreater(times["core/jobs.rs"], first["core/jobs.rs"][1])
        self.assertAlmostEqual(times["core/lib.rs"], first["core/lib.rs"][1], places=3)

    def test_a_second_run_in_a_clone_records_nothing(self):
        clone = self.run_in()
        record = (self.kept / "sources.json").read_text()
        self.assertIsNone(compiled.restore())
        self.state = None
        (clone / "core/lib.rs").write_text("second")
        self.keep()
        self.assertEqual((self.kept / "sources.json").read_text(), record)

    def test_only_what_rustc_replaces_is_linked(self):
        self.run_in()
        linked = {path.name for path in (self.kept / "release").rglob("*") if path.is_file() and path.stat().st_nlink == 2}
        self.assertEqual(linked, {"libserde-1.rlib", "libretouch_core-2.rlib"})
