-- no-transaction
-- Finds the image of an earlier upload with the same key.
create unique index concurrently if not exists images_upload_key on images (owner_id, upload_key)
    where upload_key is not null;
