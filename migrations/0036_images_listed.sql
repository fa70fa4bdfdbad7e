-- no-transaction
-- Lists, searches and counts of an owner's images read only this index.
create index concurrently if not exists images_listed on images (owner_id, created_at, id) include (name, size_bytes)
    where expires_at is null;
