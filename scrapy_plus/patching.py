"""gevent's patch, applied before anything else; and what was imported too early for it."""

from __future__ import annotations

import sys
import warnings

from scrapy_plus.errors import UsageError

_MUST_COME_LATER = ("requests", "urllib3", "ssl")
too_early: tuple[str, ...] = ()
"""Modules that were imported, unpatched, before scrapy_plus: their sockets would block every other request."""


def patch() -> None:
    """Makes the standard library cooperative; warns if a module that the patch must precede is already there."""
    global too_early
    from gevent import monkey

    if monkey.is_module_patched("ssl"):
        return
    too_early = tuple(name for name in _MUST_COME_LATER if name in sys.modules)
    if too_early:
        warnings.warn(f"{too_early[0]} was imported before scrapy_plus; {_ADVICE}", RuntimeWarning, stacklevel=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", monkey.MonkeyPatchWarning)  # ours says the same, and what to do
        monkey.patch_all()


_ADVICE = "move `import scrapy_plus` above it (it must be the first import of your program)"


def refuse_if_too_late() -> None:
    """Raises UsageError if network requests would block, because a module was imported before the patch."""
    if too_early:
        raise UsageError(f"{too_early[0]} was imported before scrapy_plus, so requests would block; {_ADVICE}")
