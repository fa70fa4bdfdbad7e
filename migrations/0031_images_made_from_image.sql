-- no-transaction
-- Finds the images made from an image when that is deleted.
create index concurrently if not exists images_made_from_image on images (made_from_image)
    where made_from_image is not null;
