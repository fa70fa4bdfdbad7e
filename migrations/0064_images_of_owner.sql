-- no-transaction
-- Drops the index that `images_in_order` replaces.
drop index concurrently if exists images_of_owner;
