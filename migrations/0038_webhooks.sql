-- Addresses that accounts want to be told at, and what each of them was told or still has to be.
set local lock_timeout = '5s';

create table webhooks (
    id               uuid primary key,
    owner_id         uuid not null references users (id),
    url              text not null,
    description      text not null,
    events           text[] not null,
    -- `credits.low` is told when a balance falls below this.
    credits_below    integer not null,
    -- Signs deliveries. After a rotation, the secret before it signs as well for a while.
    secret           bytea not null,
    old_secret       bytea,
    old_secret_until timestamptz,
    is_enabled       boolean not null default true,
    -- Why we turned it off; null if its owner did.
    disabled_reason  text,
    -- The first failure since the last success.
    failing_since    timestamptz,
    -- Whether the last response took long.
    is_slow          boolean not null default false,
    created_at       timestamptz not null default now(),

    constraint webhooks_url check (char_length(url) between 1 and 2000),
    constraint webhooks_description check (char_length(description) <= 200),
    constraint webhooks_events check (
        events <@ array['job.done', 'job.failed', 'job.canceled', 'credits.low'] and cardinality(events) between 1 and 4
    ),
    constraint webhooks_credits_below check (credits_below between 1 and 1000000),
    constraint webhooks_secrets check (
        octet_length(secret) between 24 and 64 and (old_secret is null) = (old_secret_until is null)
    ),
    constraint webhooks_disabled check (disabled_reason is null or (disabled_reason in ('gone', 'failing') and not is_enabled))
);

create index webhooks_of_owner on webhooks (owner_id, created_at);

-- One event on its way to one webhook. The id is that of the event: all webhooks of an account are told the same.
--
-- No foreign keys: the statement that finishes a job writes these rows, and nothing that somebody deletes at that moment
-- may make it fail. What belongs to no webhook is never sent, and the janitor deletes it.
create table webhook_deliveries (
    webhook_id    uuid not null,
    id            uuid not null,
    event         text not null,
    job_id        uuid,
    -- The credits of the account after the event.
    balance       integer not null,
    -- The threshold that `credits.low` is about.
    credits_below integer,
    state         text not null default 'waiting',
    -- Since it was asked for: by its event, or by its owner, who wants it sent again.
    waiting_since timestamptz not null default now(),
    -- Counted when a process claims it.
    attempts      smallint not null default 0,
    -- When the next attempt starts; during an attempt, when its lease ends.
    due_at        timestamptz not null default now(),
    lease_until   timestamptz,
    -- The outcome of the last attempt.
    attempted_at  timestamptz,
    status        smallint,
    problem       text,
    duration_ms   integer,
    created_at    timestamptz not null default now(),

    constraint webhook_deliveries_once primary key (webhook_id, id),
    constraint webhook_deliveries_event check (
        event in ('job.done', 'job.failed', 'job.canceled', 'credits.low', 'webhook.test')
    ),
    constraint webhook_deliveries_of_a_job check ((event like 'job.%') = (job_id is not null)),
    constraint webhook_deliveries_threshold check ((event = 'credits.low') = (credits_below is not null)),
    constraint webhook_deliveries_state check (state in ('waiting', 'delivered', 'failed')),
    constraint webhook_deliveries_lease check (lease_until is null or state = 'waiting')
);

create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at) where state = 'waiting';
