-- The durable facts of one host's pipelines. Everything else is derived from them.
-- Bodies are the canonical JSON bytes of the protocol's values, with the SHA-256 that they had when they were written.

CREATE TABLE ledger (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    id  TEXT    NOT NULL
) STRICT;

-- One row while a host holds the lease. The counter only grows while one holder follows another.
CREATE TABLE lease (
    one       INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    holder_id TEXT    NOT NULL,
    holder    BLOB    NOT NULL,
    counter   INTEGER NOT NULL
) STRICT;

-- The head: what every decision's conditional update is against.
CREATE TABLE pipeline (
    pipeline     TEXT    NOT NULL PRIMARY KEY,
    generation   INTEGER NOT NULL CHECK (generation >= 1),
    stepped_down INTEGER NOT NULL CHECK (stepped_down IN (0, 1)),
    head_epoch   INTEGER NOT NULL CHECK (head_epoch >= 0),
    head_hash    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest generation, and older ones that owe a sweep. `base` is null while the generation runs, and the head at its end afterwards.
CREATE TABLE generation (
    pipeline   TEXT    NOT NULL REFERENCES pipeline,
    generation INTEGER NOT NULL,
    base       INTEGER,
    manifest   BLOB    NOT NULL,
    hash       TEXT    NOT NULL,
    PRIMARY KEY (pipeline, generation)
) STRICT;

-- Tries other than the first that no decision and no replacement names.
CREATE TABLE attempt (
    pipeline   TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    label      TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    PRIMARY KEY (pipeline, label),
    FOREIGN KEY (pipeline, generation) REFERENCES generation ON DELETE CASCADE
) STRICT;
CREATE INDEX attempt_of_generation ON attempt (pipeline, generation);

CREATE TABLE decision (
    pipeline TEXT    NOT NULL REFERENCES pipeline,
    epoch    INTEGER NOT NULL CHECK (epoch >= 1),
    snapshot INTEGER NOT NULL CHECK (snapshot IN (0, 1)),
    hash     TEXT    NOT NULL,
    body     BLOB    NOT NULL,
    PRIMARY KEY (pipeline, epoch)
) STRICT;

-- Every transaction that a decision or a replacement names: the index that confirmations, replacements and pruning look things up in.
CREATE TABLE handle (
    pipeline TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    epoch    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, label),
    FOREIGN KEY (pipeline, epoch) REFERENCES decision ON DELETE CASCADE
) STRICT;
CREATE INDEX handle_of_epoch ON handle (pipeline, epoch);

CREATE TABLE confirmation (
    pipeline TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    verdict  TEXT    NOT NULL CHECK (verdict IN ('committed', 'already-committed')),
    PRIMARY KEY (pipeline, label),
    FOREIGN KEY (pipeline, label) REFERENCES handle ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE replacement (
    number   INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    pipeline TEXT    NOT NULL,
    lost     TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    hash     TEXT    NOT NULL,
    body     BLOB    NOT NULL,
    UNIQUE (pipeline, lost),
    UNIQUE (pipeline, label),
    FOREIGN KEY (pipeline, lost) REFERENCES handle ON DELETE CASCADE,
    FOREIGN KEY (pipeline, label) REFERENCES handle ON DELETE CASCADE
) STRICT;
