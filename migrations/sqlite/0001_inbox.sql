-- Times are microseconds since the Unix epoch; payloads and hashes are bytes. Foreign keys stand
-- only where rows are few: on the hot tables they would cost a look-up for each row, and every
-- write of an event is one code path in one transaction.

-- Receivers: bots and webhook endpoints, configured now or once.
CREATE TABLE sources (
    id               INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
    kind             TEXT    NOT NULL,                  -- which receiver: telegram or unifyport
    name             TEXT    NOT NULL,                  -- the configured name
    account          TEXT,                              -- a bot's id, once getMe has told it
    created_at       INTEGER NOT NULL,                  -- when the store first heard of it
    forgotten_at     INTEGER,                           -- when an operator let it go; configuring it again ends that
    stored           INTEGER NOT NULL DEFAULT 0,        -- events that became a row
    duplicates       INTEGER NOT NULL DEFAULT 0,        -- receipts of bytes that were there already
    conflicts        INTEGER NOT NULL DEFAULT 0,        -- receipts of other bytes under a known identity
    last_received_at INTEGER,                           -- newest receipt of any of the three
    state            TEXT    NOT NULL DEFAULT '',       -- one word the receiver says of itself
    detail           TEXT    NOT NULL DEFAULT '',       -- the same as a sentence with the remedy
    state_since      INTEGER,                           -- since when it says that word
    CONSTRAINT sources_kind CHECK (kind IN ('telegram', 'unifyport')),
    CONSTRAINT sources_name UNIQUE (kind, name)
);

-- A bot's checkpoint and the lease of its one active poller.
CREATE TABLE pollers (
    source_id     INTEGER PRIMARY KEY,        -- the bot
    next_offset   INTEGER,                    -- highest id of the batch just committed + 1; none before the first
    committed_at  INTEGER,                    -- when that batch was committed
    last_ok_at    INTEGER,                    -- until when a poll that went well covers the time
    pending       INTEGER,                    -- updates that wait at Telegram, when it was last asked
    lease_token   BLOB,                       -- random, fresh for each holder; every batch compares it
    lease_holder  TEXT,                       -- who holds it, for people: host and process
    lease_until   INTEGER,                    -- when it runs out; on SQLite the file lock decides instead
    CONSTRAINT pollers_source FOREIGN KEY (source_id) REFERENCES sources (id),
    CONSTRAINT pollers_offset CHECK (next_offset BETWEEN 0 AND 2000000000)
);

-- Every event once, in order of receipt. Bodies stand apart so that these rows stay narrow.
CREATE TABLE events (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT, -- order of receipt; a removed row's number is not given again
    id               BLOB    NOT NULL,                  -- UUIDv7, the public id
    source_id        INTEGER NOT NULL,                  -- the receiver that took it
    type             TEXT    NOT NULL,                  -- CloudEvents type
    channel          TEXT    NOT NULL,                  -- telegram, whatsapp, ...
    account          TEXT    NOT NULL,                  -- bot id or UnifyPort account_id
    external_id      TEXT    NOT NULL,                  -- the sender's id of it
    origin           TEXT    NOT NULL,                  -- CloudEvents source
    subject          TEXT,                              -- the conversation, none if it belongs to none
    conversation     INTEGER,                           -- 64 bits of the subject's SHA-256: what lanes and look-ups use
    occurred_at      INTEGER,                           -- by the sender's word
    received_at      INTEGER NOT NULL,                  -- by our clock, once
    body_hash        BLOB    NOT NULL,                  -- SHA-256 of the body, tells a duplicate from a conflict
    size             INTEGER NOT NULL,                  -- bytes of the body
    secret           INTEGER,                           -- position of the secret that verified the first receipt
    flags            INTEGER NOT NULL DEFAULT 0,        -- event::Flags
    receipts         INTEGER NOT NULL DEFAULT 1,        -- how often it came, variants included
    last_received_at INTEGER NOT NULL,                  -- when it last came
    CONSTRAINT events_conversation_of_subject CHECK ((subject IS NULL) = (conversation IS NULL))
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_conversation ON events (conversation, seq) WHERE conversation IS NOT NULL;

-- The exact bytes of each event.
CREATE TABLE bodies (
    event_seq INTEGER PRIMARY KEY, -- the event
    body      BLOB NOT NULL,       -- as received
    headers   TEXT                 -- the first receipt's own headers, a JSON object; none for Telegram
);

-- What makes a receipt a duplicate. Outlives the event by identity_retention.
CREATE TABLE identities (
    source_id  INTEGER NOT NULL, -- keys are per receiver: one holder cannot hide another's events
    key        BLOB    NOT NULL, -- key space byte and key
    event_seq  INTEGER NOT NULL, -- the event it names
    body_hash  BLOB,             -- the event's, set when its row is removed
    expires_at INTEGER,          -- set when the event is removed
    PRIMARY KEY (source_id, key)
) WITHOUT ROWID;
CREATE INDEX identities_event ON identities (event_seq) WHERE expires_at IS NOT NULL;

-- Other authentic bodies under the identity of an event. Never evicted.
CREATE TABLE variants (
    event_seq        INTEGER NOT NULL,           -- the event whose identity it came under
    body_hash        BLOB    NOT NULL,           -- SHA-256 of the body
    body             BLOB    NOT NULL,           -- as received
    headers          TEXT,                       -- the first receipt's own headers, a JSON object
    secret           INTEGER,                    -- position of the secret that verified it
    received_at      INTEGER NOT NULL,           -- first receipt
    last_received_at INTEGER NOT NULL,           -- last receipt
    receipts         INTEGER NOT NULL DEFAULT 1, -- how often it came
    PRIMARY KEY (event_seq, body_hash)
) WITHOUT ROWID;

-- Independent readers of the inbox.
CREATE TABLE consumers (
    id            INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
    name          TEXT    NOT NULL,                  -- the configured name
    ordering      TEXT    NOT NULL,                  -- conversation or none
    lease         INTEGER NOT NULL,                  -- default lease, microseconds
    max_attempts  INTEGER NOT NULL,                  -- the attempt with this number is the last
    backoff_first INTEGER NOT NULL,                  -- shortest wait after a failed attempt, microseconds
    backoff_max   INTEGER NOT NULL,                  -- longest, microseconds
    channels      TEXT    NOT NULL DEFAULT '[]',     -- filter, a JSON list; empty takes all
    source_names  TEXT    NOT NULL DEFAULT '[]',     -- filter on configured names of receivers, likewise
    types         TEXT    NOT NULL DEFAULT '[]',     -- filter on event types, likewise
    paused        INTEGER NOT NULL DEFAULT 0,        -- 1: claims are empty, work is still made
    created_at    INTEGER NOT NULL,                  -- when it was added
    last_claim_at INTEGER,                           -- when a worker last asked
    CONSTRAINT consumers_ordering CHECK (ordering IN ('conversation', 'none')),
    CONSTRAINT consumers_name UNIQUE (name)
);

-- One row for each event and consumer that wants it: ready (0), leased (1), done (2), dead (3).
CREATE TABLE work (
    consumer_id INTEGER NOT NULL,           -- whose work
    event_seq   INTEGER NOT NULL,           -- which event
    pos         INTEGER NOT NULL,           -- place in the order of work: the event's seq, or a later number once replayed
    lane        INTEGER,                    -- the event's conversation if the consumer keeps order, else none
    state       INTEGER NOT NULL DEFAULT 0, -- 0 ready, 1 leased, 2 done, 3 dead
    attempt     INTEGER NOT NULL DEFAULT 0, -- claims that count
    due_at      INTEGER,                    -- ready: claimable from; leased: until; finished: none
    since       INTEGER NOT NULL,           -- when due_at was set; in the future means that the clock went back
    receipt     BLOB,                       -- token of the claim that holds or finished it
    finished_at INTEGER,                    -- when it became done or dead
    PRIMARY KEY (consumer_id, event_seq),
    CONSTRAINT work_state CHECK (state BETWEEN 0 AND 3),
    CONSTRAINT work_due CHECK ((due_at IS NULL) = (state >= 2)),
    CONSTRAINT work_finished CHECK ((finished_at IS NULL) = (state < 2)),
    CONSTRAINT work_leased CHECK (state <> 1 OR receipt IS NOT NULL)
) WITHOUT ROWID;
-- Finished work is in neither index, so that claims cost the same however much lies behind.
CREATE INDEX work_lane ON work (consumer_id, lane, pos) WHERE state < 2 AND lane IS NOT NULL;
CREATE INDEX work_due ON work (consumer_id, due_at, pos) WHERE state < 2 AND lane IS NULL;
CREATE INDEX work_dead ON work (consumer_id, pos) WHERE state = 3;

-- A conversation is claimed through its lane: whoever holds the lane's head holds the lane.
CREATE TABLE lanes (
    consumer_id INTEGER NOT NULL, -- whose work
    lane        INTEGER NOT NULL, -- the conversation
    head        INTEGER,          -- pos of the first unfinished work; none when there is none
    due_at      INTEGER,          -- that work's due_at
    since       INTEGER,          -- that work's since
    PRIMARY KEY (consumer_id, lane),
    CONSTRAINT lanes_head CHECK ((head IS NULL) = (due_at IS NULL) AND (head IS NULL) = (since IS NULL))
) WITHOUT ROWID;
CREATE INDEX lanes_due ON lanes (consumer_id, due_at, head) WHERE due_at IS NOT NULL;

-- Failed attempts, for people.
CREATE TABLE attempts (
    consumer_id INTEGER NOT NULL, -- whose work
    event_seq   INTEGER NOT NULL, -- which event
    attempt     INTEGER NOT NULL, -- its number
    at          INTEGER NOT NULL, -- when it failed
    error       TEXT    NOT NULL, -- what the worker said, or that its lease ran out
    PRIMARY KEY (consumer_id, event_seq, attempt)
) WITHOUT ROWID;

-- What a worker did outside, recorded around the act.
CREATE TABLE effects (
    consumer_id INTEGER NOT NULL, -- keys are per consumer
    key_hash    BLOB    NOT NULL, -- SHA-256 of the key: a key may be longer than an index entry
    key         TEXT    NOT NULL, -- the worker's idempotency key
    event_seq   INTEGER NOT NULL, -- the event whose delivery began it
    receipt     BLOB    NOT NULL, -- token of the claim that began it
    token       BLOB    NOT NULL, -- random, the newest given; finish and abandon compare it
    state       TEXT    NOT NULL, -- begun or finished; an abandoned one is removed
    begun_at    INTEGER NOT NULL, -- when it was begun
    finished_at INTEGER,          -- when its result was recorded
    result      BLOB,             -- the result, JSON text as sent
    PRIMARY KEY (consumer_id, key_hash),
    CONSTRAINT effects_state CHECK (state IN ('begun', 'finished'))
) WITHOUT ROWID;

-- Possible losses, recorded and not hidden.
CREATE TABLE gaps (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
    source_id       INTEGER NOT NULL,                  -- the bot
    reason          TEXT    NOT NULL,                  -- hole, restart or silence
    from_id         INTEGER,                           -- first update_id missing, if ids tell
    to_id           INTEGER,                           -- last one missing
    from_at         INTEGER,                           -- start of the time in question
    to_at           INTEGER NOT NULL,                  -- its end: when it was noticed
    detail          TEXT    NOT NULL,                  -- a sentence for people
    acknowledged_at INTEGER,                           -- when an operator took note
    CONSTRAINT gaps_source FOREIGN KEY (source_id) REFERENCES sources (id)
);
CREATE INDEX gaps_open ON gaps (source_id) WHERE acknowledged_at IS NULL;

-- Deliveries that were answered 401. Bounded for each endpoint and kind.
CREATE TABLE quarantine (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
    source_id   INTEGER NOT NULL,                  -- the endpoint
    kind        TEXT    NOT NULL,                  -- stale or unverified: they cannot evict each other
    reason      TEXT    NOT NULL,                  -- which check failed
    received_at INTEGER NOT NULL,                  -- by our clock
    peer        TEXT    NOT NULL,                  -- the address that sent it
    headers     TEXT    NOT NULL,                  -- all of them, a JSON object
    body        BLOB    NOT NULL,                  -- as received
    size        INTEGER NOT NULL,                  -- bytes of headers and body, for the bound
    CONSTRAINT quarantine_kind CHECK (kind IN ('stale', 'unverified')),
    CONSTRAINT quarantine_source FOREIGN KEY (source_id) REFERENCES sources (id)
);
CREATE INDEX quarantine_oldest ON quarantine (source_id, kind, id);
