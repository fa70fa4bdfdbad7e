-- no-transaction
-- Finds the messages of the payment provider that belong to no order and still have their text; the janitor deletes it.
create index concurrently if not exists payment_events_to_forget on payment_events (received_at)
    where order_id is null and payload <> '';
