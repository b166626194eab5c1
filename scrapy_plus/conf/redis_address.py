"""Which Redis a crawl lives on and what its keys begin with, from settings alone: nobody is asked.

A page ends in one atomic step over backup, queue, seen and items, and no such step spans two servers or two databases.
So the settings may name one place, as often as they like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from scrapy_plus.conf.options import Kind, Unfit, boolean, choice, number, path, text
from scrapy_plus.errors import SettingsError

_GROUPS = ("REDIS", "REDIS_BACKUP", "REDIS_QUEUE", "REDIS_SET")
_PARTS = ("HOST", "PORT", "DB", "PASSWORD")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_PORTS = {"": 6379, "sentinel": 26_379, "cluster": 6379}
_EXAMPLES = {
    "sentinel": "redis+sentinel://host1:26379,host2:26379/name-of-the-master",
    "cluster": "redis+cluster://host1:6379,host2:6379",
}
_URLS = (
    "a URL such as redis://:password@host:6379/0, rediss://..., unix:///path/to/socket, "
    f"{_EXAMPLES['sentinel']} or {_EXAMPLES['cluster']}"
)
_ONE_PLACE = "backup, queue and seen change in one atomic step, which no two servers or databases share; keep one"


class Secret(str):
    """A text that does not show itself where values are listed: its repr has stars for what is nobody's business."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(redacted(self))


def redacted(secret: str) -> str:
    """A URL without who logs in and with what; of any other text only stars."""
    if "://" not in secret:
        return "***" if secret else ""
    # Up to the last @, since a password may hold one unescaped: better to hide too much.
    return re.sub(r"([?&]\w*(?:password|username)=)[^&]*", r"\1***", re.sub(r"://.*@", "://***@", secret))


# -- the address -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where a Redis is and how to log in. As a text it shows neither user nor password.

    `socket_path` names a unix socket, and host and port mean nothing then. `options` are further keywords of redis-py.
    `found_by` is "sentinel" or "cluster" where the server is found by asking: `nodes` (host and port each) are those
    that are asked, and `master` is the name that sentinels know it by.
    """

    host: str = "localhost"
    port: int = 6379
    db: int = 0
    socket_path: str = ""
    tls: bool = False
    found_by: str = ""
    nodes: tuple[tuple[str, int], ...] = ()
    master: str = ""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for two addresses of the same data, however they log in."""
        if self.socket_path:
            return (self.socket_path, self.db)
        if self.found_by:
            return (self.found_by, self.master, frozenset((_same(host), port) for host, port in self.nodes), self.db)
        return (_same(self.host), self.port, self.db)

    @property
    def url(self) -> str:
        """The address with user and password, for other processes; never for a log."""
        user = "" if self.username is None else quote(self.username, safe="")
        login = f"{user}@" if self.password is None else f"{user}:{quote(self.password, safe='')}@"
        return self._with("" if login == "@" else login)

    def __str__(self) -> str:
        return self._with("")

    def _with(self, login: str) -> str:
        if self.socket_path:
            return f"unix://{login}{quote(self.socket_path)}" + (f"?db={self.db}" if self.db else "")
        scheme = f"redis{'s' * self.tls}{'+' * bool(self.found_by)}{self.found_by}"
        hosts = ",".join(_host_port(*node) for node in self.nodes or ((self.host, self.port),))
        master = f"/{quote(self.master, safe='')}" if self.master else ""
        return f"{scheme}://{login}{hosts}{master}" + (f"/{self.db}" if self.db else "")


def _same(host: str) -> str:
    return "localhost" if host.lower() in _THIS_MACHINE else host.lower()


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_redis_url(url: str) -> RedisAddress:
    """The address that a redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL (rediss+ for TLS) is;
    raises ValueError, the secret hidden."""
    return RedisAddress(**_parts_of_url(url))


def _parts_of_url(url: str) -> dict[str, Any]:
    """What a URL says, and nothing of what it leaves to the defaults."""
    scheme, _, found_by = url.partition("://")[0].lower().partition("+")
    if "://" not in url or scheme not in ("redis", "rediss", "unix") or (found_by and (scheme == "unix")):
        raise Unfit(f"must be {_URLS}")
    try:
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        nodes = tuple(_node(one, _PORTS[found_by]) for one in hosts.split(",") if one or not found_by)
    except (ValueError, KeyError):
        raise Unfit(
            f"{redacted(url)!r} is no URL of a Redis; a / # ? or @ in the password is written %2F %23 %3F %40"
        ) from None
    user, has_password, password = login.partition(":")
    said: dict[str, Any] = {"username": unquote(user) or None, "password": unquote(password) if has_password else None}
    if scheme == "unix":
        said["socket_path"] = unquote(parts.path)
    else:
        said |= _place_in_url(url, parts.path.strip("/"), found_by, nodes) | {"tls": scheme == "rediss"}
    said |= _parts_of(_read_each(dict(parse_qsl(parts.query)), repr(redacted(url))))
    if scheme == "unix" and (hosts or not parts.path):
        raise Unfit(f"{redacted(url)!r} names no socket; write unix:///path/to/socket, with three slashes")
    if found_by == "cluster" and said.get("db"):
        raise Unfit(f"{redacted(url)!r}: a cluster has one database, 0; crawls are told apart by PROJECT_NAME")
    return {name: value for name, value in said.items() if value is not None}


def _node(word: str, usual_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{word}")
    return unquote(parts.hostname or "") or "localhost", parts.port or usual_port


def _place_in_url(url: str, path: str, found_by: str, nodes: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    """What host and path of a URL say: the server, or who is asked for it."""
    if not found_by:
        if len(nodes) > 1 or "," in urlsplit(url).netloc:
            raise Unfit(f"{redacted(url)!r}: several hosts are for redis+sentinel:// or redis+cluster://")
        return {"host": nodes[0][0], "port": nodes[0][1], "db": _db_of(url, path)}
    if not nodes:
        raise Unfit(f"{redacted(url)!r} names no host; write {_EXAMPLES[found_by]}")
    said: dict[str, Any] = {"found_by": found_by, "nodes": nodes, "host": nodes[0][0], "port": nodes[0][1]}
    if found_by == "cluster":
        return said | {"db": _db_of(url, path)}
    master, _, db = path.partition("/")
    if not master:
        raise Unfit(f"{redacted(url)!r} does not say which master; write {_EXAMPLES[found_by]}")
    return said | {"master": unquote(master), "db": _db_of(url, db)}


def _db_of(url: str, word: str) -> int | None:
    if word and not word.isdecimal():
        raise Unfit(f"{redacted(url)!r}: behind the host stands the number of the database, as in redis://host:6379/0")
    return int(word) if word else None


# -- kinds of settings -------------------------------------------------------------------------------------------------


def secret() -> Kind:
    """A password: any text, or the digits of one."""

    def read(value: Any) -> Secret:
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return Secret(value)
        raise Unfit("must be a text (its value is not shown)")

    return Kind("a text", read)


def redis_url() -> Kind:
    """A URL of a Redis, or of those who know it, with user, password, database and options of the connection."""

    def read(value: Any) -> Secret:
        if not isinstance(value, str):
            raise ValueError
        parse_redis_url(value)
        return Secret(value)

    return Kind("a redis://, rediss://, unix://, redis+sentinel:// or redis+cluster:// URL", read)


def host() -> Kind:
    """A host's name or number, by itself."""

    def read(value: Any) -> str:
        word = str(text().read(value)).strip()
        if "/" in word or "@" in word:
            raise Unfit("must be the name of a host; a URL belongs in REDIS_URL")
        if word.count(":") == 1:
            raise Unfit(f"{word!r}: the port is a setting of its own (REDIS_PORT, ...)")
        if not word or " " in word:
            raise ValueError
        return word.strip("[]")

    return Kind("the name of a host", read)


def key_prefix() -> Kind:
    """A text in front of keys; braces are kept for the tag that holds the keys of a crawl together on a Cluster."""

    def read(value: Any) -> str:
        word = str(text().read(value))
        if "{" in word or "}" in word:
            raise ValueError
        return word

    return Kind("a text without braces", read)


_port = number(1, 65_535, whole=True)
_db = number(0, whole=True)
_PARAMS: dict[str, Kind] = {
    "host": host(),
    "port": _port,
    "db": _db,
    "socket_path": path(),
    "tls": boolean(),
    "username": text(),
    "password": secret(),
}
_OPTIONS: dict[str, Kind] = {
    "socket_timeout": number(0.01, 3600),
    "socket_connect_timeout": number(0.01, 3600),
    "socket_keepalive": boolean(),
    "ssl_cert_reqs": choice("required", "optional", "none"),
    "ssl_check_hostname": boolean(),
    "ssl_ca_certs": path(),
    "ssl_ca_path": path(),
    "ssl_certfile": path(),
    "ssl_keyfile": path(),
    "ssl_password": secret(),
    "sentinel_username": text(),
    "sentinel_password": secret(),
}
_OTHER_NAMES = {"unix_socket_path": "socket_path", "ssl": "tls"}
# What people pass to redis-py that this framework decides by itself: answers are bytes, and no command is sent twice.
_DECIDED = ["encoding", "encoding_errors", "decode_responses", "protocol", "redis_cls", "client_name"]
_DECIDED += ["retry", "retry_on_timeout", "retry_on_error", "health_check_interval"]
_DECIDED += ["connection_pool", "max_connections", "single_connection_client"]


def redis_params() -> Kind:
    """Keywords of redis-py as a dict: of the address, of timeouts and of TLS."""
    wants = 'a dict of keywords of redis-py, such as {"socket_timeout": 10}'

    def read(value: Any) -> dict[str, Any]:
        with suppress(json.JSONDecodeError):
            value = json.loads(value) if isinstance(value, str) else value
        if not isinstance(value, Mapping):
            raise Unfit(f"must be {wants} (its value is not shown)")
        return _read_each(value, "REDIS_PARAMS")

    return Kind(wants, read)


def _read_each(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values of keywords of redis-py in their normal form; they may be words."""
    said: dict[str, Any] = {}
    for name, value in given.items():
        kind = _PARAMS.get(_OTHER_NAMES.get(name, name)) or _OPTIONS.get(name)
        if kind is None and name not in _DECIDED:
            raise Unfit(f"{where}: {name!r} is not among {', '.join((*_PARAMS, *_OPTIONS))}")
        try:
            said[name] = value if kind is None or value is None else kind.read(value)
        except Unfit as error:
            raise Unfit(f"{where}: {name} {error}") from None
        except (ValueError, TypeError):
            raise Unfit(f"{where}: {name} must be {kind.wants if kind else ''}") from None
    return said


def _parts_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an address that keywords of redis-py stand for."""
    named = {_OTHER_NAMES.get(name, name): value for name, value in params.items() if value is not None}
    options = tuple((name, value) for name, value in named.items() if name in _OPTIONS)
    return {name: value for name, value in named.items() if name in _PARAMS} | ({"options": options} if options else {})


# -- from the settings -------------------------------------------------------------------------------------------------


def redis_address(settings: Mapping[str, Any]) -> tuple[RedisAddress | None, list[str]]:
    """The one Redis that the settings name (None: none, so the embedded one), and lines that deserve a warning.

    REDIS_URL wins; what it leaves open (a password, a database) may stand in the others.
    Raises: SettingsError if the settings name several places, and none of them is REDIS_URL.
    """
    base, notes = _base(settings)
    groups = {"REDIS_HOST/PORT/DB": base}
    groups |= {f"{stem}_HOST/PORT/DB": _over(base, own) for stem in _GROUPS[1:] if (own := _group(settings, stem))}
    groups = {name: said for name, said in groups.items() if said.keys() - {"options"}}
    if url := settings["REDIS_URL"]:
        address, more = _led_by_url(_parts_of_url(url), base, groups)
        return address, notes + more
    return (_agreed(groups) if groups else None), notes


def _base(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What REDIS_PARAMS and, over it, REDIS_HOST, PORT, DB and PASSWORD say."""
    params = settings["REDIS_PARAMS"]
    notes = [f"REDIS_PARAMS: {name} has no effect here" for name in params if name in _DECIDED]
    return _over(_parts_of(params), _group(settings, "REDIS")), notes


def _group(settings: Mapping[str, Any], stem: str) -> dict[str, Any]:
    values = {part.lower(): settings[f"{stem}_{part}"] for part in _PARTS}
    return {part: value for part, value in values.items() if value is not None}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of an address laid over others; a host or port takes the place of a socket."""
    is_tcp = "host" in above or "port" in above
    elsewhere = ("socket_path", "found_by", "nodes", "master") if is_tcp else ()
    return {name: value for name, value in below.items() if name not in elsewhere} | dict(above)


def _led_by_url(
    said: dict[str, Any], base: dict[str, Any], groups: Mapping[str, dict[str, Any]]
) -> tuple[RedisAddress, list[str]]:
    is_same_server = RedisAddress(**_over(said, base)).place[:-1] == RedisAddress(**said).place[:-1]
    address = RedisAddress(**({**base, **said} if is_same_server else said))
    others = {name: RedisAddress(**_over(said, group)) for name, group in groups.items()}
    return address, [
        f"REDIS_URL ({address}) is used, not {name} ({other}); keep one of them"
        for name, other in others.items()
        if other.place != address.place
    ]


def _agreed(groups: Mapping[str, dict[str, Any]]) -> RedisAddress:
    """The address that all groups name together."""
    named = {name: RedisAddress(**said) for name, said in groups.items()}
    if len({address.place for address in named.values()}) > 1:
        raise SettingsError(f"{', '.join(f'{name} is {address}' for name, address in named.items())}: {_ONE_PLACE}")
    if len({address.password for address in named.values() if address.password is not None}) > 1:
        raise SettingsError(f"{', '.join(named)} have different passwords for {next(iter(named.values()))}; keep one")
    together: dict[str, Any] = {}
    for said in groups.values():
        together |= said
    return RedisAddress(**together)
