"""What the tests of the page with invented servers share: a stand-in for the coordinator, and the job's page on it."""
import browser
import fake_coordinator
from fake_coordinator import FakeCoordinator


class PartsTest(browser.PageTest):
    STAGES = 4

    @classmethod
    def setUpClass(cls):
        if not fake_coordinator.CHART.exists():
            browser.skip("no chart.js: apt-get install libjs-chart.js")
        super().setUpClass()

    def setUp(self):
        self.serve(FakeCoordinator(self.STAGES))

    def serve(self, fake):
        self.fake = fake.__enter__()
        self.addCleanup(fake.__exit__)

    def job(self, path="", **options):
        page = self.open(f"{self.fake.url}/#/jobs/{self.fake.job_id}{path}", **options)
        page.wait_for_selector('#connection[data-state="live"]')
        return page

    def cells(self, page, chart="measured"):
        """(stage, phase, micro-batch) -> (x, width) of every piece on the compute lanes."""
        page.wait_for_selector(f'[data-gantt="{chart}"] .gantt-cell')
        rows = page.eval_on_selector_all(
            f'[data-gantt="{chart}"] .gantt-cell',
            "cells => cells.map(c => { const r = c.querySelector('rect'); return [c.dataset.stage, c.dataset.phase, c.dataset.microBatch,"
            " +r.getAttribute('x'), +r.getAttribute('width')].map(v => isNaN(v) ? v : +v); })")
        return {(stage, phase, micro): (x, width) for stage, phase, micro, x, width in rows}
