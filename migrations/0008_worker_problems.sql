-- Models that a worker would serve if their files were right: a list of {model, step, reason}. What is refused never
-- replaces what serves, so a worker with problems still works.
alter table workers add column problems jsonb not null default '[]';
