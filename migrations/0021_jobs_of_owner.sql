-- no-transaction
-- One person's jobs in the order in which they came: exports, deletions, and an operator's look at an account.
create index concurrently if not exists jobs_of_owner on jobs (owner_id, id);
