"""Errors that the user can put right. Everything else is a defect of the program and keeps its traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class ConversionError(Exception):
    """Something about the inputs or the machine that stops a conversion.

    kind: short machine-readable word, e.g. `images` or `disk-full`; it stands in the failure manifest.
    message: what is wrong, naming the thing. fix: what to do about it.
    """

    def __init__(self, kind: str, message: str, fix: str) -> None:
        super().__init__(f"{message}. {fix}")
        self.kind = kind
        self.message = message
        self.fix = fix


def system_error(error: Exception) -> int | None:
    """Number of the system's error behind an exception. TensorFlow and other libraries in C++ only quote the system's words."""
    if isinstance(error, OSError):
        return error.errno
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
        if os.strerror(number) in str(error):
            return number
    return None


@contextmanager
def explained_os_errors(doing: str) -> Iterator[None]:
    """Turns a full disk or missing permission into a ConversionError that says what was being done."""
    try:
        yield
    except ConversionError:
        raise
    except Exception as error:
        number = system_error(error)
        if number in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(doing) from error
        if number in (errno.EACCES, errno.EPERM, errno.EROFS):
            name = error.filename if isinstance(error, OSError) else None
            place = f" ({name})" if name else ""
            raise ConversionError(
                "permission",
                f"permission denied while {doing}{place}",
                "Let this user write there, or name another folder",
            ) from error
        raise


def disk_full(doing: str) -> ConversionError:
    return ConversionError(
        "disk-full",
        f"the disk is full while {doing}",
        "Free some space, or give the machine a larger disk (conversionDiskGb)",
    )
