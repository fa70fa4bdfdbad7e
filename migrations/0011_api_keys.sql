-- Keys for programs. The key itself is shown once and kept nowhere; revoking one deletes its row.
create table api_keys (
    id           uuid primary key,
    owner_id     uuid not null references users (id),
    name         text not null,
    -- How the key begins, for its owner to tell it from the others.
    shown        text not null,
    key_sha256   bytea not null,
    created_at   timestamptz not null default now(),
    last_used_at timestamptz,

    constraint api_keys_hash unique (key_sha256),
    constraint api_keys_name check (char_length(name) between 1 and 60),
    constraint api_keys_shown check (char_length(shown) <= 9),
    constraint api_keys_hash_length check (octet_length(key_sha256) = 32)
);

create index api_keys_of_owner on api_keys (owner_id, created_at);

-- What a program sends for one run belongs to its owner and expires like a visitor's.
alter table images
    drop constraint images_visitors_expire,
    add constraint images_visitors_expire check (owner_id is not null or expires_at is not null);

create index images_of_programs on images (owner_id, content_sha256)
    where owner_id is not null and expires_at is not null;
