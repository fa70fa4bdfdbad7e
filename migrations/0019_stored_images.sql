-- no-transaction
-- How much an account stores, from the index alone: checked at every upload.
create index concurrently if not exists images_stored on images (owner_id) include (size_bytes);
