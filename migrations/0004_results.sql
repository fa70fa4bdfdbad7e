-- A picture that a job made, and what really made it.
create table results (
    id            uuid primary key,
    job_id        uuid not null references jobs (id),
    image_id      uuid not null references images (id) on delete cascade,
    owner_id      uuid references users (id),
    tool          text not null,
    factor        smallint,
    object_key    text not null,
    thumbnail_key text not null,
    size_bytes    bigint not null,
    width         integer not null,
    height        integer not null,
    model         text not null,
    model_sha256  text not null,
    device        text not null,
    duration_ms   integer not null,
    created_at    timestamptz not null default now(),

    constraint results_once_a_job unique (job_id),
    constraint results_size check (width > 0 and height > 0 and size_bytes > 0),
    constraint results_factor check ((tool = 'upscale') = (factor is not null))
);

create index results_of_image on results (image_id, tool, created_at);
