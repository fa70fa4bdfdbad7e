-- A person, known by what the identity provider calls them. Their balance is never written by hand:
-- rows in `ledger` move `credits` (0005), rows in `jobs` hold part of it in `reserved`.
create table users (
    id               uuid primary key,
    issuer           text not null,
    subject          text not null,
    email            text,
    email_checked_at timestamptz,
    credits          integer not null default 0,
    reserved         integer not null default 0,
    created_at       timestamptz not null default now(),

    constraint users_identity unique (issuer, subject),
    constraint users_solvent check (reserved >= 0 and credits >= reserved)
);
