-- The jobs from before 0015, in a transaction of its own: it keeps nobody from working.
alter table jobs validate constraint jobs_sound;
