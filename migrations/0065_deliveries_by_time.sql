-- no-transaction
-- Finds the deliveries that are due, without a look at those that wait for their next attempt. The condition on `attempts`
-- always holds. It keeps this index from statements that look for the deliveries of one webhook: with old statistics,
-- Postgres expects few to be due, and would read all of them for each webhook.
create index concurrently if not exists webhook_deliveries_by_time on webhook_deliveries (due_at)
    where state = 'waiting' and attempts >= 0;
