"""A site in the folder `site`, without a server: a downloader middleware may answer a request itself."""

from pathlib import Path
from urllib.parse import urlsplit

from scrapy_plus import Response

SITE = Path(__file__).parent / "site"


class DemoSite:
    def process_request(self, request):
        url = urlsplit(request.url)
        if url.hostname != "demo.test":
            return request
        page = SITE / (Path(url.path).name or "index.html")
        if not page.is_file():
            return Response(request.url, 404)
        return Response(request.url, 200, {"Content-Type": "text/html; charset=utf-8"}, page.read_bytes())
