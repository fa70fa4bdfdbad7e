-- Counts the credits that a refund could not take back because runs held them. The rest was spent, and a run that ends
-- without a result does not pay it back.
set local lock_timeout = '5s';

alter table orders add column credits_held integer not null default 0;

comment on column orders.credits_held is
    'The part of credits_missing that runs held at missing_since. Processes from before leave it above credits_missing.';

-- Until now, all of them counted as held.
update orders set credits_held = credits_missing where credits_missing > 0;
