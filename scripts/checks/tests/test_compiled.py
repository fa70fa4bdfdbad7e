import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from checks import compiled


class KeepsDependencies(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.kept = self.place / "kept"
        self.inputs = "first"
        for patch in (
            mock.patch.dict(os.environ, RETOUCH_COMPILED=str(self.kept)),
            mock.patch.object(compiled, "inputs", lambda: self.inputs),
            mock.patch.object(compiled, "REPO", self.place),
        ):
            patch.start()
            self.addCleanup(patch.stop)

    def clone(self, name, *files):
        target = self.place / name / "target"
        for file in files:
            path = target / "release" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (1_000, 1_000))
        for part in compiled.PARTS if files else ():
            (target / "release" / part).mkdir(exist_ok=True)
        return mock.patch.object(compiled, "TARGET", target)

    def files_in(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def test_another_clone_gets_the_dependencies_but_not_our_own_crates(self):
        built = [
            "deps/libserde-1.rlib",
            "deps/libretouch_core-2.rlib",
            "deps/it-3",
            "build/ring-4/out/x.o",
            ".fingerprint/serde-1/lib-serde",
            ".fingerprint/retouch-core-2/lib-retouch_core",
            "retouch-api",
        ]
        with self.clone("one", *built):
            compiled.keep()
        with self.clone("two"):
            compiled.restore()
        copied = self.place / "two" / "target" / "release"
        self.assertEqual(self.files_in(copied), {"deps/libserde-1.rlib", "build/ring-4/out/x.o", ".fingerprint/serde-1/lib-serde"})
        self.assertEqual((copied / "deps/libserde-1.rlib").stat().st_mtime, 1_000)

    def test_resample_is_kept_and_compiled_only_when_it_changes(self):
        source = self.place / compiled.RESAMPLE_SOURCES / "src/lib.rs"
        source.parent.mkdir(parents=True)
        source.write_text("first")
        built = ["deps/libretouch_resample-1.rlib", ".fingerprint/retouch-resample-1/dep-lib-retouch_resample", "deps/libretouch_pixels-2.rlib"]
        with self.clone("one", *built):
            compiled.keep()
        for clone, text, is_fresh in [("two", "first", True), ("three", "second", False)]:
            source.write_text(text)
            with self.clone(clone):
                compiled.restore()
            self.assertEqual(self.files_in(self.place / clone / "target/release"), set(built[:2]))
            self.assertEqual(source.stat().st_mtime == compiled.LONG_AGO, is_fresh)
        with self.clone("four", *built[:2]):
            compiled.keep()
        self.assertEqual((self.kept / "release" / built[0]).read_text(), "four")

    def test_only_what_rustc_replaces_is_linked(self):
        with self.clone("one", "deps/libserde-1.rlib", "deps/libserde-1.rmeta", "deps/serde-1.d", ".fingerprint/serde-1/lib"):
            compiled.keep()
        linked = {path.name for path in (self.kept / "release").rglob("*") if path.is_file() and path.stat().st_nlink == 2}
        self.assertEqual(linked, {"libserde-1.rlib", "libserde-1.rmeta"})

    def test_dependencies_are_replaced_when_the_lock_file_changes(self):
        with self.clone("one", "deps/libserde-1.rlib"):
            compiled.keep()
        with self.clone("two", "deps/libserde-2.rlib"):
            compiled.keep()
            self.assertEqual(self.files_in(self.kept / "release"), {"deps/libserde-1.rlib"})
            self.inputs = "second"
            compiled.keep()
            self.assertEqual(self.files_in(self.kept / "release"), {"deps/libserde-2.rlib"})
