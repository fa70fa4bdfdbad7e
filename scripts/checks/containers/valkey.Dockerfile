# Replaces the image valkey/valkey: the Valkey of `scripts/up`, and the compatible client from Debian.
ARG BASE
FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends redis-tools \
    && rm -rf /var/lib/apt/lists/* \
    && ln -s redis-cli /usr/bin/valkey-cli \
    && groupadd --gid 999 valkey && useradd --uid 999 --gid 999 valkey && install -d -o 999 -g 999 /data
COPY --chmod=755 valkey-server /usr/local/bin/valkey-server
USER 999:999
WORKDIR /data
