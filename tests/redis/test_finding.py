"""A crawl whose server has to be found: by sentinels that move the master, and in a cluster that moves the slot."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

from scrapy_plus.conf.redis_address import parse_redis_url
from scrapy_plus.conf.settings import load_settings
from scrapy_plus.errors import FrontierUnavailable, SettingsError, UsageError
from scrapy_plus.frontier.base import Page
from scrapy_plus.frontier.redis import RedisFrontier
from scrapy_plus.redis_client import check_server, make_client, redis_errors
from scrapy_plus.redis_store import RedisStore
from tests.frontier.conftest import record
from tests.redis.servers import binaries, redis_server, tls_binary, wait_for
from tests.redis.test_client import KEEPING
from tests.transport.servers import certificate, free_port

PREFIX = "{shop:books}"
SLOT = key_slot(PREFIX.encode())
LOGIN = ("--requirepass", "hush", "--masterauth", "hush")


@pytest.fixture
def binary() -> str:
    """REDIS_SERVER, else of the PATH; 7 or newer, which can be told the port on which nodes of a cluster talk."""
    found = [os.environ.get("REDIS_SERVER"), *(binaries().get(one) for one in ("redis-server", "valkey-server"))]
    for path in filter(None, found):
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
        if int(re.findall(r"\bv=(\d+)", told)[0]) >= 7:
            return path
        break
    pytest.skip("needs redis-server 7 or newer: apt-get install redis-server")


def open_frontier(url: str, *, retry_seconds: float = 60.0) -> RedisFrontier:
    client = make_client(parse_redis_url(url), prefix=PREFIX)
    return RedisFrontier(client, PREFIX, retry_seconds=retry_seconds)


def refusal(url: str) -> str:
    """The one line that is said of an address, which must not show its password."""
    address = parse_redis_url(url)
    with closing(make_client(address, prefix=PREFIX)) as client, pytest.raises(UsageError) as caught:
        with redis_errors(address):
            check_server(client)
    line = str(caught.value)
    assert "\n" not in line and "hush" not in line and str(address) in line
    return line


def crawl(frontier: RedisFrontier, pages: int, after: dict[int, Callable[[], None]]) -> list[str]:
    """Works off so many pages, each found on the one before; `after` says what happens behind which."""
    done: list[str] = []
    frontier.seed(0, 1, [record("0")], finished=True)
    for number in range(pages * 3):
        for lease in frontier.lease("w", number, 1).leases:
            done.append(lease.payload.decode())
            following = [record(str(len(done)))] if len(done) < pages else []
            frontier.ack([Page(lease.id, lease.token, children=following)])
            after.pop(len(done), lambda: None)()
        if frontier.finish():
            return done
    raise AssertionError(f"not finished after {len(done)} pages")


def each_once(pages: int) -> list[str]:
    return [f"payload of {number}" for number in range(pages)]


def port_of(frontier: RedisFrontier) -> int:
    """Which server answers now."""
    return int(frontier.server.client.config_get("port")["port"])  # type: ignore[index]


def admin(port: int, **login: str) -> redis.Redis:
    return redis.Redis(port=port, password="hush", socket_timeout=20, **login)  # type: ignore[arg-type]


# -- sentinels ---------------------------------------------------------------------------------------------------------


class Group:
    """A master, its replica, and a sentinel that watches them; all want the password."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.ports: dict[int, ExitStack] = {}
        self._stack = ExitStack()
        first = self._serve(binary, folder / "first")
        self._serve(binary, folder / "second", "--replicaof", "127.0.0.1", str(first))
        conf = folder / "sentinel.conf"
        conf.write_text(
            f"sentinel monitor books 127.0.0.1 {first} 1\nsentinel auth-pass books hush\n"
            "sentinel down-after-milliseconds books 500\nsentinel failover-timeout books 3000\nrequirepass guard\n",
            "utf-8",
        )
        # The file comes first on its command line, hence the program is given with it.
        self.sentinel = free_port()
        self._stack.enter_context(sentinel_server(binary, conf, folder, self.sentinel))
        wait_for(lambda: self._guard().execute_command("SENTINEL REPLICAS", "books"))

    def _serve(self, binary: str, folder: Path, *options: str) -> int:
        stack = ExitStack()
        port = stack.enter_context(redis_server(binary, folder, *KEEPING, *LOGIN, *options))
        self.ports[port] = stack
        return port

    @property
    def url(self) -> str:
        return f"redis+sentinel://:hush@127.0.0.1:{self.sentinel}/books?sentinel_password=guard"

    def _guard(self) -> redis.Redis:
        return redis.Redis(port=self.sentinel, password="guard")

    def master(self) -> int:
        with self._guard() as guard:
            return int(guard.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", "books")[1])

    def move(self) -> None:
        """A failover that somebody orders, awaited."""
        before = self.master()
        wait_for(lambda: self.is_linked(before))
        with self._guard() as guard:
            wait_for(lambda: is_ok(guard, "SENTINEL FAILOVER", "books"))
        wait_for(lambda: self.master() != before)
        with admin(before) as client:  # what it takes before it knows is lost with it, and asked again
            wait_for(lambda: client.info("replication")["role"] == "slave")

    def kill_master(self) -> None:
        """Its replica has all it had; nobody but the sentinel does anything about it."""
        port = self.master()
        wait_for(lambda: self.is_linked(port))
        with admin(port) as client:
            client.set("marker", 1)  # what is awaited is the last write of the very client that waits
            assert client.execute_command("WAIT", 1, 10_000) == 1
        self.ports.pop(port).close()

    def is_linked(self, port: int) -> bool:
        with admin(port) as client:
            told = client.info("replication")
            return any(
                one.get("state") == "online"
                for name, one in told.items()
                if name.startswith("slave") and isinstance(one, dict)
            )

    def close(self) -> None:
        self._stack.close()
        for stack in self.ports.values():
            stack.close()


def is_ok(client: redis.Redis, *command: object) -> bool:
    try:
        client.execute_command(*command)
    except redis.exceptions.ResponseError:
        return False
    return True


def sentinel_server(binary: str, conf: Path, folder: Path, port: int):
    launcher = folder / "sentinel"
    launcher.write_text(f'#!/bin/sh\nexec {binary} {conf} --sentinel "$@"\n', "utf-8")
    launcher.chmod(0o700)
    return redis_server(str(launcher), folder / "guard", port=port)


@pytest.fixture
def group(binary, tmp_path) -> Iterator[Group]:
    with closing(Group(binary, tmp_path)) as made:
        yield made


def test_a_crawl_goes_on_at_the_master_that_sentinels_chose(group):
    with closing(open_frontier(group.url)) as frontier:
        first = port_of(frontier)
        assert crawl(frontier, 12, {4: group.move, 8: group.kill_master}) == each_once(12)
        assert port_of(frontier) == first
        assert frontier.audit() == []


def test_what_is_wrong_with_sentinels_is_said_in_one_line(group):
    at = f"127.0.0.1:{group.sentinel}"
    master = next(iter(group.ports))
    wrong_name = refusal(group.url.replace("/books", "/cooks"))
    assert "the sentinels know no master 'cooks'; they know 'books'" in wrong_name
    assert "REDIS_PARAMS = {'sentinel_password': ...}" in refusal(f"redis+sentinel://:hush@{at}/books")
    assert "it refuses the password or the user" in refusal(group.url.replace(":hush@", ":hush2@"))
    assert f"127.0.0.1:{master} is no sentinel" in refusal(
        f"redis+sentinel://127.0.0.1:{master}/books?sentinel_password=hush"
    )
    assert "is a sentinel and keeps no data; write redis+sentinel://" in refusal(f"redis://:guard@{at}")
    assert "refused" in refusal(f"redis+sentinel://127.0.0.1:{free_port()}/books").lower()


def test_of_several_sentinels_one_that_is_away_is_passed_over(group):
    url = group.url.replace("127.0.0.1", f"127.0.0.1:{free_port()},127.0.0.1")
    with closing(open_frontier(url)) as frontier:
        assert crawl(frontier, 3, {}) == each_once(3)


# -- cluster -----------------------------------------------------------------------------------------------------------


class Cluster:
    """Three masters that share the slots."""

    def __init__(
        self, binary: str, folder: Path, *options: str, without: int | None = None, has_tls: bool = False
    ) -> None:
        self._stack = ExitStack()
        self.ports: list[int] = []
        self.tls_ports = [free_port() for _ in range(3)]
        for number in range(3):
            tls = ("--tls-port", str(self.tls_ports[number])) if has_tls else ()
            bus = (
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                str(free_port()),
                "--cluster-require-full-coverage",
                "no",
            )
            at = self._stack.enter_context(
                redis_server(binary, folder / str(number), *KEEPING, *LOGIN, *bus, *tls, *options)
            )
            self.ports.append(at)
        self._join(without)

    def _join(self, without: int | None) -> None:
        for number, port in enumerate(self.ports):
            with admin(port) as client:
                mine = [slot for slot in range(number * 5462, min(16_384, (number + 1) * 5462)) if slot != without]
                client.execute_command("CLUSTER ADDSLOTS", *mine)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
                if number:
                    with admin(self.ports[0]) as first:
                        bus = first.config_get("cluster-port")["cluster-port"]
                    client.execute_command("CLUSTER MEET", "127.0.0.1", self.ports[0], bus)
        wanted = 16_384 - (without is not None)
        wait_for(lambda: all(self._known(port) == (3, wanted) for port in self.ports))

    def _known(self, port: int) -> tuple[int, int]:
        with admin(port) as client:
            facts = client.execute_command("CLUSTER INFO")
            return int(facts["cluster_known_nodes"]), int(facts["cluster_slots_assigned"])

    @property
    def url(self) -> str:
        return "redis+cluster://:hush@" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def id_of(self, port: int) -> str:
        with admin(port) as client:
            answer = client.execute_command("CLUSTER MYID")
            return answer.decode() if isinstance(answer, bytes) else answer

    def owner(self) -> int:
        for port in self.ports:
            with admin(port) as client:
                if is_ok(client, "EXISTS", f"{PREFIX}:meta"):
                    return port
        raise AssertionError("nobody has the slot")

    def move_slot(self) -> None:
        """All keys of the crawl's slot to another node, as redis-cli --cluster reshard does it."""
        source = self.owner()
        target = next(port for port in self.ports if port != source)
        with admin(source) as one, admin(target) as other:
            other.execute_command("CLUSTER SETSLOT", SLOT, "IMPORTING", self.id_of(source))
            one.execute_command("CLUSTER SETSLOT", SLOT, "MIGRATING", self.id_of(target))
            while keys := one.execute_command("CLUSTER GETKEYSINSLOT", SLOT, 100):
                one.execute_command("MIGRATE", "127.0.0.1", target, "", 0, 10_000, "AUTH", "hush", "KEYS", *keys)
            for client in (other, one):
                client.execute_command("CLUSTER SETSLOT", SLOT, "NODE", self.id_of(target))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def cluster(binary, tmp_path) -> Iterator[Cluster]:
    with closing(Cluster(binary, tmp_path)) as made:
        yield made


def test_a_crawl_in_a_cluster_follows_its_slot(cluster):
    with closing(open_frontier(cluster.url)) as frontier:
        first = port_of(frontier)
        moved: list[int] = []
        after = {3: cluster.move_slot, 4: lambda: moved.append(port_of(frontier)), 7: cluster.move_slot}
        assert crawl(frontier, 10, after) == each_once(10)
        assert moved[0] != first
        assert frontier.audit() == []


def test_crawls_of_a_cluster_are_found_on_whatever_node_they_are(cluster):
    spiders = [f"spider{number}" for number in range(6)]
    settings = load_settings(
        None, overrides={"REDIS_URL": cluster.url, "PROJECT_NAME": "shop", "ROLE": "slave"}, environ={}
    )
    store = RedisStore(settings)
    ports = set()
    for spider in spiders:
        with closing(store.frontier(spider, settings)) as frontier:
            frontier.offer([record("a")])
            ports.add(port_of(frontier))
    assert len(ports) > 1
    assert store.crawls() == spiders


def test_items_in_another_slot_than_the_crawl_are_refused_at_the_start(cluster):
    given = {"REDIS_URL": cluster.url, "PROJECT_NAME": "shop", "ROLE": "slave", "REDIS_ITEMS_KEY": "%(spider)s:items"}
    settings = load_settings(None, overrides=given, environ={})
    with pytest.raises(SettingsError, match="another slot than the crawl; give it the same braces"):
        RedisStore(settings).frontier("books", settings)


def test_what_is_wrong_with_a_cluster_is_said_in_one_line(cluster, binary, tmp_path):
    port = cluster.ports[0]
    assert f"is a node of a cluster; write redis+cluster://127.0.0.1:{port}" in refusal(
        f"redis://:hush@127.0.0.1:{port}"
    )
    assert "is the login right?" in refusal(f"redis+cluster://:hush2@127.0.0.1:{port}")
    with redis_server(binary, tmp_path / "single", *KEEPING) as single:
        url = f"redis+cluster://127.0.0.1:{single}"
        assert "is in no cluster; write redis:// instead of redis+cluster://" in refusal(url)


def test_a_cluster_without_the_crawls_slot_is_refused_and_waited_for(binary, tmp_path):
    with closing(Cluster(binary, tmp_path, without=SLOT)) as cluster:
        line = (
            f"nobody in the cluster has slot {SLOT}, where the keys {PREFIX}:* belong; see: redis-cli --cluster check"
        )
        given = {"REDIS_URL": cluster.url, "PROJECT_NAME": "shop", "ROLE": "slave"}
        settings = load_settings(None, overrides=given, environ={})
        with pytest.raises(UsageError, match=line.replace("*", r"\*").replace("{", r"\{")):
            RedisStore(settings).frontier("books", settings)
        with pytest.raises(FrontierUnavailable, match="nobody in the cluster has slot"):
            open_frontier(cluster.url, retry_seconds=0.2)


def test_every_address_of_the_page_on_redis_is_one():
    page = (Path(__file__).parents[2] / "docs" / "redis.md").read_text("utf-8")
    urls = re.findall('^REDIS_URL = "(.*)"$', page, re.MULTILINE)
    assert {parse_redis_url(url).found_by for url in urls} == {"", "sentinel", "cluster"}


# -- TLS ---------------------------------------------------------------------------------------------------------------


def test_sentinels_and_servers_over_tls(tmp_path):
    binary = tls_binary()
    cert, key = certificate(tmp_path)
    tls = ["--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(cert)]
    tls += ["--tls-auth-clients", "no", "--tls-replication", "yes"]
    data, guard = free_port(), free_port()
    conf = tmp_path / "sentinel.conf"
    conf.write_text(f"sentinel monitor books 127.0.0.1 {data} 1\n", "utf-8")
    launcher = tmp_path / "sentinel"
    options = " ".join(tls)
    launcher.write_text(f'#!/bin/sh\nexec {binary} {conf} --sentinel "$@" --tls-port {guard} {options}\n', "utf-8")
    launcher.chmod(0o700)
    with redis_server(binary, tmp_path / "r", *KEEPING, *tls, "--tls-port", str(data)):
        with redis_server(str(launcher), tmp_path / "g"):
            url = f"rediss+sentinel://:@127.0.0.1:{guard}/books".replace(":@", "")
            with closing(open_frontier(f"{url}?ssl_ca_certs={cert}")) as frontier:
                assert crawl(frontier, 3, {}) == each_once(3)
            assert "certificate verify failed" in refusal(url)


def test_a_cluster_over_tls(tmp_path):
    cert, key = certificate(tmp_path)
    tls = ["--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(cert)]
    tls += ["--tls-auth-clients", "no", "--tls-cluster", "yes"]
    with closing(Cluster(tls_binary(), tmp_path, *tls, has_tls=True)) as cluster:
        url = f"rediss+cluster://:hush@127.0.0.1:{cluster.tls_ports[0]}"
        with closing(open_frontier(f"{url}?ssl_ca_certs={cert}")) as frontier:
            assert crawl(frontier, 4, {}) == each_once(4)
        assert "certificate verify failed" in refusal(url)
