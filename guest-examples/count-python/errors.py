"""The contract's error, by who has to act on it. Each function returns an exception to raise."""

import errno

from componentize_py_types import Err
from wit_world.imports.types import Error, ErrorKind

# What only the operator can mend. A full disk, say, may be mended by time.
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}


def refused(message):
    """The operator has to change something: configuration, grants, rights."""
    return Err(Error(ErrorKind.REFUSED, message, "", 0))


def conflict(message):
    """The label is not in the state that the host believes it to be in."""
    return Err(Error(ErrorKind.CONFLICT, message, "", 0))


def broken(message):
    """A mistake of this plugin, or calls in an order that the contract excludes."""
    return Err(Error(ErrorKind.BROKEN, message, "", 0))


def from_os(error):
    """What a failed access to a file means."""
    if error.errno in REFUSED:
        kind = ErrorKind.REFUSED
    elif error.errno == errno.EEXIST:
        kind = ErrorKind.CONFLICT
    else:
        kind = ErrorKind.UNAVAILABLE
    return Err(Error(kind, str(error), errno.errorcode.get(error.errno, ""), 0))
