-- Whose turn it is, by self-clocked fair queueing (S. J. Golestani, INFOCOM 1994) with every run counted as one: a job's
-- turn is the one after that which is being served in its class, or after its owner's last, whichever is later. The
-- least turn goes first, and of those the oldest. So where a job stands is known when it is submitted, nobody waits for
-- all of somebody else's long list, no list is starved by newcomers, and taking the next job is one look into an
-- index, however many wait.
-- Whoever waits for the table meanwhile must not wait long.
set local lock_timeout = '5s';

alter table jobs add column turn bigint not null default 0;

create index jobs_next on jobs (tier, tool, turn, created_at, id) where state = 'queued';
drop index jobs_queue;

-- Those that have lost a worker and must run alone: hardly ever any, and looked for before each job is taken.
create index jobs_suspects on jobs (tier, tool) where state = 'queued' and losses > 0;

-- Which turn is being served; where nothing runs, `jobs_recent` tells which was the last.
create index jobs_in_service on jobs (tier, tool, turn) where state = 'running';
