-- no-transaction
-- Drops the index that `jobs_active_of_user` replaces.
drop index concurrently if exists jobs_active_of_owner;
