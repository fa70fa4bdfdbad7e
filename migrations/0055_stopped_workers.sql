-- When a worker stopped in order. Without it, a worker that was stopped looks like one that crashed.
set local lock_timeout = '5s';

alter table workers add column stopped_at timestamptz;
