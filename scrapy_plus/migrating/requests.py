"""Requests as Scrapy and the course framework keep them, as ours. Pure."""

from __future__ import annotations

from typing import Any

from scrapy_plus.http.request import PRIORITY_LIMIT, Request
from scrapy_plus.migrating.child import Object

GONE = {"retry_times", "download_latency", "download_slot", "redirect_urls", "redirect_times", "redirect_reasons"}
"""Keys of `meta` that count what happened there."""


class Foreign(ValueError):
    """Something that is no request, or one that has what cannot be stored."""


def request_of(value: Any) -> tuple[Request, str]:
    """The request, and the name of its spider ("" if it is not said). Raises Foreign with the reason."""
    facts = _facts(value)
    try:
        return Request(_text(facts["url"]), **_arguments(facts)), _text(facts.get("spider_name") or "")
    except KeyError as missing:
        raise Foreign(f"it has no {missing}") from None
    except (ValueError, TypeError) as error:
        raise Foreign(str(error)) from None


def _facts(value: Any) -> dict[str, Any]:
    """Scrapy keeps a dict of the fields, the course framework an object; Python 2 wrote the names as bytes."""
    state = value.state if isinstance(value, Object) else value
    if not isinstance(state, dict):
        raise Foreign(f"it is a {type(state).__name__}, and no request")
    return {_text(name).removeprefix("_"): one for name, one in state.items()}


def _arguments(facts: dict[str, Any]) -> dict[str, Any]:
    meta = {_text(name): _data(one) for name, one in (facts.get("meta") or {}).items()}
    arguments: dict[str, Any] = {
        "method": _text(facts.get("method") or "GET"),
        "headers": _headers(facts.get("headers")),
        "data": _body(facts),
        "params": _data(facts.get("params")),
        "cookies": _data(facts.get("cookies")),
        "meta": {name: one for name, one in meta.items() if name not in GONE} or None,
        "cb_kwargs": _data(facts.get("cb_kwargs")) or None,
        "parse": _method(facts.get("callback") or facts.get("parse")) or "parse",
        "errback": _method(facts.get("errback")),
        "filter": _is_filtered(facts),
        "priority": max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT, int(facts.get("priority") or 0))),
        "encoding": _text(facts.get("encoding") or "utf-8"),
        "proxies": _data(facts.get("proxies") or facts.get("proxy")),
    }
    return {name: one for name, one in arguments.items() if one not in (None, {}, [])}


def _is_filtered(facts: dict[str, Any]) -> bool:
    if "dont_filter" in facts:
        return not facts["dont_filter"]
    return bool(facts.get("filter", facts.get("dofilter", True)))


def _body(facts: dict[str, Any]) -> Any:
    body = facts.get("body") or facts.get("data") or facts.get("formdata")
    return body if isinstance(body, bytes) else _data(body)


def _headers(given: Any) -> dict[str, str] | None:
    """Scrapy keeps a list of values a name."""
    if isinstance(given, Object):
        given = given.state
    if not isinstance(given, dict):
        return None
    return {_text(name): ", ".join(map(_text, one if isinstance(one, list) else [one])) for name, one in given.items()}


def _method(given: Any) -> str | None:
    """The name of a method: as a text, or of a bound method, which a pickle gets by `getattr`."""
    if isinstance(given, Object) and given.name.endswith("getattr") and len(given.arguments) == 2:
        given = given.arguments[1]
    if given is None or isinstance(given, str | bytes):
        return _text(given) if given else None
    raise Foreign(f"its callback is a {getattr(given, 'name', type(given).__name__)}, and no method of a spider")


def _data(value: Any) -> Any:
    """Plain data; an item becomes the dict of its fields. Raises Foreign for objects of other classes."""
    if isinstance(value, Object):
        fields = value.state.get("_values", value.state.get("data"))
        if isinstance(fields, dict):
            return _data(fields)
        raise Foreign(f"a {value.name} cannot be stored")
    if isinstance(value, dict):
        return {_text(name): _data(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_data(one) for one in value]
    return value


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
