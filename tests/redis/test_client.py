"""Clients, and what is said of servers that are wrong, on real servers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import gevent
import pytest
import redis
from gevent.server import StreamServer

from scrapy_plus.conf.redis_address import RedisAddress, parse_redis_url
from scrapy_plus.errors import SettingsError, UsageError
from scrapy_plus.redis_client import address_of, check_server, make_client
from tests.redis.servers import EACH, redis_server, tls_binary
from tests.transport.servers import certificate, free_port

KEEPING = ("--appendonly", "yes", "--save", "")


@pytest.fixture(params=EACH)
def binary(request: pytest.FixtureRequest) -> str:
    return request.param


def check(address: RedisAddress) -> list[str]:
    client = make_client(address)
    try:
        return check_server(client)
    finally:
        client.close()


def refusal(url: str) -> str:
    """The one line that is said of an address, which must not show its password."""
    address = parse_redis_url(url)
    with pytest.raises(UsageError) as caught:
        check(address)
    line = str(caught.value)
    assert "\n" not in line and str(address) in line
    assert "hush" not in line
    return line


@contextmanager
def speaking(answer: bytes, *, says_at: bytes = b"") -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers every command alike, +OK before the one that contains `says_at`; its port, what it heard.

    An empty answer closes the connection.
    """
    heard: list[bytes] = []

    def serve(socket, _address) -> None:
        with suppress(OSError):
            while data := socket.recv(65_536):
                heard.append(data)
                if not answer and says_at in data:
                    return
                commands = (b"\r\n" + data).count(b"\r\n*") or 1
                socket.sendall((answer if says_at in data else b"+OK\r\n") * commands)

    server = StreamServer(("127.0.0.1", 0), serve)
    server.start()
    try:
        yield server.server_port, heard
    finally:
        server.stop(timeout=1)


# -- clients -----------------------------------------------------------------------------------------------------------


def test_a_client_reads_bytes_and_says_where_it_leads(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", *KEEPING, "--unixsocket", str(tmp_path / "s"), "--requirepass", "x") as p:
        for url in (f"redis://:x@127.0.0.1:{p}/3", f"unix://:x@{tmp_path / 's'}?db=3"):
            client = make_client(parse_redis_url(url))
            client.set("tea", "green")
            assert client.get("tea") == b"green"
            assert address_of(client) == parse_redis_url(url)
            client.close()


def test_greenlets_share_the_one_connection_of_a_client(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", *KEEPING) as port:
        client = make_client(RedisAddress(port=port))
        jobs = [gevent.spawn(client.incr, "n") for _ in range(50)]
        gevent.joinall(jobs, timeout=20, raise_error=True)
        assert client.get("n") == b"50"
        assert client.info("clients")["connected_clients"] == 1
        client.close()


def test_a_command_whose_answer_is_lost_is_not_sent_again_unseen():
    with speaking(b"", says_at=b"INCR") as (port, heard):
        client = make_client(RedisAddress(port=port))
        with pytest.raises(redis.exceptions.ConnectionError, match="closed"):
            client.incr("n")
        client.close()
    assert sum(data.count(b"INCR") for data in heard) == 1


def test_an_answer_that_does_not_come_is_not_waited_for_for_ever():
    with speaking(b"$99\r\n", says_at=b"PING") as (port, _):
        began = time.monotonic()
        with pytest.raises(redis.exceptions.TimeoutError):
            make_client(RedisAddress(port=port), answer_seconds=0.2).ping()
        assert time.monotonic() - began < 5


# -- what may be wrong -------------------------------------------------------------------------------------------------


def test_nobody_there_is_said_in_one_line(tmp_path):
    assert "nobody listens there; is it running?" in refusal(f"redis://:hush@127.0.0.1:{free_port()}")
    assert "no such socket" in refusal(f"unix://:hush@{tmp_path}/none.sock")
    assert "the name 'nowhere.invalid' does not resolve" in refusal("redis://:hush@nowhere.invalid")


def test_a_wrong_login_is_said_in_one_line(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", *KEEPING, "--requirepass", "right") as port:
        assert "wants a password" in refusal(f"redis://127.0.0.1:{port}")
        assert "refuses the password or the user" in refusal(f"redis://:hush@127.0.0.1:{port}")
        assert "refuses the password or the user" in refusal(f"redis://me:hush@127.0.0.1:{port}")
        assert check(RedisAddress("127.0.0.1", port, password="right")) == []
    with redis_server(binary, tmp_path / "open", *KEEPING) as port:
        assert "wants no password" in refusal(f"redis://:hush@127.0.0.1:{port}")


def test_a_database_that_is_not_there_is_said_in_one_line(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", *KEEPING) as port:
        assert "out of range" in refusal(f"redis://127.0.0.1:{port}/99")


def test_what_is_no_redis_is_said_in_one_line():
    with speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (port, _):
        assert "what answers there is no Redis" in refusal(f"redis://:hush@127.0.0.1:{port}")
    with speaking(b"") as (port, _):
        assert "if it wants TLS, write rediss://" in refusal(f"redis://:hush@127.0.0.1:{port}")


def test_a_server_that_repeats_the_password_does_not_get_it_shown():
    with speaking(b"-ERR what is this hush\r\n") as (port, _):
        assert "what is this ***" in refusal(f"redis://:hush@127.0.0.1:{port}")


def test_tls_where_none_is_spoken_is_said_in_one_line(binary, tmp_path):
    hasty = "socket_timeout=1&socket_connect_timeout=1"
    with redis_server(binary, tmp_path / "r", *KEEPING) as port:
        assert "write redis://" in refusal(f"rediss://:hush@127.0.0.1:{port}?{hasty}")
    with speaking(b"-ERR Protocol error\r\n") as (port, _):
        assert "no TLS is spoken there; write redis://" in refusal(f"rediss://:hush@127.0.0.1:{port}?{hasty}")


def test_tls_works_and_its_mistakes_are_said_in_one_line(tmp_path):
    cert, key = certificate(tmp_path)
    port = free_port()
    options = ["--tls-port", str(port), "--tls-auth-clients", "no", "--tls-cert-file", str(cert)]
    options += ["--tls-key-file", str(key), "--tls-ca-cert-file", str(cert), *KEEPING]
    with redis_server(tls_binary(), tmp_path / "r", *options):
        assert check(parse_redis_url(f"rediss://127.0.0.1:{port}?ssl_ca_certs={cert}")) == []
        assert "certificate is not to be trusted" in refusal(f"rediss://:hush@127.0.0.1:{port}")
        assert "write rediss://" in refusal(f"redis://:hush@127.0.0.1:{port}")


# -- is it fit ---------------------------------------------------------------------------------------------------------


def test_a_fit_server_gets_no_warning(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", *KEEPING) as port:
        assert check(RedisAddress("127.0.0.1", port)) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--save", ""), "keeps its data in memory only"),
        ((*KEEPING, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "may delete a crawl"),
        (
            (*KEEPING, "--replicaof", "127.0.0.1", "1"),
            "is a replica and refuses to write; name its master, 127.0.0.1:1",
        ),
    ],
)
def test_what_a_server_may_lose_or_refuse_is_one_line(binary, tmp_path, options, words):
    with redis_server(binary, tmp_path / "r", *options) as port:
        [line] = check(RedisAddress("127.0.0.1", port))
    assert line.startswith(f"redis://127.0.0.1:{port} {words}")


@pytest.mark.parametrize(
    "options",
    [
        ("--save", "60", "1"),
        (*KEEPING, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"),
        (*KEEPING, "--maxmemory-policy", "allkeys-lru"),
    ],
)
def test_what_cannot_lose_a_crawl_is_not_warned_of(binary, tmp_path, options):
    with redis_server(binary, tmp_path / "r", *options) as port:
        assert check(RedisAddress("127.0.0.1", port)) == []


def test_what_may_not_be_asked_is_no_reason_to_refuse(binary, tmp_path):
    with redis_server(binary, tmp_path / "r", "--save", "") as port:
        admin = make_client(RedisAddress("127.0.0.1", port))
        for name, rules in (("no-config", "+@all -config"), ("nothing", "+@all -config -info -hello")):
            admin.execute_command("ACL", "SETUSER", name, "on", ">hush", "~*", *rules.split())
        [line] = check(RedisAddress("127.0.0.1", port, username="no-config", password="hush"))
        assert "no append-only log, and may not be asked whether it saves (CONFIG)" in line
        [line] = check(RedisAddress("127.0.0.1", port, username="nothing", password="hush"))
        assert "may not be asked how it keeps its data (INFO is forbidden" in line
        admin.close()


def test_a_server_that_is_too_old_is_refused():
    info = b"redis_version:5.0.7\r\nrole:master\r\n"
    with speaking(b"$%d\r\n%s\r\n" % (len(info), info), says_at=b"INFO\r\n") as (port, _):
        with pytest.raises(SettingsError) as caught:
            check(RedisAddress("127.0.0.1", port))
    assert str(caught.value) == (
        f"SCHEDULER_PERSIST = True needs Redis 6.2 or newer; redis://127.0.0.1:{port} answers 5.0.7"
    )
