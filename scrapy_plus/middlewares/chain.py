"""The middlewares of one spider, as layers around the downloader and around the callbacks.

Hooks are duck-typed methods, any of which may be missing. A hook says by the names of its parameters what it wants
(`request`, `response`, `exception`, `item`, `spider`, in any order); with other names the usual order counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from scrapy_plus.errors import DropRequest, NotNow, StopCrawl, UsageError
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response

Hook = Callable[..., Any]
# What a hook gets for its parameters when their names say nothing, by how many there are; and what the chain passes.
_SHAPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "process_request": (("request",), ("request", "spider")),
    "process_response": (("response",), ("response", "spider"), ("request", "response", "spider")),
    "process_exception": (("exception",), ("request", "exception"), ("request", "exception", "spider")),
    "process_item": (("item",), ("item", "spider")),
    "passes_all": (("urls", "depth"), ("urls", "depth", "spider")),
    "open_spider": ((), ("spider",)),
    "close_spider": ((), ("spider",)),
}
_ALIASES = {"failure": "exception", "error": "exception", "exc": "exception", "req": "request", "res": "response"}
AT_ONCE = (DropRequest, NotNow, StopCrawl)
"""What ends the walk of a request where it is raised."""
_WORDS = frozenset({"request", "response", "exception", "item", "spider"})


class UnfitHook(UsageError, TypeError):
    """A middleware or pipeline has a method that cannot be called as it is written."""


def bind(middleware: object, name: str, spider: object, passed: tuple[str, ...]) -> Hook | None:
    """The hook as a function of `passed`, whatever it takes itself; None if the middleware or pipeline has none.

    Raises UnfitHook for one whose parameters cannot be filled, or that is a coroutine.
    """
    hook = getattr(middleware, name, None)
    if hook is None:
        return None
    if not callable(hook) or inspect.iscoroutinefunction(hook):
        raise UnfitHook(f"{_title(middleware, name)} must be a plain method, not async: gevent makes it concurrent")
    wanted = _wanted(hook, name, _title(middleware, name))
    if wanted == passed:
        return hook
    if wanted == ("spider",):
        return lambda *given: hook(spider)
    if wanted == (*passed, "spider") and len(passed) == 1:
        return lambda one: hook(one, spider)
    if wanted == (*passed, "spider") and len(passed) == 2:
        return lambda one, other: hook(one, other, spider)
    places = [passed.index(word) if word in passed else None for word in wanted]

    def call(*given: Any) -> Any:
        return hook(*[spider if place is None else given[place] for place in places])

    return call


def _wanted(hook: Hook, name: str, title: str) -> tuple[str, ...]:
    """What the hook is to be given, in the order of its parameters."""
    shapes = _SHAPES[name]
    parameters = list(inspect.signature(hook).parameters.values())
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return shapes[-1]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [_ALIASES.get(p.name, p.name) for p in positional]
    known = {word for shape in shapes for word in shape}
    required = [p for p, word in zip(positional, names, strict=True) if p.default is p.empty or word in known]
    if len(required) == len(positional) and names and set(names) <= known and len(set(names)) == len(names):
        return tuple(names)
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise UnfitHook(f"{title} has keyword-only parameters; write {' or '.join(_written(shapes))}")
    for shape in shapes:
        if len(shape) == len(required) and required == positional[: len(required)]:
            return shape
    raise UnfitHook(f"{title}{inspect.signature(hook)} cannot be called; write {' or '.join(_written(shapes))}")


def _written(shapes: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"({', '.join(('self', *shape))})" for shape in shapes]


def _title(middleware: object, name: str) -> str:
    kind = middleware if isinstance(middleware, type) else type(middleware)
    return f"{kind.__name__}.{name}"


class _Layer:
    """One downloader middleware, its hooks bound."""

    __slots__ = ("process_exception", "process_request", "process_response", "title")

    def __init__(self, middleware: object, spider: object) -> None:
        self.title = type(middleware).__name__
        self.process_request = bind(middleware, "process_request", spider, ("request",))
        self.process_response = bind(middleware, "process_response", spider, ("request", "response"))
        self.process_exception = bind(middleware, "process_exception", spider, ("request", "exception"))


class DownloaderChain:
    """Downloader middlewares in list order, outermost first: the last one is nearest to the network.

    A request goes inwards until one answers it or the network does. What comes back goes outwards through *all* of
    them: a response through `process_response`, an exception through `process_exception`; each may turn one into the
    other. A Request as answer ends the walk: that one is to be fetched instead, later.
    `request` in a hook is the one that this layer's `process_request` was given; `response.request` is what was sent.
    """

    def __init__(self, middlewares: Sequence[object], spider: object) -> None:
        self._layers = [_Layer(middleware, spider) for middleware in middlewares]
        layers = list(enumerate(self._layers))
        self._inwards = [(index, layer, layer.process_request) for index, layer in layers if layer.process_request]
        self._outwards = [
            (index, layer, layer.process_response, layer.process_exception)
            for index, layer in reversed(layers)
            if layer.process_response or layer.process_exception
        ]

    def download(self, request: Request, fetch: Callable[[Request], Response]) -> Response | Request:
        """The answer to `request`, or the request to make instead. Raises what fetch or a middleware raised,
        DropRequest and NotNow at once."""
        given = [request] * len(self._layers)
        outcome: Any
        try:
            outcome = self._inward(request, fetch, given)
        except AT_ONCE:
            raise
        except Exception as error:
            outcome = error
        for index, layer, hear, mend in self._outwards:
            hook = mend if isinstance(outcome, Exception) else hear
            if hook is None:
                continue
            try:
                answer = hook(given[index], outcome)
                if answer is not outcome or hook is mend:
                    answer = _judged(answer, layer, outcome)
            except AT_ONCE:
                raise
            except Exception as error:
                answer = error
            if answer is not outcome:
                if isinstance(answer, Request):
                    return answer
                outcome = answer
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _inward(self, request: Request, fetch: Callable[[Request], Response], given: list[Request]) -> Response:
        for index, layer, process_request in self._inwards:
            given[index] = request
            answer = process_request(request)
            if answer is None or answer is request:
                continue
            if isinstance(answer, Response):
                if answer.request is None:
                    answer.request = request
                return answer
            if not isinstance(answer, Request):
                raise TypeError(f"{layer.title}.process_request returned {answer!r}, neither Request nor Response")
            request = answer
            given[index + 1 :] = [request] * (len(given) - index - 1)
        return fetch(request)


def _judged(answer: Any, layer: _Layer, outcome: Any) -> Any:
    """What goes on outwards after a hook that did not give back what it was given. Raises TypeError."""
    is_mending = isinstance(outcome, Exception)
    if answer is None and is_mending:
        return outcome
    if not isinstance(answer, (Response, Request)):
        hook = "process_exception" if is_mending else "process_response"
        raise TypeError(f"{layer.title}.{hook} returned {answer!r}, neither Response nor Request")
    return answer


class SpiderChain:
    """Spider middlewares: what goes into the callbacks in reverse list order, what comes out in list order."""

    def __init__(self, middlewares: Sequence[object], spider: object) -> None:
        self._requests = [
            (_title(one, "process_request"), hook, bind(one, "passes_all", spider, ("urls", "depth")))
            for one in middlewares
            if (hook := bind(one, "process_request", spider, ("request",))) is not None
        ]
        self._items = self._bound(middlewares, "process_item", spider, "item")
        self._responses = self._bound(middlewares, "process_response", spider, "response")[::-1]

    @staticmethod
    def _bound(middlewares: Sequence[object], name: str, spider: object, word: str) -> list[tuple[str, Hook]]:
        hooks = [(_title(one, name), bind(one, name, spider, (word,))) for one in middlewares]
        return [(title, hook) for title, hook in hooks if hook is not None]

    def process_requests(
        self, requests: list[Request], refuse: Callable[[Request, DropRequest], None], depth: int = 0
    ) -> list[Request]:
        """The requests of a page as they go to the scheduler; what a middleware drops is given to `refuse`.

        `depth`: so many links are all of them from the start, if it is not 0.
        """
        for title, hook, passes_all in self._requests:
            if requests and (passes_all is None or not passes_all([one.full_url for one in requests], depth)):
                requests = [kept for one in requests if (kept := _kept(one, hook, title, refuse)) is not None]
        return requests

    def passes_all(self, urls: list[str], depth: int) -> bool:
        """Whether no middleware need look at plain requests for these URLs one by one."""
        return all([hook is not None and hook(urls, depth) for _, _, hook in self._requests])  # noqa: C419  faster

    def process_response(self, response: Response) -> Response:
        """The response as the callback gets it. HttpError, or whatever a middleware raises, spares the callback."""
        for title, hook in self._responses:
            answer = hook(response)
            if answer is not response:
                response = _checked(answer, Response, title)
        return response

    def process_item(self, item: Any) -> Any:
        """The item as the pipelines get it. Raises TypeError if a middleware gives none back."""
        for title, hook in self._items:
            item = hook(item)
            if item is None:
                raise TypeError(f"{title} returned None; it must return the item")
        return item


def _kept(
    request: Request, hook: Hook, title: str, refuse: Callable[[Request, DropRequest], None]
) -> Request | None:
    try:
        answer = hook(request)
    except DropRequest as dropped:
        refuse(request, dropped)
        return None
    return request if answer is None or answer is request else _checked(answer, Request, title)


def _checked(answer: Any, kind: type[Any], title: str) -> Any:
    if not isinstance(answer, kind):
        raise TypeError(f"{title} returned {answer!r}, no {kind.__name__}")
    return answer
