#!/bin/sh
# Creates a role and a database for Keycloak. The Postgres image runs this once, when it creates the database.
set -eu
psql --set=ON_ERROR_STOP=1 --set=password="$(cat /run/secrets/keycloak_database_password)" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
create role keycloak login password :'password';
create database keycloak owner keycloak;
revoke all on database keycloak from public;
SQL
