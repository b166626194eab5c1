from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scrapy_plus import log
from scrapy_plus.core.spider import Spider
from scrapy_plus.core.stats import Stats
from scrapy_plus.errors import UsageError


@contextmanager
def fresh_process() -> Iterator[io.StringIO]:
    """A root logger without handlers, as a program has it that just began; gives what standard error gets."""
    root = logging.getLogger()
    handlers, level, stderr = root.handlers[:], root.level, sys.stderr
    root.handlers[:] = []
    sys.stderr = io.StringIO()
    try:
        yield sys.stderr
    finally:
        for handler in set(root.handlers) - set(handlers):
            handler.close()
        sys.stderr = stderr
        root.handlers[:] = handlers
        root.setLevel(level)


def test_the_framework_and_the_project_log_to_standard_error():
    with fresh_process() as stderr:
        log.setup("INFO", None, "%(name)s %(levelname)s %(message)s")
        logging.getLogger("scrapy_plus.engine").info("started")
        logging.getLogger("myproject").info("mine")
        logging.getLogger("myproject").debug("too detailed")
        assert stderr.getvalue() == "scrapy_plus.engine INFO started\nmyproject INFO mine\n"


def test_set_up_twice_it_logs_once():
    with fresh_process() as stderr:
        log.setup(format="%(message)s")
        log.setup(format="again %(message)s")
        logging.getLogger("x").warning("hello")
        assert stderr.getvalue() == "again hello\n"


def test_handlers_of_the_program_itself_stay_the_only_ones():
    with fresh_process() as stderr:
        own = io.StringIO()
        logging.getLogger().addHandler(logging.StreamHandler(own))
        log.setup("DEBUG")
        logging.getLogger("scrapy_plus").warning("hello")
        assert own.getvalue() == "hello\n"
        assert stderr.getvalue() == ""


def test_crawled_text_cannot_forge_lines_or_steer_the_terminal():
    with fresh_process() as stderr:
        log.setup(format="%(message)s")
        logging.getLogger("x").warning("title: %s", "a\nERROR: b\x1b[2J\x9b1m\u2028c\u202ed\x7f")
        assert stderr.getvalue() == "title: a\\nERROR: b\\x1b[2J\\x9b1m\\u2028c\\u202ed\\x7f\n"


def test_a_traceback_keeps_its_lines_and_nothing_else():
    with fresh_process() as stderr:
        log.setup(format="%(message)s")
        try:
            raise ValueError("bad \x1b[31m")
        except ValueError:
            logging.getLogger("x").exception("page failed")
        assert stderr.getvalue().startswith("page failed\nTraceback (most recent call last):\n  File ")
        assert stderr.getvalue().endswith("ValueError: bad \\x1b[31m\n")


URLS_WITH_PASSWORDS = ["http://me:secret@host/x", "see redis://:secret@host:6379/0 there", "a https://u:se@cret@h b"]


@pytest.mark.parametrize("text", URLS_WITH_PASSWORDS)
def test_passwords_in_urls_are_hidden(text):
    with fresh_process() as stderr:
        log.setup(format="%(message)s")
        logging.getLogger("x").warning("got %s", text)
        assert "se" not in stderr.getvalue().replace("see", "")
        assert ":***@h" in stderr.getvalue()


def test_urls_without_a_password_are_shown_as_they_are():
    for url in ("http://host:80/a@b:c@d", "mailto:a@b", "http://user@host/", "http://host/?q=a:b@c"):
        assert log.printable(url) == url


def test_extra_fields_follow_the_message():
    with fresh_process() as stderr:
        log.setup(format="%(message)s")
        logging.getLogger("x").warning("request buried", extra={"url": "http://a/\n", "attempt": 3})
        assert stderr.getvalue() == "request buried attempt=3 url='http://a/\\n'\n"


def test_a_log_file_is_appended_to_and_its_folder_made(tmp_path):
    with fresh_process() as stderr:
        path = tmp_path / "logs" / "crawl.log"
        for _ in range(2):
            log.setup("INFO", path, "%(message)s")
            logging.getLogger("x").info("茶")
        assert path.read_text("utf-8") == "茶\n茶\n"
        assert stderr.getvalue() == ""


def test_a_log_file_that_cannot_be_written_is_a_clear_error(tmp_path):
    with fresh_process():
        with pytest.raises(UsageError, match="LOG_FILE"):
            log.setup("INFO", tmp_path)


def test_records_are_counted_by_level_while_asked_for():
    with fresh_process():
        log.setup("INFO")
        stats = Stats()
        log.count_into(stats)
        logging.getLogger("x").warning("one")
        logging.getLogger("x").error("two")
        logging.getLogger("x").error("three")
        log.stop_counting(stats)
        logging.getLogger("x").error("four")
        assert stats.as_dict() == {"log_count/ERROR": 2, "log_count/WARNING": 1}


def test_records_of_a_spiders_own_logger_are_counted_for_it_alone_and_others_once():
    with fresh_process():
        log.setup("INFO")
        books, site, rest = Stats(), Stats(), Stats()
        for name, stats in (("books", books), ("books.test", site), ("", rest)):
            log.count_into(stats, name)
        Spider("books").logger.error("one")
        Spider("books.test").logger.warning("two")
        logging.getLogger("scrapy_plus.spider.books.detail").error("three")
        logging.getLogger("scrapy_plus.spider.bookshop").error("of none that is counted")
        logging.getLogger("scrapy_plus.crawl").warning("four")
        for stats in (books, site, rest):
            log.stop_counting(stats)
        assert books.as_dict() == {"log_count/ERROR": 2}
        assert site.as_dict() == {"log_count/WARNING": 1}
        assert rest.as_dict() == {"log_count/ERROR": 1, "log_count/WARNING": 1}


def test_importing_the_framework_touches_no_handlers():
    program = (
        "import scrapy_plus, logging\n"
        "assert not logging.getLogger().handlers and not logging.getLogger('scrapy_plus').handlers"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
