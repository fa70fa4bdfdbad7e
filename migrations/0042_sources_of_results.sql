-- What the files of results say of where their pixels come from, so that lists can show it without reading the files. Null for
-- results that are not marked, and for those from before.
set local lock_timeout = '5s';

alter table results add column source text;
