"""Counts the records of each transaction, and shows the count when the transaction is committed.

A committed transaction is a file `<label>.count` with the number of its records. Until then it is a hidden file, so a reader
that passes over hidden files sees each count exactly once.

Needs a folder: `grant: { folders: { /out: ./counts } }` with the config `{ directory: /out }`.
"""

# Every module is imported here or below, at the top: the interpreter is frozen after these lines have run, at build time,
# and an import at run time would find no library.
import functools
import sys
import traceback

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports.types import Description, Guarantee, Need

import errors
import sink

DOCUMENTATION = __doc__


def typed_errors(function):
    """Turns what Python raises into the contract's error. Anything else that left a function would trap the instance."""

    @functools.wraps(function)
    def call(*arguments):
        try:
            return function(*arguments)
        except Err:
            raise
        except OSError as error:
            raise errors.from_os(error) from error
        except Exception as error:
            # The host's log gets the traceback, line by line.
            traceback.print_exc(file=sys.stderr)
            raise errors.broken(f"{type(error).__name__}: {error}") from error

    return call


# What open makes. It is kept in the module: componentize-py makes a new object of the class below for every call.
opened = None


def sink_opened():
    if opened is None:
        raise errors.broken("called before open")
    return opened


class Sink(wit_world.exports.Sink):
    """The border to the host. componentize-py finds this class by the name of the interface."""

    def describe(self):
        return Description(
            name="count-python",
            version="0.1.0",
            summary="Counts the records of each transaction (example in Python).",
            documentation=DOCUMENTATION,
            config_schema=sink.SCHEMA,
            guarantee=Guarantee.EXACTLY_ONCE,
            handle_formats=[sink.HANDLE_FORMAT],
            needs=[Need("wasi:filesystem/preopens", "The counts are files in the folder that `directory` names.")],
        )

    @typed_errors
    def open(self, setup):
        global opened
        opened = sink.CountSink(setup.config)
        return opened.profile()

    @typed_errors
    def begin(self, transaction):
        sink_opened().begin(transaction.label)

    @typed_errors
    def invoke(self, label, batch):
        return sink_opened().invoke(label, batch)

    @typed_errors
    def precommit(self, label):
        return sink_opened().precommit(label)

    @typed_errors
    def commit(self, transaction, handle):
        return sink_opened().commit(transaction.label, handle)

    @typed_errors
    def abort(self, transaction):
        sink_opened().abort(transaction.label)
