"""What the keys of a crawl begin with, from settings alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy_plus.conf.options import Kind, Unfit, text
from scrapy_plus.errors import SettingsError


def before_tag(settings: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What stands before the tag in all keys of a crawl, and lines that deserve a warning."""
    names = {name: settings[name] for name in ("REDIS_BACKUP_NAME", "REDIS_QUEUE_NAME", "REDIS_SET_NAME")}
    given = {name: value for name, value in names.items() if value}
    if not given:
        return "", []
    used, prefix = next(iter(given.items()))
    notes = [f"{name} has no effect: all keys of a crawl begin alike, with {used}" for name in given if name != used]
    return f"{prefix.rstrip(':')}:", [] if len(set(given.values())) == 1 else notes


def project_name(name: str | None, project_dir: Path | None, *, is_embedded: bool) -> str:
    """PROJECT_NAME, or the folder's name where nobody else can have a project of that name.

    Raises: SettingsError if it is not set, and the Redis may be shared by others.
    """
    if name:
        return name
    if is_embedded and project_dir is not None:
        # Colons and braces have a meaning in keys. A folder may have them, and its Redis has no other project.
        return re.sub(r"[:{}]", "_", project_dir.name) or "project"
    meant = project_dir.name if project_dir is not None else "shop"
    raise SettingsError(
        "PROJECT_NAME is not set, and others may use the same Redis; name the crawl: "
        f"PROJECT_NAME = {meant!r} in settings.py"
    )


def key_pattern() -> Kind:
    """A key with a place for the spider's name: two crawls in one key could not be told apart."""

    def read(value: Any) -> str:
        word = str(text().read(value))
        if "%(spider)s" not in word:
            raise Unfit(f"{word!r} must have %(spider)s in it, since each crawl has a key of its own")
        return word

    return Kind("a text with %(spider)s in it", read)


def items_key(pattern: str | None, *, prefix: str, spider: str, job: str = "") -> str:
    """Where the items are stored: `{project:spider}:items`, or REDIS_ITEMS_KEY with spider and job put in.

    Raises: SettingsError if there is a job, and no place for it.
    """
    if not pattern:
        return f"{prefix}:items"
    if job and "%(job)s" not in pattern:
        raise SettingsError(f"REDIS_ITEMS_KEY = {pattern!r} needs %(job)s in it, since JOB = {job!r}: one key a crawl")
    return pattern.replace("%(spider)s", spider).replace("%(job)s", job)
