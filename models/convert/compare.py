#!/usr/bin/env python3
"""Compares the results and the speed of a converted net with ncnn itself.

    pip install ncnn==1.0.20261020 numpy==2.4.6 onnxruntime==1.31.1
    models/convert/compare.py NET.param NET.bin NET.onnx [--side 128] [--threads 2] [--runs 30]

Both get the same square of noise with a fade and alternate, so that other load hits both. The best runs are compared,
because they are the closest to an idle machine.
"""

import argparse
import statistics
import time

import ncnn
import numpy as np
import onnxruntime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("param")
    parser.add_argument("bin")
    parser.add_argument("onnx")
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    noise = np.random.default_rng(0).random((3, options.side, options.side), np.float32)
    picture = np.ascontiguousarray(noise * np.linspace(0, 1, options.side, dtype=np.float32))
    runs = {
        "ncnn": with_ncnn(options, picture),
        "ncnn without Winograd": with_ncnn(options, picture, winograd=False),
        "ONNX Runtime": with_onnxruntime(options, picture),
    }
    expected = runs["ncnn"]()
    for name, run in runs.items():
        print(f"{name}: differs by at most {np.abs(run() - expected).max():.1e}")
    seconds = {name: [] for name in runs}
    for _ in range(options.runs):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    for name, taken in seconds.items():
        best, median = min(taken), statistics.median(taken)
        ratio = best / min(seconds["ncnn"])
        print(f"{name}: best {best * 1e3:.1f} ms, median {median * 1e3:.1f} ms, ratio to ncnn's best {ratio:.2f}")


def with_ncnn(options, picture, winograd=True):
    net = ncnn.Net()
    net.opt.num_threads = options.threads
    net.opt.use_winograd_convolution = winograd
    # 32-bit floats, as in ONNX Runtime.
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(options.param) or net.load_model(options.bin):
        raise SystemExit("ncnn cannot load the net")
    [source], [target] = net.input_names(), net.output_names()

    def run():
        extractor = net.create_extractor()
        extractor.input(source, ncnn.Mat(picture))
        return np.array(extractor.extract(target)[1])

    return run


def with_onnxruntime(options, picture):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(options.onnx, settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(["output"], {"input": picture[None]})[0][0]


if __name__ == "__main__":
    main()
