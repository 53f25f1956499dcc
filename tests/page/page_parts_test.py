"""The page against a stand-in for the coordinator: what each part shows and how it behaves."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import browser

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve().parent
browser.ensure(BUILD)

import base64
import unittest

import made_pictures
import parts
from fake_coordinator import MICRO

STAGES = parts.PartsTest.STAGES


class PageParts(parts.PartsTest):
    def test_timeline_shows_the_schedule_on_one_clock(self):
        page = self.job()
        cells = self.cells(page)
        for stage in range(STAGES):
            for micro in range(MICRO):
                self.assertIn((stage, "forward", micro), cells)
                self.assertIn((stage, "backward", micro), cells)
        # The fake's clocks are off by up to 9 ms, more than a forward: the diagonal holds only with offsets applied.
        for stage in range(1, STAGES):
            before, width = cells[stage - 1, "forward", 0]
            self.assertGreaterEqual(cells[stage, "forward", 0][0] + 1.5, before + width)
            before, width = cells[stage, "backward", 0]
            self.assertGreaterEqual(cells[stage - 1, "backward", 0][0] + 1.5, before + width)
        labels = page.locator('[data-gantt="measured"] .gantt-cell[data-phase="forward"] text').all_text_contents()
        self.assertEqual(labels[:MICRO], [f"F{micro}" for micro in range(MICRO)])

    def test_held_out_sentences_are_shown_with_their_translations(self):
        spec = self.fake.job()["spec"]
        self.fake.says = {"spec": {**spec, "evaluation": {"every_steps": "1", "translate": {"beam": "5"}}}}
        self.fake.shown = lambda step: {"step": str(step), "translations": [
            {"source": "A dog runs.", "reference": "Ein Hund rennt.", "translation": "Ein Hund läuft."},
            {"number": "1", "source": "<b>Two</b>", "reference": "Zwei", "translation": ""}]}
        page = self.job()
        page.wait_for_selector('[data-section="translations"] tbody th')
        page.get_by_role("link", name="Sentences").wait_for()
        self.assertFalse(page.locator('[data-section="pictures"]').is_visible())
        cells = page.locator('[data-section="translations"] tbody tr > *').all_inner_texts()
        self.assertEqual(cells, ["A dog runs.", "Ein Hund läuft.", "Ein Hund rennt.", "<b>Two</b>", "", "Zwei"])
        self.assertRegex(page.locator('[data-part="translations-note"]').inner_text(), r"^after step \d+$")
        self.assertRegex(page.locator('[data-part="signatures"]').inner_text(), r"^BLEU nrefs:1\|.*, chrF2 nrefs:1\|")

    # 24 pictures of 4 x 4 pixels, of which the network takes every sixth one for another class.
    def held_out(self, step):
        answers = [{"label": i % 3, "answer": (i + (i % 6 == 5)) % 3, "probability": 0.5 + i / 60, "label_name": "ape bee cow".split()[i % 3],
                    "answer_name": "ape bee cow".split()[(i + (i % 6 == 5)) % 3]} for i in range(24)]
        del answers[23]["probability"]
        files = [base64.b64encode(made_pictures.png(4, 4, 3, [10 * i, 100, 200] * 16)).decode() for i in range(24)]
        return {"step": str(step), "pictures": answers, "files": files}

    def test_held_out_pictures_are_shown_with_what_they_are_taken_for(self):
        page = self.job()
        self.assertFalse(page.locator('[data-section="pictures"]').is_visible())
        self.assertFalse(page.get_by_role("link", name="Pictures").is_visible(), "a text has none")
        page.close()  # it would ask as well
        spec = self.fake.job()["spec"]
        self.fake.says = {"spec": {**spec, "model": {"resnet": {"depth": "18", "image": ["4", "4", "3"], "classes": "3"}},
                                   "data": {"image_folder": {"train": "/data/animals", "test": ""}}}}
        self.fake.shown = self.held_out
        page = self.job()
        page.wait_for_selector('[data-section="pictures"] .shown')
        page.get_by_role("link", name="Pictures").wait_for()
        self.assertRegex(page.locator('[data-part="pictures-note"]').inner_text(), r"^20 of the first 24 right, after step \d+$")
        shown = page.locator(".shown")
        self.assertEqual(shown.count(), 24)
        self.assertEqual(page.locator(".shown.wrong").count(), 4)
        self.assertEqual(shown.nth(1).locator(".shown-mark").inner_text(), "✓")
        self.assertEqual(shown.nth(5).locator(".shown-mark").inner_text(), "✗")
        self.assertEqual(shown.nth(5).get_attribute("title"), "Picture 5: cow, taken for ape, 58 %")
        self.assertEqual(shown.nth(5).locator(".shown-label").inner_text(), "58 %, is cow")
        self.assertIn("not a number", shown.nth(23).get_attribute("title"))
        page.wait_for_function("() => [...document.querySelectorAll('.shown-picture')].every(canvas => canvas.width === 4)")
        pixel = page.evaluate("() => [...document.querySelectorAll('.shown-picture')[7].getContext('2d').getImageData(1, 1, 1, 1).data]")
        self.assertEqual(pixel, [70, 100, 200, 255])
        note = page.locator('[data-part="pictures-note"]').inner_text()
        page.wait_for_function("note => document.querySelector('[data-part=pictures-note]').textContent !== note", arg=note)
        asked = [path for path in self.fake.requests if "/pictures?" in path]
        self.assertEqual([path for path in asked if path.endswith("files=1")], asked[:1], "pictures do not change")

    def test_ideal_schedule_has_the_ideal_bubble(self):
        page = self.job()
        for stages, micro in ((2, 4), (4, 8), (3, 2)):
            bubble = page.evaluate("""async ([stages, micro]) => {
              const {idealStep} = await import('/assets/ideal.js');
              const {phaseOf} = await import('/assets/phases.js');
              const lanes = [...Array(stages).keys()].map(stage => ({stage, name: '', sends: [], receives: [], cells:
                ['forward', 'backward'].flatMap((name, half) => [...Array(micro).keys()].map(microBatch => ({name, phase: phaseOf(name), microBatch,
                  begin: 100 * half + 10 * microBatch, end: 100 * half + 10 * microBatch + (half ? 6 : 3)})))}));
              return idealStep({step: 1, lanes}).bubble;
            }""", [stages, micro])
            self.assertAlmostEqual(bubble, (stages - 1) / (micro + stages - 1), places=9)

    # Two stages and micro-batches of zero_bubble: forward 4, input gradient 6, weight gradient 2. By one mean of both
    # halves a part would take 4, and the step 32.
    def test_ideal_of_a_backward_in_two_parts_keeps_the_length_of_each(self):
        page = self.job()
        length = page.evaluate("""async () => {
          const {idealStep} = await import('/assets/ideal.js');
          const {phaseOf} = await import('/assets/phases.js');
          const piece = (name, microBatch, length, at) => ({name, phase: phaseOf(name), microBatch, begin: at, end: at + length});
          const order = [['forward', 0, 4], ['forward', 1, 4], ['backward', 0, 6], ['backward', 1, 6], ['backward', 0, 2], ['backward', 1, 2]];
          const last = [['forward', 0, 4], ['backward', 0, 6], ['forward', 1, 4], ['backward', 1, 6], ['backward', 0, 2], ['backward', 1, 2]];
          const lane = (stage, list) => ({stage, name: '', sends: [], receives: [], cells: list.map(([name, m, length], at) => piece(name, m, length, 10 * at))});
          return idealStep({step: 1, lanes: [lane(0, order), lane(1, last)]}).length;
        }""")
        self.assertEqual(length, 34)

    def test_zoom_keeps_the_step_and_pause_stops_it(self):
        page = self.job()
        before = self.cells(page)[0, "forward", 0][1]
        page.get_by_role("button", name="Zoom in").click()
        self.assertEqual(page.locator(".gantt-bar .button").first.inner_text(), "Resume")
        shown = page.locator(".gantt-step").inner_text()
        self.assertGreater(max(width for key, (_, width) in self.cells(page).items() if key[1] == "forward"), before * 1.3)
        page.wait_for_function("before => Number(document.querySelector('[data-field=step]').dataset.value) > before + 12",
                               arg=int(self.field(page, "step").get_attribute("data-value")))
        self.assertEqual(page.locator(".gantt-step").inner_text(), shown)
        page.get_by_role("button", name="Resume").click()
        page.wait_for_function("shown => document.querySelector('.gantt-step').textContent !== shown", arg=shown)

    def test_cells_are_reached_and_read_by_keyboard(self):
        page = self.job()
        self.cells(page)
        page.locator('[data-gantt="measured"] .gantt-cell[tabindex="0"]').focus()
        page.keyboard.press("ArrowRight")
        self.assertIn("Stage 0: Forward, micro-batch 1", page.evaluate("document.activeElement.getAttribute('aria-label')"))
        self.assertIn("micro-batch 1", page.locator(".tip.shown").inner_text())
        page.keyboard.press("ArrowDown")
        self.assertIn("Stage 1:", page.evaluate("document.activeElement.getAttribute('aria-label')"))

    def test_shares_of_time_add_up_to_exactly_100_percent(self):
        page = self.job()
        page.wait_for_selector(".strip-bar rect")
        sums = page.eval_on_selector_all(".strip-bar", "bars => bars.map(b => [...b.querySelectorAll('rect')].reduce((s, r) => s + +r.dataset.share, 0))")
        self.assertEqual(sums, [1000] * STAGES)
        page.locator('[data-section="stages"] summary').click()
        self.assertEqual(page.locator('[data-part="strip-table"] tbody td:last-child').all_inner_texts(), ["100.0 %"] * STAGES)

    def test_an_ended_job_does_not_show_what_its_servers_do_now(self):
        page = self.job()
        page.wait_for_selector('[data-field="sent-0-1"]')
        self.fake.finish("SUCCEEDED")
        page.wait_for_selector('[data-field="state"][data-state="SUCCEEDED"]')
        page.wait_for_selector('[data-field="sent-0-1"]', state="detached")
        self.assertEqual(page.locator('[data-part="strip-note"]').inner_text(), "last step")
        self.assertFalse(page.get_by_role("button", name="Cancel job…").is_visible())

    def test_without_a_stream_it_polls_and_comes_back(self):
        self.fake.streams = False
        page = self.open(f"{self.fake.url}/#/jobs/{self.fake.job_id}", expected_problems=["503", "MIME"])
        page.wait_for_selector('#connection[data-state="polling"]')
        step = int(self.field(page, "step").get_attribute("data-value"))
        page.wait_for_function("step => Number(document.querySelector('[data-field=step]').dataset.value) > step", arg=step)
        self.fake.streams = True
        page.wait_for_selector('#connection[data-state="live"]')

    def test_a_lost_stage_and_a_lost_coordinator(self):
        page = self.job(expected_problems=browser.SERVER_GONE)
        page.wait_for_selector('[data-field="stage-state"][data-value="busy"]')
        self.fake.lose(2)
        page.wait_for_selector('[data-field="stage-state"][data-value="lost"]', timeout=3000)
        self.assertIn("Stage server stage-2 is lost", page.locator('[data-part="alerts"]').inner_text())
        page.wait_for_function("() => document.querySelector('#announcer').textContent.includes('stage-2 is lost')")
        self.fake.__exit__()
        page.wait_for_selector('#connection[data-state="lost"]')
        self.assertIn("stagecoach ui FOLDER", page.locator('[data-part="alerts"]').inner_text())
        self._cleanups = [c for c in self._cleanups if c[0] != self.fake.__exit__]

    def test_cancel_asks_first(self):
        page = self.job()
        button = page.get_by_role("button", name="Cancel job…")
        button.focus()
        page.keyboard.press("Enter")
        self.assertTrue(page.locator("#cancel-dialog").is_visible())
        self.assertEqual(page.evaluate("document.activeElement.id"), "cancel-keep")
        page.keyboard.press("Escape")
        self.assertFalse(page.locator("#cancel-dialog").is_visible())
        self.assertEqual(page.evaluate("document.activeElement.dataset.part"), "cancel")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Keep running").click()
        self.assertFalse(page.locator("#cancel-dialog").is_visible())
        self.assertIsNone(self.fake.ended)
        button.click()
        self.assert_accessible(page)
        page.locator("#cancel-confirm").click()
        page.wait_for_selector('[data-field="state"][data-state="CANCELLED"]')
        self.assertFalse(button.is_visible())

    def test_keyboard_order_begins_with_the_skip_link(self):
        page = self.job()
        page.wait_for_selector(".strip-bar")
        seen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("(e => e.id || e.dataset.part || e.getAttribute('aria-label') || e.textContent.trim() || e.name)(document.activeElement)"))
        self.assertEqual(seen[0], "skip")
        wanted = ["theme", "cancel", "Timeline", "trace-link", "Pause", "Step", "Zoom in", "links", "fleet", "events", "logs"]
        places = [next((i for i, name in enumerate(seen) if name == want), None) for want in wanted]
        self.assertNotIn(None, places, dict(zip(wanted, places)))
        self.assertEqual(places, sorted(places), seen)

    def test_accessible_in_both_themes_and_on_a_phone(self):
        for scheme, width in (("light", 1360), ("dark", 1360), ("light", 360), ("dark", 360)):
            page = self.job(scheme=scheme, width=width, height=800)
            self.cells(page)
            with self.subTest(view="job", scheme=scheme, width=width):
                self.assert_accessible(page)
                self.assert_no_sideways_scroll(page)
            page.evaluate("location.hash = '#/'")
            page.wait_for_selector('[data-part="jobs"] a')
            with self.subTest(view="jobs", scheme=scheme, width=width):
                self.assert_accessible(page)
                self.assert_no_sideways_scroll(page)

    def test_job_list_follows_the_steps(self):
        page = self.open(f"{self.fake.url}/")
        page.wait_for_selector('[data-part="jobs"] [data-field="step"]')
        step = int(page.locator('[data-part="jobs"] [data-field="step"]').get_attribute("data-value"))
        page.wait_for_function("step => Number(document.querySelector('[data-part=jobs] [data-field=step]').dataset.value) > step", arg=step)

    def test_a_long_job_list_that_comes_late_does_not_replace_a_newer_one(self):
        page = self.job()
        shown = page.evaluate("""async () => {
          const {Live} = await import('/assets/live.js');
          const shown = [], store = {jobs: null, setJobs(jobs) { shown.push(jobs.length); this.jobs = jobs; }};
          const live = new Live(store), fetched = window.fetch;
          let answer;
          window.fetch = () => new Promise((take) => { answer = take; });
          const old = live.takeJobs(0, {jobs: [{id: 'a'}], next_page_token: 'more'});
          live.takeJobs(0, {jobs: [{id: 'a'}, {id: 'b'}, {id: 'c'}]});
          answer(new Response(JSON.stringify({jobs: [{id: 'z'}]})));
          await old;
          window.fetch = fetched;
          return shown;
        }""")
        self.assertEqual(shown, [3])

    def test_theme_is_kept(self):
        page = self.job()
        dark = "getComputedStyle(document.documentElement).colorScheme"
        button = page.locator("#theme")
        button.click()
        button.click()
        self.assertEqual((button.inner_text(), page.evaluate(dark)), ("Dark", "dark"))
        page.reload()
        self.assertEqual(page.evaluate(dark), "dark")

    def test_no_motion_where_it_is_not_wanted(self):
        page = self.job(reduced_motion="reduce")
        self.assertEqual(page.evaluate("document.getAnimations().length"), 0)

    def test_unknown_job_is_named(self):
        page = self.open(f"{self.fake.url}/#/jobs/nobody", expected_problems=["404"])
        page.wait_for_function("() => document.querySelector('[data-part=subtitle]').textContent.includes('NOT_FOUND')")

    def test_text_from_the_api_is_never_markup(self):
        self.fake.logs = lambda stage: {"lines": [{"number": "1", "unix_seconds": 1, "level": "info", "source": "coordinator",
                                                   "message": "<img src=x onerror=alert(1)>"}], "unreachable": []}
        page = self.job()
        # Lines are asked for only where they are seen.
        page.evaluate("document.querySelector('[data-part=logs]').scrollIntoView()")
        page.wait_for_selector(".lines li")
        self.assertEqual(page.locator(".lines .log-text").inner_text(), "<img src=x onerror=alert(1)>")
        self.assertEqual(page.locator(".lines img").count(), 0)

    def test_long_curves_keep_their_spikes(self):
        page = self.job()
        count, top = page.evaluate("""async () => {
          const {downsample} = await import('/assets/sample.js');
          const points = [...Array(50000).keys()].map(x => ({x, y: x === 31234 ? 99 : Math.sin(x)}));
          const few = downsample(points, 2000);
          return [few.length, Math.max(...few.map(p => p.y))];
        }""")
        self.assertLessEqual(count, 2002)
        self.assertEqual(top, 99)

    def test_a_step_repeated_after_a_recovery_replaces_the_first_try(self):
        page = self.job()
        steps = page.evaluate("""async () => {
          const {Series} = await import('/assets/series.js');
          const series = new Series();
          const record = (number, step) => ({number: String(number), unix_seconds: number, step: String(step), step_done: {loss: number}});
          series.add([record(1, 1), record(2, 2), record(3, 3), record(4, 2), record(5, 3), record(5, 3)]);
          return series.steps.map(s => [s.step, s.loss]);
        }""")
        self.assertEqual(steps, [[1, 1], [2, 4], [3, 5]])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
