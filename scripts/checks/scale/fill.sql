-- Fills a migrated database with :jobs jobs of :users users over 180 days. One of them, :'heavy', owns :pictures pictures.
-- Every row is one that the programs could have written: the audit finds nothing.
--
-- Triggers and foreign keys are off: the rows are written in their final state.
set session_replication_role = replica;
set synchronous_commit = off;
set work_mem = '256MB';
set maintenance_work_mem = '512MB';
select setseed(0.5);

-- Two of five jobs are the first on their picture.
select :jobs * 2 / 5 as images \gset
select greatest(:images / :pictures, 1) as every \gset

insert into users (id, issuer, subject, email, email_checked_at, created_at)
select uuidv7(at - now()), 'https://scale.test', 'user-' || n, 'user-' || n || '@scale.test', at, at
from (select n, now() - interval '181 days' * (1 - n::float8 / :users) as at from generate_series(1, :users) n) new;

create unlogged table scale_users as
select row_number() over (order by id)::int as n, id from users where issuer = 'https://scale.test';
alter table scale_users add primary key (n);

-- Some people own many pictures, most a few.
create unlogged table scale_images as
select n, uuidv7(at - now()) as id, at,
       case when n % :every = 0 and n / :every <= :pictures then :'heavy'::uuid end as owner,
       (1 + floor(:users * random() ^ 2))::int as nth
from (select n, now() - interval '180 days' * (1 - n::float8 / :images) as at from generate_series(1, :images) n) new;
update scale_images i set owner = u.id from scale_users u where i.owner is null and u.n = least(i.nth, :users);
alter table scale_images add primary key (n);

insert into images (id, owner_id, object_key, thumbnail_key, name, content_type, content_sha256, size_bytes, width, height, created_at)
select id, owner, 'images/' || id || '/original', 'images/' || id || '/thumbnail', 'IMG_' || n || '.jpg', 'image/jpeg', sha256(id::text::bytea),
       2000000, 3000, 2000, at
from scale_images order by n;

create unlogged table scale_jobs as
select new.n, uuidv7(new.at - now()) as id, new.at, i.id as image, i.owner, tool,
       case when kind < 0.75 then 'paid' when kind < 0.95 or new.at < now() - interval '90 days' then 'free' else 'visitor' end as tier,
       -- Jobs that left nothing behind are deleted after 90 days.
       case when ending < 0.93 or new.at < now() - interval '90 days' then 'done' when ending < 0.98 then 'failed' else 'cancelled' end
         as state,
       random() < 0.15 as is_deleted
from (
    select n, now() - interval '180 days' * (1 - n::float8 / :jobs) as at, random() as kind, random() as ending,
           case n % 10 when 0 then 'magic-fix' when 1 then 'upscale' when 2 then 'upscale' when 3 then 'upscale'
                       else 'remove-background' end as tool,
           greatest(1, n * 2 / 5 - floor(random() * 50)::int) as picture
    from generate_series(1, :jobs) n
) new join scale_images i on i.n = picture
order by new.n;
-- A picture has one free run with a tool; whoever wants another one pays. Magic Fix has none.
update scale_jobs set tier = 'paid' where tier = 'free' and tool = 'magic-fix';
update scale_jobs j set tier = 'paid' from (
    select n, row_number() over (partition by image, tool order by n) as nth from scale_jobs where tier = 'free' and state = 'done'
) again where again.n = j.n and again.nth > 1;
update scale_jobs set image = null, owner = null, is_deleted = true where tier = 'visitor';

insert into jobs (id, owner_id, image_id, tool, factor, tier, cost, state, attempt, run_after, idempotency_key, failure_code,
                  failure_detail, created_at, started_at, finished_at, mode, prompt, mask_sha256, turn, result_deleted_at)
select id, owner, image, tool, case tool when 'upscale' then 2 end, tier, case tier when 'paid' then 5 else 0 end, state, 1, at,
       case when owner is not null and at > now() - interval '7 days' and n % 2 = 0 then 'key ' || n end,
       case state when 'failed' then 'image_unreadable' end, case state when 'failed' then 'We could not read this picture.' end,
       at, at + interval '1 second', at + interval '3 seconds', case tool when 'magic-fix' then 'remove' end,
       case tool when 'magic-fix' then 'remove the lamp' end, case tool when 'magic-fix' then sha256(id::text::bytea) end, n,
       case when state = 'done' and is_deleted then at + interval '1 day' end
from scale_jobs order by n;

insert into free_runs (image_id, tool, job_id)
select image, tool, id from scale_jobs where tier = 'free' and state = 'done' and image is not null order by n;

insert into results (id, job_id, image_id, owner_id, tool, factor, mode, prompt, object_key, thumbnail_key, size_bytes, width,
                     height, model, model_sha256, device, duration_ms, created_at)
select uuidv7(at + interval '3 seconds' - now()), id, image, owner, tool, case tool when 'upscale' then 2 end,
       case tool when 'magic-fix' then 'remove' end, case tool when 'magic-fix' then 'remove the lamp' end,
       'results/' || id || '/1.png', 'results/' || id || '/1-thumbnail.png', 5000000, 3000, 2000, 'isnet', repeat('0', 64),
       'cuda', 2000, at + interval '3 seconds'
from scale_jobs where state = 'done' and not is_deleted order by n;

insert into ledger (user_id, kind, amount, created_at) select id, 'signup_grant', 20, created_at from users where issuer = 'https://scale.test' order by id;
create unlogged table scale_orders as
select gen_random_uuid() as id, id as buyer, now() - interval '179 days' as at from scale_users where n % 10 = 0;
insert into orders (id, user_id, pack, credits, amount_cents, currency, status, fulfilled_at, session, payment_intent, created_at)
select id, buyer, 1, 20, 500, 'usd', 'paid', at, 'cs_' || id, 'pi_' || id, at from scale_orders;
insert into ledger (user_id, kind, amount, order_id, created_at) select buyer, 'purchase', 20, id, at from scale_orders;
insert into ledger (user_id, kind, amount, reference, created_at)
select owner, 'admin', 5 * count(*), 'scale ' || owner, now() - interval '180 days'
from scale_jobs where tier = 'paid' group by owner;
insert into ledger (user_id, kind, amount, job_id, created_at)
select owner, 'job', -5, id, at + interval '3 seconds' from scale_jobs where tier = 'paid' and state = 'done' order by n;
update users set credits = sum from (select user_id, sum(amount) from ledger group by user_id) booked
where booked.user_id = users.id and credits <> sum;

-- Uploads and attempts under way, announced in case they never end.
insert into doomed_objects (object_key, since, is_announced)
select 'results/' || gen_random_uuid() || '/1.png', now() + interval '3 hours', true from generate_series(1, :jobs / 20);

drop table scale_users, scale_images, scale_jobs, scale_orders;
