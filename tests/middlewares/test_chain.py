"""Layers of middlewares: the order of hooks, their shapes, and what they may answer."""

from __future__ import annotations

import pytest

from scrapy_plus.errors import ConnectionFailed, DropRequest, StopCrawl
from scrapy_plus.http.request import Request
from scrapy_plus.http.response import Response
from scrapy_plus.middlewares.chain import DownloaderChain, SpiderChain
from scrapy_plus.middlewares.downloader_middlewares import DownloaderMiddleware
from scrapy_plus.middlewares.spider_middlewares import SpiderMiddleware

SPIDER = object()
URL = "http://shop.test/"


class Noted:
    """Writes down which hook was called, and answers what it was told to."""

    def __init__(self, name, notes, **answers):
        self.name, self.notes, self.answers = name, notes, answers

    def process_request(self, request):
        return self._answer("request", None)

    def process_response(self, request, response):
        return self._answer("response", response)

    def process_exception(self, request, exception):
        return self._answer("exception", None)

    def _answer(self, hook, default):
        self.notes.append(f"{self.name} {hook}")
        answer = self.answers.get(hook, default)
        if isinstance(answer, Exception):
            raise answer
        return answer


def fetch(request):
    return Response(request.url, request=request)


def failing(request):
    raise ConnectionFailed("down")


def download(middlewares, request=None, fetched=fetch):
    return DownloaderChain(middlewares, SPIDER).download(request or Request(URL), fetched)


def notes_of(fetched=fetch, **answers):
    """What three layers note, the middle one answering as told, and what came of it."""
    notes = []
    try:
        outcome = download([Noted("a", notes), Noted("b", notes, **answers), Noted("c", notes)], fetched=fetched)
    except Exception as error:
        outcome = error
    return notes, outcome


def test_requests_go_in_list_order_and_responses_in_reverse():
    notes, _ = notes_of()
    assert notes == ["a request", "b request", "c request", "c response", "b response", "a response"]


def test_a_failure_of_the_network_goes_outwards_through_process_exception():
    notes, outcome = notes_of(failing)
    assert notes[3:] == ["c exception", "b exception", "a exception"]
    assert isinstance(outcome, ConnectionFailed)


def test_a_response_from_process_request_answers_without_the_network_and_is_processed():
    answer = Response(URL, 203)
    notes, outcome = notes_of(failing, request=answer)
    assert notes == ["a request", "b request", "c response", "b response", "a response"]
    assert outcome is answer and answer.request is not None


def test_another_request_goes_on_inwards_in_the_place_of_the_first():
    seen = []

    class Inner:
        def process_request(self, request):
            seen.append(request.url)

    other = Request("http://other.test/")
    assert download([Noted("a", [], request=other), Inner()]).url == "http://other.test/"
    assert seen == ["http://other.test/"]


def test_each_layer_is_told_the_request_that_it_was_given():
    seen = {}

    class Layer:
        def __init__(self, name, change=None):
            self.name, self.change = name, change

        def process_request(self, request):
            return self.change

        def process_response(self, request, response):
            seen[self.name] = request.url.rpartition("/")[2]
            return response

    class OnTheWayBack:
        def process_response(self, request, response):
            seen["back"] = request.url.rpartition("/")[2]
            return response

    layers = [Layer("a"), Layer("b", Request(f"{URL}second")), Layer("c", Request(f"{URL}third")), OnTheWayBack()]
    response = download(layers, Request(f"{URL}first"))
    assert seen == {"a": "first", "b": "first", "c": "second", "back": "third"}
    assert response.request.url == f"{URL}third"


def test_a_request_from_process_response_ends_the_walk():
    instead = Request("http://other.test/")
    notes, outcome = notes_of(response=instead)
    assert outcome is instead and notes[3:] == ["c response", "b response"]


def test_a_failure_in_process_response_is_an_exception_to_the_outer_layers():
    notes, outcome = notes_of(response=KeyError("x"))
    assert notes[3:] == ["c response", "b response", "a exception"] and isinstance(outcome, KeyError)


def test_a_rescued_exception_is_a_response_to_the_outer_layers():
    rescued = Response(URL, 200)
    notes, outcome = notes_of(failing, exception=rescued)
    assert notes[3:] == ["c exception", "b exception", "a response"] and outcome is rescued


def test_a_request_from_process_exception_is_asked_for_instead():
    instead = Request("http://other.test/")
    assert notes_of(failing, exception=instead)[1] is instead


@pytest.mark.parametrize("word", [DropRequest("no"), StopCrawl("enough")])
@pytest.mark.parametrize("hook", ["request", "response"])
def test_words_to_the_engine_are_not_shown_to_other_middlewares(word, hook):
    notes, outcome = notes_of(**{hook: word})
    assert outcome is word and not any("exception" in note for note in notes)


@pytest.mark.parametrize("hook", ["request", "response", "exception"])
def test_an_answer_of_another_kind_names_its_hook(hook):
    _, outcome = notes_of(failing if hook == "exception" else fetch, **{hook: 5})
    assert isinstance(outcome, TypeError) and f"Noted.process_{hook}" in str(outcome)


def test_a_response_that_was_not_returned_names_its_hook():
    class Forgetful:
        def process_response(self, response):
            pass

    with pytest.raises(TypeError, match=r"Forgetful\.process_response returned None"):
        download([Forgetful()])


def shapes():
    class Historical:
        def process_request(self, request): ...
        def process_response(self, response):
            return response.replace(status_code=201)

    class WithSpider:
        def process_request(self, request, spider):
            assert spider is SPIDER

        def process_response(self, response, spider):
            assert spider is SPIDER
            return response.replace(status_code=201)

        def process_exception(self, exception): ...

    class Scrapys:
        def process_request(self, request, spider=None):
            assert spider is SPIDER

        def process_response(self, request, response, spider):
            assert isinstance(request, Request) and spider is SPIDER
            return response.replace(status_code=201)

        def process_exception(self, request, exception, spider): ...

    class OtherNames:
        def process_request(self, r, s):
            assert isinstance(r, Request) and s is SPIDER

        def process_response(self, req, res, s):
            assert isinstance(req, Request) and s is SPIDER
            return res.replace(status_code=201)

    class AnyNumber:
        def process_response(self, *given):
            assert isinstance(given[0], Request) and given[2] is SPIDER
            return given[1].replace(status_code=201)

    class Static:
        @staticmethod
        def process_response(response, limit=5):
            assert limit == 5
            return response.replace(status_code=201)

    return [Historical, WithSpider, Scrapys, OtherNames, AnyNumber, Static]


@pytest.mark.parametrize("kind", shapes(), ids=lambda kind: kind.__name__)
def test_hooks_may_have_any_of_the_usual_shapes(kind):
    assert download([kind()]).status_code == 201


def exceptions_seen():
    class Alone:
        def process_exception(self, exception):
            raise RuntimeError(type(exception).__name__)

    class Both:
        def process_exception(self, request, exception):
            raise RuntimeError(type(exception).__name__)

    class Three:
        def process_exception(self, request, failure, spider):
            assert spider is SPIDER
            raise RuntimeError(type(failure).__name__)

    return [Alone, Both, Three]


@pytest.mark.parametrize("kind", exceptions_seen(), ids=lambda kind: kind.__name__)
def test_process_exception_gets_the_exception_in_any_shape(kind):
    with pytest.raises(RuntimeError, match="ConnectionFailed"):
        download([kind()], fetched=failing)


def bad_shapes():
    class TooMany:
        def process_request(self, request, spider, more): ...

    class None_:
        def process_response(self): ...

    class Keyword:
        def process_request(self, *, request): ...

    class Coroutine:
        async def process_request(self, request): ...

    class NoMethod:
        process_request = 5

    return [TooMany, None_, Keyword, Coroutine, NoMethod]


@pytest.mark.parametrize("kind", bad_shapes(), ids=lambda kind: kind.__name__)
def test_a_hook_that_cannot_be_called_is_refused_when_the_chain_is_made(kind):
    with pytest.raises(TypeError, match=f"{kind.__name__}.process_re"):
        DownloaderChain([kind()], SPIDER)


def test_the_base_classes_change_nothing():
    assert download([DownloaderMiddleware()]).status_code == 200
    with pytest.raises(ConnectionFailed):
        download([DownloaderMiddleware()], fetched=failing)
    chain, request, response = SpiderChain([SpiderMiddleware()], SPIDER), Request(URL), Response(URL)
    assert through(chain, request) == [request]
    assert chain.process_response(response) is response
    assert chain.process_item(0) == 0


def test_an_empty_chain_is_the_fetch():
    assert download([]).url == URL


def through(chain, *requests):
    """What a chain makes of the requests of a page; it must refuse none."""
    return chain.process_requests(list(requests), pytest.fail, 2)


class Step:
    """A spider middleware that leaves its mark on what goes through."""

    def __init__(self, mark):
        self.mark = mark

    def process_request(self, request, spider):
        assert spider is SPIDER
        return Request(request.url + self.mark)

    def process_response(self, response):
        return response.replace(body=response.body + self.mark.encode())

    def process_item(self, item, spider):
        assert spider is SPIDER
        return item + self.mark


def test_what_comes_out_of_callbacks_goes_in_list_order_and_what_goes_in_in_reverse():
    chain = SpiderChain([Step("a"), Step("b")], SPIDER)
    assert [one.url for one in through(chain, Request(URL), Request(URL + "x"))] == [f"{URL}ab", f"{URL}xab"]
    assert chain.process_item("-") == "-ab"
    assert chain.process_response(Response(URL)).body == b"ba"


def test_a_spider_middleware_that_returns_nothing_is_named():
    class Forgetful:
        def process_request(self, request): ...
        def process_response(self, response): ...
        def process_item(self, item): ...

    chain, request = SpiderChain([Forgetful()], SPIDER), Request(URL)
    assert through(chain, request) == [request]
    with pytest.raises(TypeError, match=r"Forgetful\.process_response returned None"):
        chain.process_response(Response(URL))
    with pytest.raises(TypeError, match=r"Forgetful\.process_item returned None"):
        chain.process_item({})


def test_a_refused_request_is_said_to_the_engine_and_the_others_go_on():
    class Refusing:
        def process_request(self, request):
            if request.url == URL:
                raise DropRequest("not this one")

    refused = []
    chain = SpiderChain([Refusing(), Step("a")], SPIDER)
    requests = [Request(URL), Request(URL + "x")]
    kept = chain.process_requests(requests, lambda request, dropped: refused.append((request, str(dropped))))
    assert [one.url for one in kept] == [URL + "xa"]
    assert refused == [(requests[0], "not this one")]


@pytest.mark.parametrize("passes", [True, False])
def test_a_middleware_that_lets_all_pass_is_spared_the_look_at_each(passes):
    looked_at = []

    class Quick:
        def passes_all(self, urls, depth, spider):
            assert spider is SPIDER
            assert (urls, depth) == ([URL, URL + "x"], 2)
            return passes

        def process_request(self, request):
            looked_at.append(request)

    requests = [Request(URL), Request(URL + "x")]
    assert through(SpiderChain([Quick()], SPIDER), *requests) == requests
    assert looked_at == ([] if passes else requests)
