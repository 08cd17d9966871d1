"""What each call of the contract does for a count."""

import json

from wit_world.imports.types import Prepared, Profile

import errors
from folder import Folder

# The handle is the count as decimal digits. Another form of handle gets another name.
HANDLE_FORMAT = "count/1"

# The host checks the configuration against this before it opens the sink.
SCHEMA = json.dumps(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "directory": {
                "type": "string",
                "minLength": 1,
                "description": "The folder that the counts are written to, by the name that the grant gives it.",
            }
        },
        "required": ["directory"],
        "additionalProperties": False,
    },
    indent=2,
)

LARGEST_U32 = 2**32 - 1


class CountSink:
    def __init__(self, config):
        """Writers, committers and probes need the same: a folder that is there."""
        try:
            self.directory = json.loads(config)["directory"]
        except (ValueError, KeyError, TypeError) as error:
            raise errors.refused(f"the configuration does not fit: {error!r}") from error
        self.folder = Folder(self.directory)
        # Between begin and precommit: the label, and the records so far.
        self.label = None
        self.records = 0

    def profile(self):
        return Profile(
            target=f"folder {self.directory}",
            # Counting needs no record's bytes, so no column is asked for beyond what a batch always has.
            ends=False,
            keys=False,
            timestamps=False,
            headers=False,
            max_batch_bytes=0,
            max_batch_records=0,
            # A file stays until somebody removes it, and a write ends with the process that makes it.
            prepared_lifetime_s=None,
            settle_ms=0,
        )

    def begin(self, label):
        """Nothing is written yet; only a label that is taken is found out now rather than at the end."""
        if self.label is not None:
            raise errors.broken(f"begin of {label} while {self.label} is open")
        if self.folder.knows(label):
            raise errors.conflict(f"{label} is taken")
        self.label, self.records = label, 0

    def invoke(self, label, batch):
        if self.label != label:
            raise errors.broken(f"invoke of {label}, which is not open")
        self.records += batch.count
        return []

    def precommit(self, label):
        if self.label != label:
            raise errors.broken(f"precommit of {label}, which is not open")
        self.label = None
        self.folder.prepare(label, content(self.records))
        # A count beyond 32 bits is not said rather than said wrongly.
        said = self.records if self.records <= LARGEST_U32 else None
        return Prepared(handle=str(self.records).encode(), records=said)

    def commit(self, label, handle):
        if not handle.isdigit():
            raise errors.broken(f"the handle of {label} is not a {HANDLE_FORMAT}")
        return self.folder.commit(label, content(int(handle)))

    def abort(self, label):
        """The label is all there is: the transaction may be one of a writer that died."""
        if self.label == label:
            self.label = None
        self.folder.abort(label)


def content(records):
    return b"%d\n" % records
