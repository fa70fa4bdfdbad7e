-- The rows from before 0053, in a transaction of its own: it keeps nobody from working.
set local lock_timeout = '5s';

alter table jobs validate constraint jobs_outages;
alter table disputes validate constraint disputes_amount;
