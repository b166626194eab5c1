"""The names of a crawl's keys in Redis. They share one hash tag, so that a cluster keeps them on one node."""

from __future__ import annotations

from scrapy_plus.errors import SettingsError

NAMES = (
    "meta", "req", "open", "paced", "waiting", "alone", "leases", "owner", "delayed", "dead", "why",
    "retry", "lost", "last", "started", "sites", "names", "nodes", "facts", "stats", "items",
)  # fmt: skip
"""The keys of fixed name; the others are q:<site>, s:<site> (numbers) and seen:<epoch>:<bucket>."""


def crawl_prefix(project: str, spider: str, job: str = "", *, before: str = "") -> str:
    """What all keys of a crawl begin with: `before{project:spider:job}`.

    Braces would end the hash tag early, and colons make one crawl look like another (at the end they cannot).
    Raises: SettingsError for a name that has one.
    """
    for what, name, refused in (
        ("PROJECT_NAME", project, "{}:"), ("the spider's name", spider, "{}:"), ("JOB", job, "{}")
    ):  # fmt: skip
        if set(name) & set(refused):
            raise SettingsError(
                f"{what} = {name!r} cannot name a crawl in Redis, where {' '.join(refused)} have a meaning; change it"
            )
    return f"{before}{{{':'.join(part for part in (project, spider, job) if part)}}}"


class Keys:
    """The keys of one crawl, by name: `keys.req` is `prefix:req`. `items` may be elsewhere."""

    def __init__(self, prefix: str, *, items: str | None = None) -> None:
        self.prefix = prefix
        for name in NAMES:
            setattr(self, name, f"{prefix}:{name}")
        if items:
            self.items = items

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"no key is called {name!r}")

    def queue(self, site: int) -> str:
        return f"{self.prefix}:q:{site}"

    def site(self, site: int) -> str:
        return f"{self.prefix}:s:{site}"

    def bucket(self, epoch: int, number: int) -> str:
        return f"{self.prefix}:seen:{epoch}:{number}"
