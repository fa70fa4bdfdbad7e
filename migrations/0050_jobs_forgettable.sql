-- no-transaction
-- The index before, which also had all free runs of images that exist.
drop index concurrently if exists jobs_forgettable;
