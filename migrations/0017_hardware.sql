-- What a worker runs on, in words: `NVIDIA H200, driver 580.65.06`. Empty for one of an older version.
alter table workers add column hardware text not null default '';
