-- A repeated upload with the same Idempotency-Key returns the image that the first one stored.
set local lock_timeout = '5s';

alter table images add column upload_key text;
