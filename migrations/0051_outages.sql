-- Counts the attempts that outages interrupted. Until now, an attempt that a worker handed back counted against the same limit.
set local lock_timeout = '5s';

alter table jobs add column outages integer not null default 0;

comment on column jobs.outages is 'How many of the interruptions were outages.';
