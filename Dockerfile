# The images of Retouch: api (with the page), worker-cpu, worker-cuda, models (fetches the model files), and backup.
#
#   docker build --target api -t localhost/retouch/api .
#
# There is no `# syntax=` line, because it would pull another image. All downloads are pinned, by a lock file or by sha256,
# and kept in the caches of BuildKit.

ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG NODE_IMAGE=node:20-bookworm-slim
# The base image of the programs. Its glibc must be at least as new as that of RUST_IMAGE.
ARG RUNTIME_IMAGE=debian:bookworm-slim
# The base image of backup. pg_dump must be at least as new as the server.
ARG POSTGRES_CLIENT_IMAGE=postgres:18-bookworm
# `built` compiles the programs and the page; `prebuilt` copies target/release and ui/dist.
ARG BINARIES=built
# `with` adds TensorRT to worker-cuda (3 GB more), from the package index of NVIDIA.
ARG TENSORRT=without


# ---- The programs ------------------------------------------------------------------------------------------------

FROM ${RUST_IMAGE} AS compiled
WORKDIR /retouch
ENV CARGO_INCREMENTAL=0 SQLX_OFFLINE=true
# Without rust-toolchain.toml, because rustup would fetch another toolchain.
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
COPY .sqlx .sqlx
COPY catalog catalog
COPY prompts prompts
COPY pixels pixels
COPY heif heif
COPY inference inference
COPY credentials credentials
COPY core core
COPY api api
COPY worker worker
COPY standins standins
COPY migrations migrations
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/retouch/target,sharing=locked \
    cargo build --profile dist --locked --bin retouch-api --bin retouch-worker \
    && install -D -t /programs target/dist/retouch-api target/dist/retouch-worker

FROM scratch AS built
COPY --from=compiled /programs/ /

FROM scratch AS prebuilt
COPY target/release/retouch-api target/release/retouch-worker /

# The stage that BINARIES selects.
FROM ${BINARIES} AS programs


# ---- The page ----------------------------------------------------------------------------------------------------

FROM ${NODE_IMAGE} AS bundled
WORKDIR /retouch/ui
COPY ui/package.json ui/package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-fund --no-audit
COPY ui ./
RUN npm run build

FROM scratch AS built-page
COPY --from=bundled /retouch/ui/dist/ /

FROM scratch AS prebuilt-page
COPY ui/dist/ /

FROM ${BINARIES}-page AS page


# ---- Models and ONNX Runtime: scripts/models in an image with pip and npm --------------------------------------------

FROM ${NODE_IMAGE} AS fetching
# Unpinned, because Debian publishes security fixes and removes old versions from its mirrors.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-pip \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /retouch
COPY scripts/models scripts/models
COPY scripts/common scripts/common
COPY scripts/ops/__init__.py scripts/ops/
COPY scripts/ops/models scripts/ops/models
COPY models/convert models/convert
# Interrupted downloads; with a volume here, they resume.
RUN mkdir .retouch && chmod 1777 .retouch
ENV RETOUCH_MODELS_DIR=/models HOME=/tmp

FROM fetching AS models
LABEL org.opencontainers.image.title="Retouch: fetches the models" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
ENTRYPOINT ["/retouch/scripts/models"]
CMD ["fetch"]

FROM fetching AS onnxruntime-cpu
RUN --mount=type=cache,target=/retouch/.retouch/downloads \
    install -D -m 644 -t /opt/onnxruntime "$(scripts/models runtime)" \
    && ln -s /opt/onnxruntime/libonnxruntime.so.* /opt/onnxruntime/libonnxruntime.so

FROM fetching AS onnxruntime-cuda
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN --mount=type=cache,target=/retouch/.retouch/downloads \
    library="$(scripts/models runtime --gpu)" \
    && install -D -m 644 -t /opt/onnxruntime "${library%/*}"/*.so* \
    && ln -s /opt/onnxruntime/libonnxruntime.so.* /opt/onnxruntime/libonnxruntime.so

# CUDA 13 and cuDNN 9, from wheels by NVIDIA.
FROM fetching AS cuda
COPY deploy/compose/cuda-libraries.txt ./
# Leaves out unused libraries (nvblas, cufftw) and duplicates (`.alt`).
RUN --mount=type=cache,target=/tmp/.cache/pip \
    python3 -m pip install --no-deps --only-binary=:all: --require-hashes --no-compile --target /wheels \
        --disable-pip-version-check -r cuda-libraries.txt \
    && mkdir -p /opt/cuda \
    && find /wheels/nvidia -name '*.so*' -type f ! -name '*.alt.so*' ! -name 'libnvblas*' ! -name 'libcufftw*' \
        -exec mv -t /opt/cuda {} + \
    && rm -rf /wheels

FROM fetching AS tensorrt-without
RUN mkdir /opt/tensorrt

FROM onnxruntime-cuda AS tensorrt-download
ARG TENSORRT_VERSION=10.16.1.11
ARG TENSORRT_INDEX=https://pypi.nvidia.com
# The provider of ONNX Runtime is in the wheel that the previous stage has downloaded.
RUN --mount=type=cache,target=/retouch/.retouch/downloads \
    --mount=type=cache,target=/tmp/.cache/pip \
    python3 -m pip install --no-deps --only-binary=:all: --no-compile --target /wheels \
        --disable-pip-version-check --extra-index-url "${TENSORRT_INDEX}" "tensorrt-cu13-libs==${TENSORRT_VERSION}" \
    && mkdir -p /opt/tensorrt && mv /wheels/tensorrt_libs/*.so* /opt/tensorrt/ \
    && wheel="$(PYTHONPATH=scripts python3 -c 'from ops.models import runtime; print(runtime.BUILDS["gpu"]["sha256"])')" \
    && python3 -m zipfile -e ".retouch/downloads/${wheel}" /wheels \
    && mv /wheels/onnxruntime/capi/libonnxruntime_providers_tensorrt.so /opt/tensorrt/ \
    && rm -rf /wheels

FROM scratch AS tensorrt-with
COPY --from=tensorrt-download /opt/tensorrt/ /opt/tensorrt/

# A stage, which has no tag.
# hadolint ignore=DL3006
FROM tensorrt-${TENSORRT} AS tensorrt


# ---- Images --------------------------------------------------------------------------------------------------------

FROM ${RUNTIME_IMAGE} AS runtime
# Unpinned, see above. libheif1 reads HEIC and AVIF; a process without rights loads it for each picture.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libheif1 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 retouch \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin retouch
USER 10001:10001

FROM runtime AS api
COPY --from=programs /retouch-api /usr/local/bin/retouch-api
COPY --from=page / /usr/local/share/retouch/page/
ENV RETOUCH_LISTEN=0.0.0.0:8080 RETOUCH_UI_DIR=/usr/local/share/retouch/page
EXPOSE 8080
LABEL org.opencontainers.image.title="Retouch: API and page" \
      org.opencontainers.image.licenses="Apache-2.0"
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["/usr/local/bin/retouch-api", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/retouch-api"]
CMD ["serve"]

# Backup and restore, with the programs of Postgres.
FROM ${POSTGRES_CLIENT_IMAGE} AS backup
USER 0:0
# Unpinned, see above.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*
COPY scripts/backup scripts/restore /retouch/scripts/
COPY scripts/common /retouch/scripts/common
COPY scripts/ops/*.py /retouch/scripts/ops/
COPY --from=programs /retouch-api /usr/local/bin/retouch-api
# The base image sets PG_MAJOR.
ENV RETOUCH_POSTGRES_BIN=/usr/lib/postgresql/${PG_MAJOR}/bin PATH=/retouch/scripts:${PATH}
USER 10001:10001
LABEL org.opencontainers.image.title="Retouch: backup and restore" \
      org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["backup"]
CMD ["/backups"]

FROM runtime AS worker
COPY --from=programs /retouch-worker /usr/local/bin/retouch-worker
# Large pages for pictures: a tenth less CPU time per picture for 2 % more memory.
ENV RETOUCH_MODELS_DIR=/models ORT_DYLIB_PATH=/opt/onnxruntime/libonnxruntime.so GLIBC_TUNABLES=glibc.malloc.hugetlb=1
ENTRYPOINT ["/usr/local/bin/retouch-worker"]
CMD ["serve"]

FROM worker AS worker-cpu
COPY --from=onnxruntime-cpu /opt/onnxruntime/ /opt/onnxruntime/
ENV RETOUCH_DEVICE=cpu
LABEL org.opencontainers.image.title="Retouch: worker for CPUs" \
      org.opencontainers.image.licenses="Apache-2.0"

FROM worker AS worker-cuda
COPY --from=cuda /opt/cuda/ /opt/cuda/
COPY --from=tensorrt /opt/tensorrt/ /opt/onnxruntime/
COPY --from=onnxruntime-cuda /opt/onnxruntime/ /opt/onnxruntime/
# NVIDIA_DRIVER_CAPABILITIES selects the parts of the driver. With `cuda`, the worker fails instead of falling back to the CPU.
ENV LD_LIBRARY_PATH=/opt/onnxruntime:/opt/cuda \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    RETOUCH_DEVICE=cuda
LABEL org.opencontainers.image.title="Retouch: worker for NVIDIA GPUs" \
      org.opencontainers.image.licenses="Apache-2.0 AND LicenseRef-NVIDIA-Proprietary"
