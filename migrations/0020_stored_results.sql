-- no-transaction
-- The same for results.
create index concurrently if not exists results_stored on results (owner_id) include (size_bytes);
