-- Every change of a balance, for ever. Inserting a row is the only way to move `users.credits`:
-- the database itself moves it, and refuses any other hand.
create table ledger (
    id         bigint generated always as identity primary key,
    user_id    uuid not null references users (id),
    kind       text not null,
    amount     integer not null,
    job_id     uuid references jobs (id),
    -- What outside of us the entry is for: an order, a refund, an administrator's note.
    reference  text,
    created_at timestamptz not null default now(),

    constraint ledger_kind check (kind in ('signup_grant', 'purchase', 'job', 'refund', 'admin')),
    constraint ledger_sign check (
        case kind
            when 'signup_grant' then amount > 0
            when 'purchase' then amount > 0
            when 'job' then amount < 0
            when 'refund' then amount < 0
            else amount <> 0
        end
    ),
    constraint ledger_of_a_job check ((kind = 'job') = (job_id is not null)),
    constraint ledger_debits_once unique (job_id),
    constraint ledger_reference_once unique (kind, reference)
);

create unique index ledger_grants_once on ledger (user_id) where kind = 'signup_grant';
create index ledger_of_user on ledger (user_id, id);

create function ledger_moves_balance() returns trigger language plpgsql as $$
begin
    update users set credits = credits + new.amount where id = new.user_id;
    return null;
end
$$;

-- After, not before: a row that a conflict keeps out must move nothing.
create trigger ledger_moves_balance after insert on ledger
    for each row execute function ledger_moves_balance();

create function ledger_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the ledger is append-only' using errcode = 'restrict_violation';
end
$$;

create trigger ledger_is_append_only before update or delete or truncate on ledger
    for each statement execute function ledger_is_append_only();

create function credits_move_by_ledger() returns trigger language plpgsql as $$
begin
    -- Depth 1 is a statement of a client; depth 2 is the ledger's own trigger.
    if pg_trigger_depth() < 2 then
        raise exception 'credits move only by a ledger entry' using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;

create trigger credits_move_by_ledger before update of credits on users
    for each row when (old.credits is distinct from new.credits)
    execute function credits_move_by_ledger();

create function users_start_at_zero() returns trigger language plpgsql as $$
begin
    raise exception 'a user starts without credits; grant them by a ledger entry'
        using errcode = 'restrict_violation';
end
$$;

create trigger users_start_at_zero before insert on users
    for each row when (new.credits <> 0 or new.reserved <> 0)
    execute function users_start_at_zero();
