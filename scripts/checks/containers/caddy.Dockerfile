# In place of caddy: Debian's.
ARG BASE
FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends caddy wget \
    && rm -rf /var/lib/apt/lists/*
