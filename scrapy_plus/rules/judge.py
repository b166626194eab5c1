"""What to do with a request that failed: a pure decision, carried out by the scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_plus.errors import HttpError, Refused
from scrapy_plus.http.secrets import redact


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `delay_seconds`."""

    delay_seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Bury:
    """Give up: the request becomes a dead letter with this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing to try again: the server's answer is final (a 404, say), or it must not be asked. The request is
    done and counted as an error."""

    reason: str


Verdict = Retry | Bury | Finish


def judge(
    failure: BaseException,
    retry_time: int,
    *,
    max_retries: int = 3,
    backoff_seconds: float = 0.5,
    backoff_limit_seconds: float = 60.0,
    dice: float = 0.5,
) -> Verdict:
    """Retry, bury or finish, for a request that failed with `failure` after `retry_time` retries.

    The delay doubles with each retry up to the limit; `dice` in [0, 1) spreads it between half and all of it, so that
    requests which failed together do not come back together. A failure may ask for more: its `wait_seconds`.
    """
    reason = describe(failure)
    if isinstance(failure, HttpError | Refused) and failure.permanent:
        return Finish(reason)
    if getattr(failure, "permanent", False) or retry_time >= max_retries:
        return Bury(reason)
    delay = backoff(backoff_seconds, backoff_limit_seconds, retry_time)
    return Retry(max(delay * (0.5 + dice / 2), getattr(failure, "wait_seconds", 0.0)), reason)


def backoff(seconds: float, limit_seconds: float, retry_time: int) -> float:
    """The wait before the next try, after so many retries."""
    return min(limit_seconds, seconds * 2.0 ** min(retry_time, 30))


def describe(failure: BaseException) -> str:
    """One line that groups equal failures: the exception's name and its first line without secrets, cut at 300."""
    cause = (
        failure.__cause__ if failure.__cause__ is not None and type(failure).__name__ == "CallbackFailed" else failure
    )
    first = redact(str(cause)).strip().split("\n", 1)[0][:300]
    return f"{type(cause).__name__}: {first}" if first else type(cause).__name__
