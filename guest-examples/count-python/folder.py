"""A folder whose files are the state of every transaction.

    files of a label    the transaction is
    neither             unknown here: never prepared, or aborted
    .<label>.count      prepared: durable, and invisible to everything that passes over hidden files
    <label>.count       committed

One rename takes it from prepared to committed, so there is no moment with both or with half a file. A rename survives a crash
of the machine only once the folder is synced; that happens before any answer that the host may rely on.
"""

import os

from wit_world.imports.types import Verdict

import errors


class Folder:
    def __init__(self, path):
        """Fails when the folder is not granted, or is not a folder. Changes nothing."""
        if not os.path.exists(path):
            raise errors.refused(f"no folder {path} was granted; a grant looks like `grant: {{ folders: {{ {path}: ./counts }} }}`")
        if not os.path.isdir(path):
            raise errors.refused(f"{path} is not a folder")
        self.path = path

    def knows(self, label):
        """Whether the folder knows the label, prepared or committed."""
        return os.path.exists(self._prepared(label)) or os.path.exists(self._committed(label))

    def prepare(self, label, content):
        """Makes the content durable and leaves it invisible."""
        # Mode "x": whoever prepared this label before, his file is not overwritten.
        with open(self._prepared(label), "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._sync()

    def commit(self, label, content):
        """Makes a prepared content visible. Safe to repeat, and safe from two processes at once: only one of them renames."""
        try:
            os.rename(self._prepared(label), self._committed(label))
            verdict = Verdict.COMMITTED
        except FileNotFoundError:
            try:
                with open(self._committed(label), "rb") as file:
                    found = file.read()
            except FileNotFoundError:
                return Verdict.UNKNOWN
            if found != content:
                raise errors.conflict(f"{label} was committed with another content")
            verdict = Verdict.ALREADY_COMMITTED
        # Also for "already committed": whoever renamed it may have died before its sync.
        self._sync()
        return verdict

    def abort(self, label):
        """Removes a prepared content. Safe to repeat; a label that was never prepared is fine."""
        if os.path.exists(self._committed(label)):
            raise errors.conflict(f"{label} is committed")
        try:
            os.remove(self._prepared(label))
        except FileNotFoundError:
            return
        self._sync()

    def _prepared(self, label):
        return os.path.join(self.path, f".{label}.count")

    def _committed(self, label):
        return os.path.join(self.path, f"{label}.count")

    def _sync(self):
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
