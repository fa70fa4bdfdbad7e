-- Counts what runs held during each refund or dispute, instead of one sum for each order: runs that were submitted between two
-- refunds must not pay for the first. It replaces orders.credits_held and orders.missing_since.
set local lock_timeout = '5s';

create table owed_by_runs (
    order_id uuid not null references orders (id),
    since timestamptz not null,
    credits integer not null constraint owed_by_runs_credits check (credits >= 0),
    primary key (order_id, since)
);

insert into owed_by_runs (order_id, since, credits)
select id, missing_since, least(credits_held, credits_missing)
from orders
where missing_since is not null and least(credits_held, credits_missing) > 0;

comment on table owed_by_runs is
    'The part of orders.credits_missing that runs held when a refund or a dispute wanted it, and have not released since.';
comment on column orders.credits_held is 'Unused: see owed_by_runs.';
comment on column orders.missing_since is 'Unused: see owed_by_runs.';
