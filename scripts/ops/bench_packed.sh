#!/bin/sh
# Checks and unpacks the parts beside this script, and measures this machine. Arguments go to `retouch-worker bench --all`.
# With a command of the worker as the first argument, such as `sh bench doctor`, runs that instead.
set -eu
cd "$(dirname "$0")"
if [ ! -x retouch/retouch-worker ]; then
    sha256sum --check --quiet SHA256SUMS
    mkdir -p unpacking
    cat retouch-worker.tar.gz.* | tar -xz -C unpacking
    mv unpacking/retouch .
    rmdir unpacking
fi
# CUDA and cuDNN in Python packages, as PyTorch installs them; empty if there are none, and the linker finds its own.
packaged=$(python3 -c '
import glob, sys
print(":".join(folder for path in sys.path for folder in sorted(glob.glob(path + "/nvidia/*/lib"))))
' 2>/dev/null || true)
LD_LIBRARY_PATH="${packaged}${packaged:+:}${LD_LIBRARY_PATH:-}"
export LD_LIBRARY_PATH
library=$(ls retouch/onnxruntime/libonnxruntime.so.*)
# With a card, a worker that falls back to the CPU would measure the wrong machine.
if nvidia-smi --list-gpus >/dev/null 2>&1; then
    RETOUCH_DEVICE="${RETOUCH_DEVICE:-cuda}"
    export RETOUCH_DEVICE
fi
# As in the images.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}"
export RETOUCH_MODELS_DIR=retouch/models ORT_DYLIB_PATH="$library"
case "${1:-}" in
bench | credentials | doctor | models | run) exec retouch/retouch-worker "$@" ;;
esac
exec retouch/retouch-worker bench --all --out results "$@"
