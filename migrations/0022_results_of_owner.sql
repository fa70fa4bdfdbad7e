-- no-transaction
-- One person's results in the order in which they came, for exports; and whether any are left, for the audit.
create index concurrently if not exists results_of_owner on results (owner_id, id);
