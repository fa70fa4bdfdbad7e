-- no-transaction
-- Finds the active jobs of a user. Without visitors' jobs, so that a claim, which names no owner, cannot use it: with old
-- statistics the planner took `jobs_active_of_owner` for the cheapest way to the queue and read all of it.
create index concurrently if not exists jobs_active_of_user on jobs (owner_id)
    where state in ('queued', 'running') and owner_id is not null;
