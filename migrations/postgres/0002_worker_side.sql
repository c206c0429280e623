-- A consumer that is added later may start with what the inbox holds already. Until all of that is
-- its work it has no claims, because a claim would overtake the older events of a conversation.
ALTER TABLE consumers ADD COLUMN fill_next  BIGINT; -- next event to look at; none once it is filled
ALTER TABLE consumers ADD COLUMN fill_last  BIGINT; -- newest event when it was added: later ones made work by themselves
ALTER TABLE consumers ADD COLUMN fill_since BIGINT; -- only events received at or after this; none takes all

-- What is done only grows until it is removed, so it is not counted: it is this number less all else.
ALTER TABLE consumers ADD COLUMN work_count BIGINT NOT NULL DEFAULT 0; -- pieces of its work in whatever state
UPDATE consumers SET work_count = (SELECT count(*) FROM work WHERE consumer_id = consumers.id);

-- Removing an event finds its identities, and later those that are to be forgotten.
DROP INDEX identities_event;
CREATE INDEX identities_event ON identities (event_seq);
CREATE INDEX identities_expiring ON identities (expires_at) WHERE expires_at IS NOT NULL;

-- Removing an event finds its effects. Those that nothing was recorded for are few, and are looked
-- through without the others.
CREATE INDEX effects_event ON effects (event_seq);
CREATE INDEX effects_begun ON effects (consumer_id, begun_at, key_hash) WHERE state = 'begun';
CREATE INDEX effects_finished ON effects (consumer_id, begun_at, key_hash) WHERE state = 'finished';

-- Dead work is brought back in order of receipt, however much of it there is.
CREATE INDEX work_dead_event ON work (consumer_id, event_seq) WHERE state = 3;
