"""The names of a crawl's keys in Redis. They share one hash tag, so that a cluster keeps them on one node."""

from __future__ import annotations

NAMES = (
    "meta", "req", "open", "paced", "waiting", "alone", "leases", "owner", "delayed", "dead", "why",
    "retry", "lost", "last", "started", "sites", "names", "nodes", "facts", "stats", "items",
)  # fmt: skip
"""The keys of fixed name; the others are q:<site>, s:<site> (numbers) and seen:<epoch>:<bucket>."""


def crawl_prefix(project: str, spider: str, job: str = "", *, before: str = "") -> str:
    """What all keys of a crawl begin with: `before{project:spider:job}`.

    Braces would end the hash tag early, and colons make one crawl look like another, so names cannot have them.
    """
    for name in (project, spider, job):
        if set(name) & set("{}:"):
            raise ValueError(f"{name!r} cannot name a crawl in Redis: it has one of the characters {{ }} :")
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
