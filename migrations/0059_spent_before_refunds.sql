-- Tells what of a refund or dispute was spent from what runs held, so that a dispute that is won lowers its own part first.
set local lock_timeout = '5s';

alter table owed_by_runs add column spent integer not null default 0 constraint owed_by_runs_spent check (spent >= 0);

comment on table owed_by_runs is
    'For each refund or dispute, what of orders.credits_missing runs held then and have not released since, and what was spent.';
