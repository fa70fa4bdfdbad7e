-- What uploaded files said of themselves: their C2PA manifests, archived as an ingredient of results, and their IPTC digital
-- source type. Their metadata is removed before they are stored.
set local lock_timeout = '5s';

create table image_provenance (
    image_id uuid primary key references images (id) on delete cascade,
    ingredient bytea,
    source text,
    constraint image_provenance_says_something check (ingredient is not null or source is not null)
);
