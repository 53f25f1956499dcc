"""How much a browser loads for a job's page, with the parts bundled as in a program and answers by gzip."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "services/coordinator/page")]
import browser

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve().parent
browser.ensure(BUILD)

import shutil
import unittest
import urllib.parse

import bundle
import fake_coordinator
import parts

STEPS = 300            # each costs some 70 bytes
MOST_BYTES = 150_000   # what the stream brings is not counted: it has no end
MOST_REQUESTS = 10


class Transfers:
    """What a page asks the network for, caches left out: path by request, and its bytes as they came, headers too."""

    def __init__(self, page):
        self.paths, self.bytes = {}, {}
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", lambda event: self.paths.update(
            {event["requestId"]: urllib.parse.urlsplit(event["request"]["url"]).path}))
        session.on("Network.requestServedFromCache", lambda event: self.paths.pop(event["requestId"], None))
        session.on("Network.responseReceived", lambda event: event["response"]["fromDiskCache"] and self.paths.pop(event["requestId"], None))
        session.on("Network.loadingFinished", lambda event: self.bytes.update({event["requestId"]: event["encodedDataLength"]}))

    def all(self):
        return [(path, self.bytes.get(request, 0)) for request, path in self.paths.items()]


class PageWeight(parts.PartsTest):
    def setUp(self):
        self.serve(fake_coordinator.FakeCoordinator(steps_done=STEPS))
        self.fake.finish("SUCCEEDED")  # while a job runs its page asks again and again
        self.fake.bundled = bundle.parts_of(fake_coordinator.STATIC, fake_coordinator.CHART, shutil.which("esbuild"))

    def test_a_job_s_page_is_light(self):
        page = self.open("about:blank")
        transfers = Transfers(page)
        with page.expect_response(lambda response: "/trace" in response.url):
            page.goto(f"{self.fake.url}/#/jobs/{self.fake.job_id}")
        page.wait_for_selector('#connection[data-state="live"]')
        page.wait_for_selector('[data-field="stage-state"]')
        page.wait_for_selector('[data-gantt="measured"] .gantt-cell')
        seen = transfers.all()
        print(f"{sum(size for _, size in seen)} bytes in {len(seen)} requests")
        self.assertIn("/api/v1/stream", dict(seen))
        self.assertGreater(dict(seen)[f"/api/v1/jobs/{self.fake.job_id}/records"], 0)
        self.assertLessEqual(len(seen), MOST_REQUESTS, seen)
        self.assertLess(sum(size for _, size in seen), MOST_BYTES, seen)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
