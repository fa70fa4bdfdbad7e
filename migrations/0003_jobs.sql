-- One run of a tool. The row is the truth; what Redis holds is only a doorbell.
--
--     (none) --submit--> queued --claim--> running --finish--> done
--                          |  ^              |  |
--                          |  +---- lost ----+  +--fail, third loss--> failed
--                          +---------- cancel ----------> cancelled
create table jobs (
    id              uuid primary key,
    owner_id        uuid references users (id),
    image_id        uuid references images (id) on delete set null,
    tool            text not null,
    factor          smallint,
    tier            text not null,
    -- Held in users.reserved from submit until the job ends.
    cost            integer not null,
    state           text not null default 'queued',
    -- Counted when a worker claims the job, before it touches the image.
    attempt         integer not null default 0,
    -- How often its worker vanished; after the first time it runs alone.
    losses          integer not null default 0,
    run_after       timestamptz not null default now(),
    lease_owner     uuid,
    lease_until     timestamptz,
    idempotency_key text,
    failure_code    text,
    failure_detail  text,
    created_at      timestamptz not null default now(),
    started_at      timestamptz,
    finished_at     timestamptz,

    constraint jobs_tool check (tool in ('remove-background', 'upscale', 'magic-fix')),
    constraint jobs_factor check ((tool = 'upscale') = (factor is not null) and factor in (2, 4)),
    constraint jobs_tier check (tier in ('paid', 'free', 'visitor')),
    constraint jobs_price check (case tier when 'paid' then cost > 0 else cost = 0 end),
    constraint jobs_payer check ((tier = 'visitor') = (owner_id is null)),
    constraint jobs_state check (state in ('queued', 'running', 'done', 'failed', 'cancelled')),
    constraint jobs_attempts check (attempt between 0 and 3 and losses between 0 and 3),
    constraint jobs_lease check ((state = 'running') = (lease_owner is not null and lease_until is not null)),
    constraint jobs_ended check ((state in ('done', 'failed', 'cancelled')) = (finished_at is not null)),
    constraint jobs_reason check ((state = 'failed') = (failure_code is not null)),
    -- An image goes only after its jobs have ended.
    constraint jobs_active_image check (state not in ('queued', 'running') or image_id is not null)
);

create unique index jobs_idempotency on jobs (owner_id, idempotency_key) where idempotency_key is not null;
create index jobs_queue on jobs (tier, created_at) where state = 'queued';
create index jobs_leases on jobs (lease_until) where state = 'running';
create index jobs_active_of_owner on jobs (owner_id) where state in ('queued', 'running');
create index jobs_of_image on jobs (image_id);
create index jobs_recent on jobs (tool, tier, finished_at desc) where state = 'done';

-- The one free run an image gets with each tool. Deleting the result does not bring it back; a free
-- job that fails or is cancelled does.
create table free_runs (
    image_id uuid not null references images (id) on delete cascade,
    tool     text not null,
    job_id   uuid not null references jobs (id),

    constraint free_run_once primary key (image_id, tool)
);

create index free_runs_of_job on free_runs (job_id);
