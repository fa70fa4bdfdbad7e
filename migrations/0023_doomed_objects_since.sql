-- no-transaction
-- The janitor takes the oldest first; most rows announce uploads that will end well.
create index concurrently if not exists doomed_objects_since on doomed_objects (since);
