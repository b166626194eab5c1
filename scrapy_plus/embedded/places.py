"""Where the data, the socket and the locks are, and what may be wrong with those places."""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapy_plus.errors import UsageError

_SOCKETS = "/tmp/scrapy-plus-{user}"  # not TMPDIR: all processes of a project must find the same
_POLL_SECONDS = 0.02


@contextmanager
def disk_errors(place: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"the crawl's Redis cannot have {error.filename or place}: {error.strerror}; "
            "make room for it and let it write there, or name another Redis in REDIS_URL"
        ) from error


def data_folder(project_dir: Path) -> Path:
    above = project_dir.resolve() / ".scrapy_plus"
    with disk_errors(above):
        above.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), (above / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
        (above / "redis").mkdir(mode=0o700, exist_ok=True)
    return above / "redis"


def socket_path(data: Path) -> Path:
    """Below a folder that only the owner of the data can enter, who need not be who asks (root may be)."""
    with disk_errors(data):
        owner = data.stat().st_uid
        folder = Path(_SOCKETS.format(user=owner))
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner, os.geteuid()) or found.st_mode & 0o077:
        raise UsageError(f"{folder} must be a folder that only its owner can enter (0700); remove it, and start again")
    return folder / f"{hashlib.sha256(os.fsencode(data)).hexdigest()[:16]}.sock"


class Lock:
    """A file to lock; the lock ends with `close`, or with the process."""

    def __init__(self, path: Path) -> None:
        with disk_errors(path):
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, *, shared: bool = False) -> bool:
        """Whether it could be had at once."""
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self.fd)


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Asks until it is so, at most that long; other greenlets go on meanwhile."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def is_listened_to(path: Path) -> bool:
    """Whether a process accepts connections there, however busy it is."""
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(5)
        try:
            trial.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # a full backlog: somebody is there
            return True
        return True
