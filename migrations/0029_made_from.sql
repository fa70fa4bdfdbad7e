-- Images that somebody made from a result, to go on working with it. They share its objects.
set local lock_timeout = '5s';

alter table images
    add column made_from_tool text,
    -- Null once the result, or the image that it was made from, is deleted.
    add column made_from_result uuid,
    add column made_from_image uuid,
    -- The job whose objects these are, also after the result is deleted: the image keeps them.
    add column objects_of_job uuid,
    add constraint images_made_from check (
        (made_from_tool is null) = (objects_of_job is null)
        and (made_from_tool is not null or (made_from_result is null and made_from_image is null))
        and made_from_tool in ('remove-background', 'upscale', 'magic-fix')
    ) not valid;
