# Replaces the image caddy: Caddy from Debian.
ARG BASE
FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends caddy wget \
    && rm -rf /var/lib/apt/lists/*
