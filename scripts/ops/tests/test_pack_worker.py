import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from common.console import Problem
from ops import pack_worker

PART = 64 << 10

# Says what it got and where it looks for libraries.
PROGRAM = """#!/bin/sh
echo "$@"
echo "$LD_LIBRARY_PATH"
echo "$RETOUCH_MODELS_DIR $ORT_DYLIB_PATH"
"""


class PackWorkerTest(unittest.TestCase):
    def setUp(self):
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.program = self.place / "built/retouch-worker"
        self.program.parent.mkdir()
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.libraries = self.place / "onnxruntime-gpu"
        self.libraries.mkdir()
        for name in ("libonnxruntime.so.1.2.3", "libonnxruntime_providers_cuda.so"):
            # Noise, which gzip cannot make smaller.
            (self.libraries / name).write_bytes(random.Random(name).randbytes(PART))
        self.models = self.place / "models"
        for name in ("used", "clicked", "unused"):
            (self.models / name).mkdir(parents=True)
            (self.models / name / "model.toml").write_text(name)
        bind, select = '[[bind]]\nmodel = "used"\ntool = "upscale"\ntier = "{}"\ndevice = "any"\n', '[[select]]\nmodel = "clicked"\ndevice = "any"\n'
        (self.models / "tools.toml").write_text(bind.format("paid") + bind.format("free") + select)
        self.packed = self.place / "packed"

    def pack(self, part_bytes=PART):
        return pack_worker.pack(self.packed, part_bytes, self.program, self.libraries, self.models)

    def start(self, *arguments, **environment):
        command = ["sh", str(self.packed / "bench"), *arguments]
        return subprocess.run(command, cwd="/", capture_output=True, text=True, env=os.environ | environment)

    def test_parts_unpack_and_start_elsewhere(self):
        parts = self.pack()
        self.assertGreater(len(parts), 2)
        self.assertTrue(all(part.stat().st_size == PART for part in parts[:-1]))
        ran = self.start("--minutes", "8", LD_LIBRARY_PATH="/given")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        said, libraries, packed = ran.stdout.splitlines()
        self.assertEqual(said, "bench --all --out results --minutes 8")
        self.assertTrue(libraries.endswith("/given"), libraries)
        self.assertEqual(packed, "retouch/models retouch/onnxruntime/libonnxruntime.so.1.2.3")
        self.assertEqual(self.start("models", "check", "used").stdout.splitlines()[0], "models check used")
        unpacked = self.packed / "retouch"
        self.assertEqual((unpacked / "models/tools.toml").read_text(), (self.models / "tools.toml").read_text())
        self.assertEqual(sorted(path.name for path in (unpacked / "models").iterdir()), ["clicked", "tools.toml", "used"])
        for library in self.libraries.iterdir():
            self.assertEqual((unpacked / "onnxruntime" / library.name).read_bytes(), library.read_bytes())

    def test_a_linked_model_file_is_packed_itself(self):
        (self.place / "weights.onnx").write_bytes(b"weights")
        (self.models / "used/net.onnx").symlink_to(self.place / "weights.onnx")
        self.pack()
        self.assertEqual(self.start().returncode, 0)
        unpacked = self.packed / "retouch/models/used/net.onnx"
        self.assertFalse(unpacked.is_symlink())
        self.assertEqual(unpacked.read_bytes(), b"weights")

    def test_more_than_a_hundred_parts_unpack_in_order(self):
        self.assertGreater(len(self.pack(1 << 10)), 100)
        ran = self.start()
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_libraries_of_python_packages_come_first(self):
        self.pack()
        folder = self.place / "site/nvidia/cudnn/lib"
        folder.mkdir(parents=True)
        ran = self.start(PYTHONPATH=str(self.place / "site"), LD_LIBRARY_PATH="/given")
        self.assertTrue(ran.stdout.splitlines()[1].startswith(f"{folder}"), ran.stdout)

    def test_a_damaged_part_is_refused(self):
        part = self.pack()[1]
        part.write_bytes(part.read_bytes()[:-1] + b"x")
        ran = self.start()
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(part.name, ran.stdout + ran.stderr)
        self.assertFalse((self.packed / "retouch").exists())

    def test_a_folder_with_files_is_refused(self):
        self.pack()
        with self.assertRaises(Problem):
            self.pack()


if __name__ == "__main__":
    unittest.main()
