-- no-transaction
-- Finds old jobs that left nothing behind. Free runs stay while their image does, and most images stay.
create index concurrently if not exists jobs_to_delete on jobs (finished_at)
    where state in ('failed', 'cancelled') or (state = 'done' and cost = 0 and image_id is null);
