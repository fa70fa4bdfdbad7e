-- An uploaded picture, upright and without metadata. A visitor's has no owner and expires.
create table images (
    id             uuid primary key,
    owner_id       uuid references users (id),
    -- A keyed hash of the visitor's address: tells the same visitor's second try, not who it was.
    visitor        text,
    object_key     text not null,
    thumbnail_key  text not null,
    content_type   text not null,
    content_sha256 bytea not null,
    size_bytes     bigint not null,
    width          integer not null,
    height         integer not null,
    created_at     timestamptz not null default now(),
    expires_at     timestamptz,

    constraint images_owned_or_visiting check ((owner_id is null) = (visitor is not null)),
    constraint images_visitors_expire check ((owner_id is null) = (expires_at is not null)),
    constraint images_size check (width > 0 and height > 0 and size_bytes > 0),
    constraint images_type check (content_type in ('image/png', 'image/jpeg', 'image/webp'))
);

create index images_of_owner on images (owner_id, created_at desc);
create index images_of_visitor on images (visitor, content_sha256) where visitor is not null;
create index images_expiring on images (expires_at) where expires_at is not null;
