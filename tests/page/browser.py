"""Debian's Chromium, driven by PyPI's playwright from a virtual environment under the build folder.

`ensure(build)` runs the calling script again inside that environment; where PyPI, chromium or chart.js is not
to be had it says so and exits 77, which the test runner counts as skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
SKIPPED = 77
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
# What Chromium says of a request to a server that ended: before, or while, it was asked or answered.
SERVER_GONE = ("net::ERR_CONNECTION_REFUSED", "net::ERR_CONNECTION_RESET", "net::ERR_CONNECTION_CLOSED",
               "net::ERR_EMPTY_RESPONSE", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR_CONTENT_LENGTH_MISMATCH",
               "503 (Service Unavailable)")  # the last is said by one that is about to end


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def ensure(build):
    venv = pathlib.Path(build).resolve() / "page-venv"
    if not pathlib.Path(CHROMIUM).exists():
        skip("no chromium: apt-get install chromium")
    if pathlib.Path(sys.prefix).resolve() == venv:
        return
    python = venv / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text()
    stamp = venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
        if made.returncode != 0:
            skip(f"no virtual environment: {made.stdout[-300:]}{made.stderr[-300:]}")
        got = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15",
                              "-r", str(HERE / "requirements.txt")], capture_output=True, text=True)
        if got.returncode != 0:
            skip(f"PyPI is not reached: {got.stderr[-300:]}")
        stamp.write_text(wanted)
    os.execv(python, [str(python), *sys.argv])


class Browser:
    """One Chromium; each page() is a fresh profile that writes down everything that a good page never does."""

    def __init__(self):
        from playwright.sync_api import sync_playwright
        self.driver = sync_playwright().start()
        self.chromium = self.driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def page(self, width=1360, height=900, scheme="light", reduced_motion="no-preference", scale=1):
        context = self.chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                            reduced_motion=reduced_motion, device_scale_factor=scale)
        page = context.new_page()
        page.problems = []
        page.on("console", lambda m: page.problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.problems.append(f"exception: {error}"))
        page.on("request", lambda request: page.problems.append(f"external request: {request.url}")
                if urllib.parse.urlsplit(request.url).hostname not in ("127.0.0.1", "localhost") else None)
        page.add_init_script("document.addEventListener('securitypolicyviolation', (event) =>"
                             " console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI));")
        return page

    def close(self):
        self.chromium.close()
        self.driver.stop()


class PageTest(unittest.TestCase):
    """A test with a browser; fails if a page logged an error, broke the policy or called another host."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, url, expected_problems=(), **options):
        page = self.browser.page(**options)
        self.addCleanup(page.context.close)
        self.addCleanup(self.check_problems, page, expected_problems)
        page.goto(url)
        # Another program that adds a network interface makes Chromium drop what it is loading.
        while any(NETWORK_CHANGED in problem for problem in page.problems):
            page.problems.clear()
            page.reload()
        return page

    def check_problems(self, page, expected):
        self.assertEqual([p for p in page.problems if not any(e in p for e in (*expected, NETWORK_CHANGED))], [])

    def assert_accessible(self, page):
        from axe_playwright_python.sync_playwright import Axe
        found = [f"{v['id']} ({v['impact']}): {v['help']}: {v['nodes'][0]['target']} {v['nodes'][0].get('failureSummary', '')}"
                 for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
        self.assertEqual(found, [])

    def assert_no_sideways_scroll(self, page):
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), page.evaluate("innerWidth"))

    def field(self, page, name):
        return page.locator(f'[data-field="{name}"]').first
