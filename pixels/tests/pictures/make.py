"""Makes the JPEGs beside this script that differ only in their scans. Needs Debian's libjpeg-turbo-progs, and the Python
package Pillow.

    python3 make.py
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
SEPARATE = "0; 1; 2;"
PAIRED = "0; 1 2;"
# Like mozjpeg's: no scan of all components.
PROGRESSIVE = """
0: 0-0, 0, 1; 0: 1-8, 0, 2; 0: 9-63, 0, 2; 0: 1-63, 2, 1;
1 2: 0-0, 0, 1; 1: 1-63, 0, 1; 2: 1-63, 0, 1;
0: 0-0, 1, 0; 1 2: 0-0, 1, 0;
0: 1-63, 1, 0; 1: 1-63, 1, 0; 2: 1-63, 1, 0;
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        source = folder / "source.ppm"
        Image.open(HERE / "../photos/chelsea.png").convert("RGB").crop((120, 60, 219, 135)).save(source)
        whole = HERE / "interleaved.jpg"
        run("cjpeg", "-quality", "85", "-sample", "2x2", "-optimize", "-outfile", whole, source)
        for name, scans, *options in [
            ("separate-scans.jpg", SEPARATE),
            ("paired-scans.jpg", PAIRED),
            ("progressive-scans.jpg", PROGRESSIVE, "-restart", "6B"),
        ]:
            script = folder / "scans"
            script.write_text(scans)
            run("jpegtran", "-scans", script, *options, "-outfile", HERE / name, whole)


def run(*command):
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
