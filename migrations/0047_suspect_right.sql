-- The right to run suspects becomes a lease, which a worker that freezes cannot keep.
set local lock_timeout = '5s';

-- One row.
create table suspect_right (
    id         boolean primary key default true check (id),
    -- Whoever took the right last: a random id for each time.
    holder     uuid,
    held_until timestamptz not null default '-infinity'
);

insert into suspect_right default values;

-- A job that is handed back counts as interrupted. Workers hand jobs back as often as they stop, so the number of
-- interruptions has no limit here; `jobs::retry` and `jobs::sweep` limit those by outages. The rest is the rule from 0018.
create or replace function job_is_sound(job jobs) returns boolean language plpgsql immutable as $$
begin
    return job.tool in ('remove-background', 'upscale', 'magic-fix')
        and (job.tool = 'upscale') = (job.factor is not null)
        and (job.factor is null or job.factor in (2, 4))
        and job.tier in ('paid', 'free', 'visitor')
        -- The price, and who pays it.
        and case job.tier when 'paid' then job.cost > 0 else job.cost = 0 end
        and (job.tier = 'visitor') = (job.owner_id is null)
        and job.state in ('queued', 'running', 'done', 'failed', 'cancelled')
        and job.interruptions >= 0
        and job.attempt - job.interruptions between 0 and 3 and job.losses between 0 and 3
        -- What a state has and no other has: a lease, an end, a reason.
        and (job.state = 'running') = (job.lease_owner is not null and job.lease_until is not null)
        and (job.state in ('done', 'failed', 'cancelled')) = (job.finished_at is not null)
        and (job.state = 'failed') = (job.failure_code is not null)
        -- An image goes only after its jobs have ended.
        and (job.state not in ('queued', 'running') or job.image_id is not null)
        -- A Magic Fix has a mode, a prompt and a mask; other jobs have none.
        and (job.tool = 'magic-fix') = (job.mode is not null)
        and (job.mode is null) = (job.prompt is null)
        and (job.mode is null) = (job.mask_sha256 is null)
        and (job.mode is null or job.mode in ('edit', 'restore', 'remove', 'enhance', 'add'))
        and (job.prompt is null or char_length(job.prompt) between 1 and 500);
end
$$;
