-- The trace that a run belongs to, as a W3C `traceparent`: the worker that takes it goes on with the trace of the click.
alter table jobs add column traceparent text;
