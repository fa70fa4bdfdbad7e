-- Of the credits of an order that could not be taken back, those that runs held. The others were spent: a run that ends
-- without a result does not pay them back.
set local lock_timeout = '5s';

alter table orders add column credits_held integer not null default 0;

comment on column orders.credits_held is
    'The part of credits_missing that runs held at missing_since. Processes from before leave it above credits_missing.';

-- What counted until now.
update orders set credits_held = credits_missing where credits_missing > 0;
