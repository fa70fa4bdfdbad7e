-- Whether a Magic Fix may change no pixel outside its mask. A process from before 0027 leaves it out: its fixes fade into
-- their surroundings, as they always did.
set local lock_timeout = '5s';

alter table jobs add column exact_mask boolean not null default false;
