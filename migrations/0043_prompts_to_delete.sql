-- no-transaction
-- Finds the jobs whose prompts the janitor deletes, because their picture or result is gone.
create index concurrently if not exists jobs_with_prompts_to_delete on jobs (id)
where prompt is not null and prompt <> '(deleted)' and (image_id is null or result_deleted_at is not null);
