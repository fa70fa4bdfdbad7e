-- no-transaction
-- Pages through all images of a user, also those that expire; exports read them.
create index concurrently if not exists images_in_order on images (owner_id, created_at, id);
