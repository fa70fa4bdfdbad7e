-- Tells which database a bucket belongs to: the bucket has an object with the same id. The janitor deletes objects that the database
-- does not know, so it must never see the bucket of another one.
set local lock_timeout = '5s';

create table installation (
    id uuid not null default gen_random_uuid(),
    is_only boolean primary key default true check (is_only)
);

insert into installation default values;

comment on table installation is 'The id of this database, which its bucket also has.';
