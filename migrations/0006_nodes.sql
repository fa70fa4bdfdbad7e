-- Objects whose rows are gone; a janitor deletes them from S3 and then here.
create table doomed_objects (
    object_key text primary key,
    since      timestamptz not null default now()
);

-- A row per worker process, renewed while it lives.
create table workers (
    id         uuid primary key,
    name       text not null,
    device     text not null,
    models     jsonb not null,
    slots      integer not null,
    version    text not null,
    started_at timestamptz not null default now(),
    seen_at    timestamptz not null default now()
);
