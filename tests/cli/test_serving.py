"""`scrapy-plus redis`: a durable server in the foreground, as the one who types it meets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.cli.conftest import ROOT
from tests.redis.servers import binaries, wait_for
from tests.transport.servers import free_port

SECONDS = 60
pytestmark = pytest.mark.skipif(not binaries(), reason="needs redis-server: apt-get install redis-server")


@contextmanager
def serving(folder: Path, *words: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the line that it says when it is ready; ended as by Ctrl-C."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_PLUS_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy_plus", "redis", *words],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)


def client_of(port: int, password: str | None = None) -> redis.Redis:
    return redis.Redis(port=port, password=password, socket_timeout=20)


def test_it_keeps_what_it_is_told_over_its_end(tmp_path):
    port = free_port()
    for number in range(2):
        with serving(tmp_path, "--port", str(port)) as (process, line):
            assert line == f'REDIS_URL = "redis://127.0.0.1:{port}"\n'
            with client_of(port) as client:
                assert client.dbsize() == number
                client.set("tea", "green")
                assert client.config_get("appendonly") == {"appendonly": "yes"}
                assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            process.send_signal((signal.SIGINT, signal.SIGTERM)[number])
            assert process.wait(SECONDS) == 0
        with pytest.raises(redis.exceptions.ConnectionError):
            client_of(port).ping()


def test_beyond_this_machine_it_wants_a_password_which_is_on_no_command_line(tmp_path):
    port = free_port()
    with serving(tmp_path, "--port", str(port), "--bind", "0.0.0.0") as (process, line):
        assert (process.wait(SECONDS), line) == (2, "")
        assert process.stderr is not None
        assert "could read and change what is kept there; give it a password" in process.stderr.read()
    secret = 'hu"sh \\ ü\n'
    words = ("--port", str(port), "--bind", "0.0.0.0")
    with serving(tmp_path, *words, SCRAPY_PLUS_REDIS_PASSWORD=secret) as (_, line):
        assert line.startswith('REDIS_URL = "redis://:password@') and line.endswith(f':{port}"\n')
        with client_of(port, secret) as client:
            server = Path(f"/proc/{client.info('server')['process_id']}")
            assert b"hu" not in (server / "cmdline").read_bytes()
        with pytest.raises(redis.exceptions.AuthenticationError):
            client_of(port).ping()
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b'hu"sh' in path.read_bytes()]
    assert kept == []


def test_a_port_in_use_and_a_second_one_are_said_in_one_line(tmp_path):
    port = free_port()
    with serving(tmp_path, "--port", str(port)):
        for folder, words in ((tmp_path, "runs already; end that one first"), (tmp_path / "other", "in use")):
            folder.mkdir(exist_ok=True)
            with serving(folder, "--port", str(port)) as (process, line):
                assert (process.wait(SECONDS), line) == (2, "")
                assert process.stderr is not None
                said = process.stderr.read()
                assert words in said and said.count("\n") == 1, said


def test_a_server_that_ends_under_it_is_told_of(tmp_path):
    port = free_port()
    with serving(tmp_path, "--port", str(port)) as (process, _):
        with client_of(port) as client:
            os.kill(client.info("server")["process_id"], signal.SIGKILL)
        assert process.wait(SECONDS) == 2
    wait_for(lambda: not Path(f"/proc/{process.pid}").exists())
    with serving(tmp_path, "--port", str(port)) as (_, line):
        assert line, "and may be started again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_the_whole_group_leaves_no_server_behind(tmp_path, number):
    port = free_port()
    with serving(tmp_path, "--port", str(port)) as (process, _):
        with client_of(port) as client:
            server = Path(f"/proc/{client.info('server')['process_id']}/cmdline")
            client.set("tea", "green")
        os.killpg(process.pid, number)  # as a terminal does it
        assert process.wait(SECONDS) == (0 if number == signal.SIGINT else -signal.SIGKILL)
        wait_for(lambda: not server.exists() or not server.read_bytes())
    with serving(tmp_path, "--port", str(port)), client_of(port) as client:
        assert client.get("tea") == b"green"
