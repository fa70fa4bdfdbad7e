-- The names of uploaded files, and smaller copies for the screen. Both are null in rows from before.
set local lock_timeout = '5s';

alter table images
    add column name text,
    add column preview_key text,
    add constraint images_name check (char_length(name) between 1 and 200) not valid;

alter table results add column preview_key text;
