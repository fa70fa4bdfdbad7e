-- no-transaction
-- Finds the image that still refers to a result's objects; the janitor asks before it deletes one.
create index concurrently if not exists images_sharing_objects on images (objects_of_job)
    where objects_of_job is not null;
