-- Objects that an image made from a result still refers to are never doomed, also not by a process from before 0029, which
-- knows only the result. Whoever deletes the image deletes its row first and dooms the objects then.
set local lock_timeout = '5s';

create function keep_shared_object() returns trigger language plpgsql as $$
begin
    if exists (
        select from images
        where objects_of_job = split_part(new.object_key, '/', 2)::uuid
          and new.object_key in (object_key, thumbnail_key, preview_key)
    ) then
        return null;
    end if;
    return new;
end
$$;

create trigger shared_objects_stay before insert on doomed_objects
    for each row when (new.object_key ~ '^results/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/')
    execute function keep_shared_object();
