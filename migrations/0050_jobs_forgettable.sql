-- no-transaction
-- Drops the index that `jobs_to_delete` replaces.
drop index concurrently if exists jobs_forgettable;
