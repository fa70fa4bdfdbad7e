#!/bin/sh
# Run once by the Postgres image, when it makes the database: a role and a database of their own for Keycloak.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$(cat /run/secrets/keycloak_database_password)" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
create role keycloak login password :'password';
create database keycloak owner keycloak;
revoke all on database keycloak from public;
SQL
