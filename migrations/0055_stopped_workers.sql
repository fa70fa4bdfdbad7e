-- When a worker stopped in order. Without it, a worker that was stopped looks like one that crashed.
set local lock_timeout = '5s';

alter table workers add column stopped_at timestamptz;

-- Whether a worker is live: it reports at least every five seconds.
create function is_live(worker workers) returns boolean language sql stable as $$
    select worker.stopped_at is null and worker.seen_at > now() - interval '20 seconds'
$$;
