-- Prompts are deleted with the picture or the result of their job, and messages of the payment provider that belong to no order
-- keep no text. This cleans up what is from before.
set local lock_timeout = '5s';

update jobs set prompt = '(deleted)', mask_sha256 = '\x'
where prompt is not null and state in ('done', 'failed', 'cancelled')
  and (image_id is null or result_deleted_at is not null);

update payment_events set payload = '' where order_id is null and payload <> '';
