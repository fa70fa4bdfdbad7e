-- An order of a pack of credits. The row is there before the payment provider hears of it, and its id is the key that
-- makes asking twice harmless. What is granted comes from this row, never from what the provider or a browser says.
create table orders (
    id               uuid primary key,
    user_id          uuid not null references users (id),
    pack             smallint not null,
    credits          integer not null,
    amount_cents     bigint not null,
    currency         text not null,
    status           text not null default 'open',
    fulfilled_at     timestamptz,
    -- Makes a repeat of the same click return the first order.
    idempotency_key  text,
    -- The provider's names for the page that is paid on and for the payment itself.
    session          text,
    checkout_url     text,
    payment_intent   text,
    email            text,
    -- How much of the payment went back, and how many credits that is worth. What was spent already cannot be taken
    -- back: `credits_missing` is the part of `credits_reversed` that an operator may want to know of.
    refunded_cents   bigint not null default 0,
    credits_reversed integer not null default 0,
    credits_missing  integer not null default 0,
    created_at       timestamptz not null default now(),
    -- When the provider is asked next, in case its message never came.
    next_check_at    timestamptz not null default now() + interval '2 minutes',

    constraint orders_status check (status in ('open', 'unpaid', 'paid', 'failed', 'expired', 'refunded', 'disputed')),
    constraint orders_price check (credits > 0 and amount_cents > 0),
    constraint orders_paid_when_fulfilled check (fulfilled_at is null or status in ('paid', 'refunded', 'disputed')),
    constraint orders_reversed check (
        refunded_cents >= 0 and credits_missing >= 0 and credits_missing <= credits_reversed and credits_reversed <= credits
    ),
    constraint order_session_once unique (session),
    constraint order_payment_once unique (payment_intent),
    constraint order_key_once unique (user_id, idempotency_key)
);

create index orders_of_user on orders (user_id, created_at desc);
create index orders_to_check on orders (next_check_at) where status in ('open', 'unpaid');

-- A payment that its payer's bank disputes. A dispute that was closed does not open again, whatever order the
-- provider's messages come in.
create table disputes (
    id         text primary key,
    order_id   uuid not null references orders (id),
    state      text not null,

    constraint disputes_state check (state in ('open', 'won', 'lost'))
);

create index disputes_of_order on disputes (order_id);

-- Every message of the payment provider, as it came, and what it led to.
create table payment_events (
    id             text primary key,
    kind           text not null,
    payload        text not null,
    outcome        text not null,
    -- Set once it is known. The message names the buyer: its text goes when their account does.
    order_id       uuid references orders (id),
    -- A refund or a dispute that came before its order was paid, kept until then.
    payment_intent text,
    reversal       jsonb,
    received_at    timestamptz not null default now(),

    constraint payment_events_waiting check (outcome <> 'waiting' or (payment_intent is not null and reversal is not null))
);

create index payment_events_of_order on payment_events (order_id) where order_id is not null;
create index payment_events_waiting on payment_events (payment_intent) where outcome = 'waiting';

alter table ledger
    add column order_id uuid references orders (id),
    drop constraint ledger_kind,
    add constraint ledger_kind check (kind in ('signup_grant', 'purchase', 'job', 'refund', 'dispute', 'admin')),
    add constraint ledger_of_an_order check ((kind in ('purchase', 'refund', 'dispute')) = (order_id is not null));

-- An order is fulfilled once.
create unique index ledger_purchases_once on ledger (order_id) where kind = 'purchase';
create index ledger_of_order on ledger (order_id) where order_id is not null;
