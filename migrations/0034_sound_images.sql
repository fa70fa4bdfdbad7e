-- The images from before 0028, in a transaction of its own: it keeps nobody from working.
set local lock_timeout = '5s';

alter table images
    validate constraint images_name,
    validate constraint images_made_from,
    validate constraint images_made_from_result_fkey,
    validate constraint images_made_from_image_fkey;
