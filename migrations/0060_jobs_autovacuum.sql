-- Keeps the statistics and the queue's index of a table whose few active rows change all the time. By default, Postgres analyzes
-- and vacuums `jobs` once a tenth and a fifth of it have changed: with millions of jobs, the planner knows no queue after a
-- burst, and each claim steps over the index entries of hundreds of thousands of jobs that have left the queue.
set local lock_timeout = '5s';

alter table jobs set (
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 2000,
    autovacuum_vacuum_scale_factor = 0.01,
    -- Otherwise a vacuum skips the indexes as long as less than two percent of the table's pages have dead rows.
    vacuum_index_cleanup = on
);
