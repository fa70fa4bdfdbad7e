-- A dispute of part of a payment takes that part of the credits. It used to take all of them.
set local lock_timeout = '5s';

alter table disputes add column amount_cents bigint;

comment on column disputes.amount_cents is 'How much is disputed; null for the whole payment, as before.';
