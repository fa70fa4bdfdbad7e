-- Magic Fix: what a run shall do besides its tool, what its mask is, and what a result says of it.
alter table jobs
    add column mode        text,
    add column prompt      text,
    -- Tells a repeat from another request: the mask itself goes when the job ends.
    add column mask_sha256 bytea,
    add constraint jobs_fix check (
        (tool = 'magic-fix') = (mode is not null)
        and (mode is null) = (prompt is null)
        and (mode is null) = (mask_sha256 is null)
    ),
    add constraint jobs_mode check (mode in ('edit', 'restore', 'remove', 'enhance', 'add')),
    add constraint jobs_prompt check (char_length(prompt) between 1 and 500);

-- The mask of a run that has not ended: one bit a pixel, as a PNG. It lives in the database, not in the
-- store, so that it comes and goes with its job and nothing has to be swept up.
create table masks (
    job_id uuid primary key references jobs (id),
    png    bytea not null
);

alter table results
    add column mode    text,
    add column prompt  text,
    -- Made by a model that only shows that the way works.
    add column is_demo boolean not null default false,
    add constraint results_fix check (
        (tool = 'magic-fix') = (mode is not null) and (mode is null) = (prompt is null)
    );
