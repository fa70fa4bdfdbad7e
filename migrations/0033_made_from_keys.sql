-- What an image was made from may be deleted before it.
set local lock_timeout = '5s';

alter table images
    add constraint images_made_from_result_fkey foreign key (made_from_result)
        references results (id) on delete set null not valid,
    add constraint images_made_from_image_fkey foreign key (made_from_image)
        references images (id) on delete set null not valid;
