"""Errors that the user can put right. Everything else is a defect of the program and keeps its traceback."""

from __future__ import annotations

import errno
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


@contextmanager
def explained_os_errors(doing: str) -> Iterator[None]:
    """Turns a full disk or missing permission into a ConversionError that says what was being done."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ConversionError(
                "disk-full",
                f"the disk is full while {doing}",
                "Free some space, or give the machine a larger disk (conversionDiskGb)",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            place = f" ({error.filename})" if error.filename else ""
            raise ConversionError(
                "permission",
                f"permission denied while {doing}{place}",
                "Let this user write there, or name another folder",
            ) from error
        raise
