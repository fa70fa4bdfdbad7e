-- Identifies this database as the owner of its bucket, which has an object with the same id. The janitor deletes objects that its
-- database does not know, so it must not work on the bucket of another one.
set local lock_timeout = '5s';

create table installation (
    id uuid not null default gen_random_uuid(),
    is_only boolean primary key default true check (is_only)
);

insert into installation default values;

comment on table installation is 'The id of this database, which its bucket also has.';
