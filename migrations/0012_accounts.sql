-- A person who deletes their account takes everything along but the books: the row stays, without a name, because
-- ledger and orders point at it. Signing in again makes a new user.
alter table users
    add column deleted_at timestamptz,
    add constraint users_deleted_are_nameless check (
        deleted_at is null or (issuer = 'deleted' and email is null and reserved = 0)
    );

create index users_by_email on users (lower(email)) where email is not null;

-- Who deleted an account within the last twelve months, as a keyed hash of issuer and subject: deleting an account and
-- signing up again must not be a way to the free credits of a new user. The key is the API's; nothing here leads from
-- the hash to a person, or to the nameless row above.
create table former_users (
    identity_hash bytea primary key,
    deleted_at    timestamptz not null default now(),

    constraint former_users_hash check (octet_length(identity_hash) = 32)
);

alter table ledger
    -- What an operator wrote beside a change by hand. It stays for ever: no names.
    add column note text,
    drop constraint ledger_kind,
    -- A forfeit is what was left when an account was deleted.
    add constraint ledger_kind check (
        kind in ('signup_grant', 'purchase', 'job', 'refund', 'dispute', 'admin', 'forfeit')
    ),
    add constraint ledger_forfeits check (kind <> 'forfeit' or amount < 0),
    add constraint ledger_notes check (note is null or kind = 'admin');

create unique index ledger_forfeits_once on ledger (user_id) where kind = 'forfeit';

-- A job that is done has a result, unless somebody deleted it: only with this can an audit tell one that was deleted
-- from one that was lost.
alter table jobs add column result_deleted_at timestamptz;

update jobs set result_deleted_at = now()
where state = 'done' and not exists (select from results where results.job_id = jobs.id);

create function results_leave_a_mark() returns trigger language plpgsql as $$
begin
    update jobs set result_deleted_at = now() where id = old.job_id;
    return null;
end
$$;

create trigger results_leave_a_mark after delete on results
    for each row execute function results_leave_a_mark();

-- Jobs that leave no trace in the books and are forgotten in time.
create index jobs_forgettable on jobs (finished_at) where state in ('failed', 'cancelled') or (state = 'done' and cost = 0);

-- Announced by somebody who is about to write the object, and not merely doomed: only then may a row still name it.
alter table doomed_objects add column is_announced boolean not null default false;

-- What is done seldom, and by one process at a time: when each was begun last.
create table chores (
    name     text primary key,
    begun_at timestamptz not null default now()
);
