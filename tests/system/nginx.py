"""A real nginx on a free loopback port, serving a folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIG = """
daemon off; worker_processes 1; pid {work}/nginx.pid; error_log {work}/error.log; user root;
events {{ worker_connections 512; }}
http {{
  include /etc/nginx/mime.types; access_log {work}/access.log; default_type application/octet-stream;
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi; gzip on; gzip_types text/css application/javascript;
  server {{ listen 127.0.0.1:{port}; root {root}; {more} }}
}}
"""


@contextmanager
def serve(root: Path, work: Path, more: str = "") -> Iterator[str]:
    """The base URL of the folder, as long as this is open; `work` gets access.log."""
    port = free_port()
    config = work / "nginx.conf"
    user = "" if os.geteuid() == 0 else "user root;"
    text = CONFIG.format(work=work, root=root, port=port, more=more)
    config.write_text(text.replace("user root;", "") if user else text)
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert nginx, "nginx is not installed"
    process = subprocess.Popen([nginx, "-c", str(config), "-p", str(work)], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")
