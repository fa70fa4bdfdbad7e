-- Multipart uploads under way: S3 keeps (and bills) the parts of one that nobody completes or aborts. The row is written
-- before the first part and goes with the last; when the object's key is doomed, the janitor aborts what is left.
create table unfinished_uploads (
    upload_id  text primary key,
    object_key text not null,
    since      timestamptz not null default now()
);

create index unfinished_uploads_of_object on unfinished_uploads (object_key);
