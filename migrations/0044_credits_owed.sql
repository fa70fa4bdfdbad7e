-- Credits of an order that a refund or a dispute could not take back, because runs held them. They are taken when such a
-- run ends without a result.
set local lock_timeout = '5s';

alter table orders add column missing_since timestamptz;

comment on column orders.missing_since is
    'When a refund or a dispute last left credits_missing. Holds placed before pay them back when they are released.';
