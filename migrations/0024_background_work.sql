-- What background work keeps between its rounds, so that no statement of it has to read a whole table.
set local lock_timeout = '5s';

-- Deleted accounts whose pictures and jobs are not all erased yet. The row goes with the last of them.
create table unfinished_deletions (
    user_id   uuid primary key references users (id),
    since     timestamptz not null default now(),
    -- Jobs up to this one are erased.
    after_job uuid
);

-- What the ledger adds up to, by kind, up to the entry `through_id`, which is the same in every row.
create table ledger_sums (
    kind       text primary key,
    amount     bigint not null,
    through_id bigint not null
);

alter table chores
    -- When the last one ended well, and what it found or where the next one goes on.
    add column finished_at timestamptz,
    add column outcome jsonb;
