-- Credits of an order that a refund or a dispute could not take back, because runs held them. They are taken when such a
-- run ends without a result.
set local lock_timeout = '5s';

alter table orders add column missing_since timestamptz;

comment on column orders.missing_since is
    'The last time that credits were missing (credits_missing). Holds from before it owe them when they are released.';
