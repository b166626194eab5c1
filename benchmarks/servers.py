"""The servers of a run, each a process that is ended with it: nginx, Redis, and what makes either of them far away."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis

from scrapy_plus.bench import pages as pages_server

HOST = "127.0.0.1"
START_SECONDS = 20.0
SOCKETS = 5000
HERE = Path(__file__).parent

NGINX = """
{user}
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.err;
events {{ worker_connections 4096; }}
http {{
  log_format pages '$msec $request_uri $status';
  access_log {folder}/access.log pages;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  sendfile on; tcp_nopush on; keepalive_requests 10000000; keepalive_timeout 600;
  open_file_cache max={files} inactive=600s; open_file_cache_valid 600s;
  types {{ text/html html; }}
  server {{ listen {host}:{port} backlog=4096; root {root}; }}
}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def popen(command: Sequence[str], core: int | None, **more: object) -> subprocess.Popen[str]:
    """A process on this core; None is any."""
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    return subprocess.Popen([*pinned, *command], text=True, **more)  # type: ignore[call-overload, no-any-return]


@contextmanager
def ending(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def nginx(folder: Path, root: Path, core: int | None) -> Iterator[int]:
    """One worker that serves the files below `root` and logs each request to access.log in `folder`; gives its port."""
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if binary is None:
        raise SystemExit("benchmarks need nginx (apt-get install nginx)")
    port = free_port()
    config = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = max(100, min(30_000, most - SOCKETS))  # a file that is kept open is a descriptor less for connections
    config.write_text(NGINX.format(folder=folder, root=root, host=HOST, port=port, user=user, files=files))
    command = [binary, "-c", str(config), "-e", str(folder / "nginx.err"), "-p", str(folder)]
    with ending(popen(command, core, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)):
        await_port(port)
        yield port


@contextmanager
def redis_server(folder: Path, core: int | None) -> Iterator[int]:
    """A Redis whose log is written each second, as one would have it for a crawl that is to be resumed."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("benchmarks need redis-server (apt-get install redis-server)")
    port = free_port()
    options = ["--bind", HOST, "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    with ending(popen([binary, "--port", str(port), *options], core, stdout=subprocess.DEVNULL)):
        await_port(port)
        yield port


@contextmanager
def far_away(target: int, delay_seconds: float, core: int | None) -> Iterator[int]:
    """A proxy before `target` whose answers come later by `delay_seconds`."""
    with _telling_its_port([str(HERE / "delay.py"), str(target), str(delay_seconds)], core) as port:
        yield port


@contextmanager
def endless_site(page_bytes: int, core: int | None, pages: int) -> Iterator[int]:
    """The site of `scrapy-plus bench`, whose pages are made as they are asked for."""
    with _telling_its_port([pages_server.__file__, str(page_bytes), str(pages)], core) as port:
        yield port


@contextmanager
def _telling_its_port(arguments: Sequence[str], core: int | None) -> Iterator[int]:
    with ending(popen([sys.executable, *arguments], core, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


def await_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def redis_cpu_seconds(client: redis.Redis) -> float:
    told = client.info("cpu")
    return float(told["used_cpu_user_main_thread"]) + float(told["used_cpu_sys_main_thread"])
