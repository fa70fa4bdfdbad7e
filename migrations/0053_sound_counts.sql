-- The rules of the columns of 0051 and 0052.
set local lock_timeout = '5s';

alter table jobs add constraint jobs_outages check (outages between 0 and interruptions) not valid;
alter table disputes add constraint disputes_amount check (amount_cents >= 0) not valid;
