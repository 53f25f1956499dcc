"""The page of a real coordinator while a real job runs: its numbers are the API's, cancel works, a killed
stage appears as such within 3 seconds, nothing is logged, no other host is called."""
import json
import os
import pathlib
import signal
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import browser

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve().parent
browser.ensure(BUILD)

import harness

STAGES = 4
LOST_SECONDS = 3


class RealJob(browser.PageTest, harness.EndToEndTest):
    PIPELINE = {"stages": STAGES}

    def setUp(self):
        super().setUp()
        # Steps of some 50 ms and more: the page and the API are read between two of them.
        job = self.job_file(
            name="watched", training={"steps": 100000, "batch_size": 32, "micro_batches": 8},
            model={"gpt": {"layers": 8, "width": 64, "context": 64}}, checkpoint={"every_steps": 8, "keep": 2},
            evaluation={"every_steps": 5, "batches": 1}, pipeline=self.PIPELINE)
        self.cluster = self.start(job, STAGES, "state", "--id", "watched")
        self.cluster.wait_for_step(9)
        self.url = f"http://{self.cluster.processes()['coordinator']['http']}"

    def api(self, path):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=10) as reply:
            return json.load(reply)

    def job_page(self, **options):
        page = self.open(f"{self.url}/#/jobs/watched", **options)
        page.wait_for_selector('#connection[data-state="live"]')
        return page

    def shown(self, page):
        """All headline numbers at one instant."""
        return page.evaluate("Object.fromEntries([...document.querySelectorAll('[data-field][data-value]')].map(e => [e.dataset.field, e.dataset.value]))")


class LivePage(RealJob):
    def test_numbers_on_the_page_are_those_of_the_api(self):
        page = self.job_page()
        for _ in range(3):
            before = self.api("jobs/watched")
            # The page hears of each in a record of its own, a moment after the API has it.
            for name, value in (("step", before["step"]), ("checkpoint", before["last_checkpoint_step"])):
                page.wait_for_function("([name, value]) => Number(document.querySelector(`[data-field=${name}]`).dataset.value) >= value",
                                       arg=[name, int(value)])
            shown = self.shown(page)
            step = int(shown["step"])
            after = self.api("jobs/watched")
            self.assertTrue(int(before["step"]) <= step <= int(after["step"]), (before["step"], step, after["step"]))
            records = self.api(f"jobs/watched/records?after=0")["records"]
            done = next(r["step_done"] for r in reversed(records) if "step_done" in r and int(r["step"]) == step)
            for field in ("loss", "tokens_per_second", "step_seconds", "bubble"):
                self.assertEqual(float(shown[field]), done[field], field)
            self.assertEqual(shown["state"], "JOB_STATE_RUNNING")
            evaluations = [r["evaluation"]["loss"] for r in records if "evaluation" in r]
            self.assertIn(float(shown["evaluation_loss"]), evaluations[-4:])
            self.assertTrue(int(before["last_checkpoint_step"]) <= int(shown["checkpoint"]) <= int(after["last_checkpoint_step"]))
            self.assertIn(f"ideal {before['bubble_ideal'] * 100:.1f} %", page.locator('[data-hint="bubble"]').inner_text())
        text = self.field(page, "loss").inner_text()
        self.assertRegex(text, r"^\d+\.\d{4}$")
        names = [info["stage"]["name"] for info in self.api("stages")["stages"]]
        self.assertEqual(page.locator('[data-field="stage-name"]').all_inner_texts(), names)

    def test_stages_links_memory_and_timeline_are_the_stages_own(self):
        page = self.job_page()
        page.wait_for_selector('[data-gantt="measured"] .gantt-cell[data-phase="backward"]', timeout=15000)
        trace = self.api("jobs/watched/trace?steps=5")
        self.assertEqual([stage["error"] for stage in trace["stages"]], [""] * STAGES)
        for stage in range(STAGES):
            for phase in ("forward", "backward"):
                cells = page.locator(f'[data-gantt="measured"] .gantt-cell[data-stage="{stage}"][data-phase="{phase}"]')
                self.assertEqual(len({cells.nth(i).get_attribute("data-micro-batch") for i in range(cells.count())}), 8)
        sums = page.eval_on_selector_all(".strip-bar", "bars => bars.map(b => [...b.querySelectorAll('rect')].reduce((s, r) => s + +r.dataset.share, 0))")
        self.assertEqual(sums, [1000] * STAGES)
        page.wait_for_selector('[data-field="sent-0-1"]')
        low = self.sent_bytes(0)
        page.wait_for_function("low => Number(document.querySelector('[data-field=\"sent-0-1\"]').dataset.value) >= low", arg=low)
        shown = int(page.locator('[data-field="sent-0-1"]').get_attribute("data-value"))
        self.assertLessEqual(shown, self.sent_bytes(0) + 8 * 64 * 64 * 64)
        self.assertEqual(page.locator(".memory-bar").count(), STAGES)
        # Lines are asked for only where they are seen.
        page.evaluate("document.querySelector('[data-part=logs]').scrollIntoView()")
        page.wait_for_selector(".lines li")
        chrome = self.api("jobs/watched/trace?steps=2&format=chrome")
        self.assertTrue(chrome["traceEvents"])
        self.assertIn("format=chrome", page.locator('[data-part="trace-link"]').get_attribute("href"))

    def sent_bytes(self, stage):
        info = next(info for info in self.api("stages")["stages"] if info["stage"]["name"] == f"stage-{stage}")
        return next(int(link["sent_bytes"]) for link in info["telemetry"]["links"] if link["peer"] == "downstream")

    def test_a_killed_stage_appears_within_three_seconds_and_the_job_goes_on(self):
        page = self.job_page()
        page.wait_for_selector('[data-field="stage-state"]')
        os.kill(self.cluster.pid("stage-1"), signal.SIGKILL)
        # The supervisor has a new process up in no time: the page tells that it is another one.
        page.wait_for_function(
            "() => /stage-1 (is|was) lost/.test(document.querySelector('[data-part=\"alerts\"]').textContent)",
            timeout=LOST_SECONDS * 1000 * harness.TIME_FACTOR)
        self.wait_for_recovery(page)

    def test_a_silent_stage_is_lost_within_three_seconds_and_the_job_goes_on(self):
        page = self.job_page()
        page.wait_for_selector('[data-field="stage-state"]')
        pid = self.cluster.pid("stage-2")
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: harness.alive(pid) and os.kill(pid, signal.SIGCONT))
        page.wait_for_function(
            "() => [...document.querySelectorAll('[data-field=\"stage-state\"][data-value=\"lost\"]')]"
            ".some(e => e.closest('tr').textContent.includes('stage-2'))",
            timeout=LOST_SECONDS * 1000 * harness.TIME_FACTOR)
        os.kill(pid, signal.SIGCONT)
        self.wait_for_recovery(page)

    def wait_for_recovery(self, page):
        page.wait_for_function("() => document.querySelector('.events').textContent.includes('recovery')", timeout=30000)
        step = int(self.field(page, "step").get_attribute("data-value"))
        page.wait_for_function("step => Number(document.querySelector('[data-field=step]').dataset.value) > step + 2", arg=step, timeout=60000)
        self.assertRegex(page.locator('[data-part="alerts"]').inner_text(), "[12] recover(y|ies)")

    def test_cancel_from_the_page_ends_the_job(self):
        # With its job the local cluster ends too.
        page = self.job_page(expected_problems=browser.SERVER_GONE)
        page.get_by_role("button", name="Cancel job…").click()
        page.locator("#cancel-confirm").click()
        page.wait_for_selector('[data-field="state"][data-state="CANCELLED"]', timeout=20000)
        self.assertEqual(self.cluster.finish(), 5)

    def test_accessible_and_narrow_while_the_job_runs(self):
        for scheme, width in (("light", 1360), ("dark", 360)):
            page = self.job_page(scheme=scheme, width=width, height=800)
            page.wait_for_selector(".strip-bar rect")
            self.assert_accessible(page)
            self.assert_no_sideways_scroll(page)
            page.keyboard.press("Tab")
            self.assertEqual(page.evaluate("document.activeElement.id"), "skip")

    def test_job_list_and_back(self):
        page = self.open(f"{self.url}/")
        page.wait_for_selector('[data-field="state"][data-state], [data-part="jobs"] .badge[data-state="RUNNING"]')
        page.get_by_role("link", name="watched").first.click()
        page.wait_for_selector('[data-field="state"][data-state="RUNNING"]')
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.wait_for_selector('[data-part="jobs"] a')


class FewerStages(RealJob):
    PIPELINE = {"stages": STAGES, "continue_with_fewer_stages": True, "replacement_timeout_seconds": 10}

    # Symptom: the page called the pipeline K = 3 with stages 0, 1, 2 while stage 1 of four was lost, and later
    # went on with the time left of both.
    def test_header_and_labels_while_the_pipeline_shrinks(self):
        page = self.job_page()
        page.wait_for_selector('[data-field="stage-state"]')
        pid = self.cluster.pid("stage-1")
        self.addCleanup(lambda: harness.alive(pid) and os.kill(pid, signal.SIGCONT))
        os.kill(pid, signal.SIGSTOP)
        # All of one instant: the job goes on soon.
        seen = page.wait_for_function("""() => {
          const text = selector => [...document.querySelectorAll(selector)].map(node => node.textContent);
          const [subtitle] = text('[data-part=subtitle]');
          return subtitle.includes('K = 4 stages, 1 lost') && [text('[data-part=strip] strong'), text('.tile [data-field=eta]')];
        }""", timeout=15000 * harness.TIME_FACTOR).json_value()
        self.assertEqual(seen, [["Stage 0", "Stage 2", "Stage 3"], ["–"]])
        page.wait_for_function("() => document.querySelector('[data-part=subtitle]').textContent.includes('K = 3 stages of the 4 asked for')",
                               timeout=20000 * harness.TIME_FACTOR)
        page.wait_for_selector('.tile [data-field="eta"][data-value]', timeout=30000 * harness.TIME_FACTOR)
        self.assertEqual(page.locator('[data-part="strip"] strong').all_inner_texts(), ["Stage 0", "Stage 1", "Stage 2"])
        page.locator('[data-part="gantt"]').scroll_into_view_if_needed()
        page.wait_for_function("() => document.querySelectorAll('[data-gantt=measured] .gantt-lane').length === 3", timeout=30000 * harness.TIME_FACTOR)


if __name__ == "__main__":
    harness.main()
