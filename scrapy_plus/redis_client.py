"""Connections to a Redis, what may be wrong with them in one line each, and whether the server is fit for a crawl."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import AuthenticationError, InvalidResponse, NoPermissionError, RedisError, ResponseError
from redis.retry import Retry

from scrapy_plus.conf.redis_address import RedisAddress
from scrapy_plus.errors import SettingsError, UsageError
from scrapy_plus.redis_finding import Finder, FoundConnection, FoundTLSConnection, NotAllowed, NotFound

OLDEST = (6, 2)
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""Longer than the longest script, shorter than anybody's patience. An answer that is late is asked for again."""


def make_client(address: RedisAddress, *, prefix: str = "", answer_seconds: float = ANSWER_SECONDS) -> redis.Redis:
    """A client of one connection, made when first needed; who finds it in use waits. Answers are bytes.

    In a cluster it leads to the node that has the keys which begin with `prefix`.

    It sends nothing twice by itself: that would count twice what the first try did, unseen. Nor does it ping between
    commands: the next command finds out as well.
    """
    options: dict[str, Any] = {
        "db": address.db,
        "username": address.username,
        "password": None if address.password is None else str(address.password),
        "socket_timeout": answer_seconds,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        "health_check_interval": 0,
        "decode_responses": False,
        "protocol": 2,
    }
    further = {name: value for name, value in address.options if not name.startswith("sentinel_")}
    options |= _where(address, prefix) | further
    client = redis.Redis(connection_pool=BlockingConnectionPool(max_connections=1, timeout=None, **options))
    client.auto_close_connection_pool = True
    return client


def clients_of_all(address: RedisAddress) -> list[redis.Redis]:
    """A client for each server that has a part of the data: one, but in a cluster."""
    if address.found_by != "cluster":
        return [make_client(address)]
    nodes = Finder(address).masters()
    return [make_client(replace(address, found_by="", nodes=(), host=host, port=port)) for host, port in nodes]


def _where(address: RedisAddress, prefix: str) -> dict[str, Any]:
    if address.socket_path:
        return {"connection_class": UnixDomainSocketConnection, "path": address.socket_path}
    tcp = {"host": address.host, "port": address.port, "socket_keepalive": True}
    tcp["socket_connect_timeout"] = CONNECT_SECONDS
    if address.found_by:
        kind: type[Connection] = FoundTLSConnection if address.tls else FoundConnection
        return {"connection_class": kind, "finder": Finder(address, prefix), **tcp}
    return {"connection_class": SSLConnection if address.tls else Connection, **tcp}


def address_of(client: redis.Redis) -> RedisAddress:
    """Where a client connects to, whoever made it."""
    pool = client.connection_pool
    options = pool.connection_kwargs
    if finder := options.get("finder"):
        return finder.address
    return RedisAddress(
        host=options.get("host") or "localhost",
        port=int(options.get("port") or 6379),
        db=int(options.get("db") or 0),
        socket_path=options.get("path") or "",
        tls=issubclass(pool.connection_class, SSLConnection),
        username=options.get("username"),
        password=options.get("password"),
    )


# -- errors ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def redis_errors(address: RedisAddress) -> Iterator[None]:
    """Makes UsageError of everything that a wrong address, a wrong login or a wrong server brings about."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise UsageError(explain(error, address)) from error


def explain(error: BaseException, address: RedisAddress) -> str:
    """What is wrong, where, and what to do, in one line without a password."""
    causes = list(_causes(error))
    for kind, line in (
        ((NotFound, NotAllowed), _plain(error, address)),
        (AuthenticationError, _login(causes, address)),
        (socket.gaierror, f"the name {address.host!r} does not resolve (REDIS_URL, REDIS_HOST)"),
        (ConnectionRefusedError, "nobody listens there; is it running? (REDIS_URL, REDIS_HOST, REDIS_PORT)"),
        (FileNotFoundError, "there is no such socket; is it running? (REDIS_URL)"),
        (PermissionError, "its socket belongs to somebody else (unixsocketperm in its redis.conf)"),
        (ssl.SSLCertVerificationError, _certificate(causes)),
        (ssl.SSLError, "no TLS is spoken there; write redis:// instead of rediss:// (REDIS_URL)"),
        ((TimeoutError, redis.exceptions.TimeoutError), _silence(address)),
        (InvalidResponse, "what answers there is no Redis" + _wants_tls(address)),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return f"no usable Redis at {address}: {line}"
    return f"no usable Redis at {address}: {_plain(error, address)}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, at most 10 deep."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _login(causes: list[BaseException], address: RedisAddress) -> str:
    said = " ".join(map(str, causes)).lower()
    if "without any password" in said or "no password is set" in said:
        return "it wants no password, but there is one (REDIS_PASSWORD, REDIS_URL)"
    if address.password is None:
        return "it wants a password (REDIS_PASSWORD, or redis://:password@host in REDIS_URL)"
    return "it refuses the password or the user (REDIS_PASSWORD, or redis://user:password@host in REDIS_URL)"


def _certificate(causes: list[BaseException]) -> str:
    why = next((cause.verify_message for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), "")
    return f"its certificate is not to be trusted ({why}); name who signed it: REDIS_PARAMS = {{'ssl_ca_certs': path}}"


def _silence(address: RedisAddress) -> str:
    guess = "; does it speak TLS? If not, write redis:// (REDIS_URL)" if address.tls else _wants_tls(address)
    return f"no answer in time{guess}"


def _wants_tls(address: RedisAddress) -> str:
    return "" if address.tls or address.socket_path else "; if it wants TLS, write rediss:// (REDIS_URL)"


def _plain(error: BaseException, address: RedisAddress) -> str:
    """The error's own words on one line, without the password if a server should repeat it."""
    words = " ".join(str(error).split()) or type(error).__name__
    if re.search("closed by server|reset by peer|broken pipe", words, re.IGNORECASE):
        words += _wants_tls(address)
    return words.replace(address.password, "***") if address.password else words


# -- is the server fit -------------------------------------------------------------------------------------------------


def check_server(client: redis.Redis, *, in_cluster: bool = False) -> list[str]:
    """Lines that deserve a warning: what the server may lose, or refuse. What it does not tell is not held against it.
    `in_cluster`: it is known to be a part of one.

    Raises: SettingsError if it is older than 6.2, UsageError if it cannot be used at all; both in one line.
    """
    address = address_of(client)
    with redis_errors(address):
        facts = _info(client)
        _refuse_kind(facts, address, in_cluster=in_cluster)
        _refuse_old(facts.get("redis_version"), address)
        if "aof_enabled" not in facts:
            return [
                f"{address} may not be asked how it keeps its data (INFO is forbidden for this user): whether it "
                "writes a log, and may delete a crawl when its memory is full; allow it: ACL SETUSER ... +info"
            ]
        lines = (_eviction(facts), _persistence(client, facts), _replica(facts))
        return [f"{address} {line}" for line in lines if line]


def _info(client: redis.Redis) -> dict[str, Any]:
    """INFO, or if that is forbidden the version alone, as far as it can be had."""
    try:
        facts: Any = client.info()
        return dict(facts)
    except NoPermissionError:
        with contextlib.suppress(ResponseError):
            answer: Any = client.execute_command("HELLO")
            pairs = dict(zip(answer[::2], answer[1::2], strict=False))
            return {"redis_version": pairs[b"version"].decode()}
        return {}


def _refuse_kind(facts: dict[str, Any], address: RedisAddress, *, in_cluster: bool) -> None:
    """A plain address of a server that has but a part of the data, or none."""
    scheme, mode = (
        f"redis{'s' * address.tls}",
        facts.get("redis_mode") or facts.get("server_mode"),
    )  # the other is Valkey's
    if mode == "sentinel":
        url = f"{scheme}+sentinel://{address.host}:{address.port}/name-of-the-master"
        raise UsageError(f"{address} is a sentinel and keeps no data; write {url} (REDIS_URL)")
    if mode == "cluster" and not in_cluster:
        url = f"{scheme}+cluster://{address.host}:{address.port}"
        raise UsageError(f"{address} is a node of a cluster; write {url} (REDIS_URL)")


def _refuse_old(version: Any, address: RedisAddress) -> None:
    found = re.match(r"(\d+)\.(\d+)", str(version or ""))
    if found and (int(found[1]), int(found[2])) < OLDEST:
        raise SettingsError(f"SCHEDULER_PERSIST = True needs Redis 6.2 or newer; {address} answers {version}")


def _eviction(facts: dict[str, Any]) -> str | None:
    """The volatile policies only take keys that expire, and those of a crawl do not."""
    policy = str(facts.get("maxmemory_policy", ""))
    if policy.startswith("allkeys") and facts.get("maxmemory"):
        return f"may delete a crawl when its memory is full: maxmemory-policy is {policy}; set it to noeviction"
    return None


def _persistence(client: redis.Redis, facts: dict[str, Any]) -> str | None:
    if facts["aof_enabled"]:
        return None
    try:
        answer: Any = client.config_get("save")
    except ResponseError:
        return "has no append-only log, and may not be asked whether it saves (CONFIG); set appendonly to yes"
    if not answer.get("save", True):
        return "keeps its data in memory only, so a crawl ends with it; set appendonly to yes"
    return None


def _replica(facts: dict[str, Any]) -> str | None:
    if facts.get("role") == "slave":
        master = f"{facts.get('master_host')}:{facts.get('master_port')}"
        return f"is a replica and refuses to write; name its master, {master} (REDIS_URL)"
    return None
