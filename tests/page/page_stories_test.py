"""Stories: what the page said of a job that was not simply running, each as a user saw it."""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/bin").resolve().parent
browser.ensure(BUILD)

import unittest

import parts
from fake_coordinator import MICRO, TARGET_STEPS, FakeCoordinator

NEVER = "–"


class PageStories(parts.PartsTest):
    def part(self, page, name):
        return page.locator(f'[data-part="{name}"]').first

    def hint(self, page, name):
        return page.locator(f'[data-hint="{name}"]').inner_text()

    def tile(self, page, name):
        return page.locator(f'.tile [data-field="{name}"]').inner_text()

    def wait_for_text(self, page, part, text):
        page.wait_for_function("([part, text]) => document.querySelector(`[data-part=\"${part}\"]`).textContent.includes(text)", arg=[part, text])

    # Symptom: while a job of four stages waited for a lost one, the header said K = 3, stages 2 and 3 were called
    # 1 and 2, and the time left went on. Cause: places were counted off the list, the time left off the last steps.
    def test_while_a_stage_is_lost_the_others_keep_their_places_and_no_time_is_left(self):
        page = self.job()
        page.wait_for_selector('.tile [data-field="eta"][data-value]')
        self.fake.recover(1)
        page.wait_for_selector('[data-field="state"][data-state="recovering"]')
        self.assertIn("K = 4 stages, 1 lost", self.part(page, "subtitle").inner_text())
        for where in ("strip", "memory"):
            self.assertEqual(page.locator(f'[data-part="{where}"] strong').all_inner_texts(), ["Stage 0", "Stage 2", "Stage 3"], where)
        self.assertEqual(page.locator('[data-part="log-controls"] option').all_inner_texts()[1:],
                         ["Stage 0 (stage-0)", "Stage 2 (stage-2)", "Stage 3 (stage-3)"])
        self.assertEqual((self.tile(page, "eta"), self.hint(page, "eta")), (NEVER, "while it recovers"))
        self.assertEqual(self.hint(page, "tokens_per_second"), "before the recovery")
        self.assertEqual(page.locator('[data-field="sent-0-1"], [data-field="sent-0-2"]').count(), 0)
        page.wait_for_selector('[data-field="sent-2-3"]')

    # Symptom: behind a damaged record of the journal the curves stood still, and nothing said why.
    def test_a_history_that_cannot_be_read_on_is_said(self):
        why = "job fake-gpipe: its history cannot be read on from here"
        page = self.job()
        page.wait_for_selector('.tile [data-field="eta"][data-value]')
        self.fake.unreadable = why
        self.wait_for_text(page, "alerts", why)
        self.fake.unreadable = ""
        page.wait_for_function("why => !document.querySelector('[data-part=alerts]').textContent.includes(why)", arg=why)

    # Symptom: after the recovery with three stages the time left was a mean over both pipelines and the wait between.
    def test_with_fewer_stages_the_header_and_the_time_left_are_those_of_the_new_pipeline(self):
        page = self.job()
        page.wait_for_selector('.tile [data-field="eta"][data-value]')
        self.fake.recover(1)
        page.wait_for_selector('[data-field="state"][data-state="recovering"]')
        self.fake.go_on()
        self.wait_for_text(page, "subtitle", "K = 3 stages of the 4 asked for")
        self.assertEqual(page.locator('[data-part="strip"] strong').all_inner_texts(), ["Stage 0", "Stage 1", "Stage 2"])
        first = self.fake.placements[-1]["first"]
        page.wait_for_function("first => Number(document.querySelector('[data-field=step]').dataset.value) > first + 3", arg=first)
        left, step = page.evaluate("['eta', 'step'].map(name => Number(document.querySelector(`[data-field=${name}]`).dataset.value))")
        self.assertAlmostEqual(left, (TARGET_STEPS - step) * self.fake.length / 1e3, delta=0.01 * left)
        self.assertEqual(self.hint(page, "tokens_per_second"), "last step")
        page.locator('[data-part="gantt"]').scroll_into_view_if_needed()
        page.wait_for_function("first => Number(document.querySelector('.gantt-step').textContent) > first", arg=first)
        self.assertEqual(page.locator('[data-gantt="measured"] .gantt-lane').count(), 3)

    # Symptom: steps of the four stages were drawn as if three had done them. Cause: the rings of stages that stayed
    # hold them, and a step counted as complete if every stage of now has its part.
    def test_steps_of_the_old_pipeline_are_not_drawn_as_the_new_ones(self):
        page = self.job()
        self.cells(page)
        page.locator('[data-part="gantt"]').scroll_into_view_if_needed()  # it asks for traces only where it is seen
        self.fake.recover(1)
        page.wait_for_selector('[data-field="state"][data-state="recovering"]')
        self.fake.go_on(steps=False)
        self.wait_for_text(page, "subtitle", "K = 3 stages")
        self.wait_for_text(page, "gantt", "Waiting for the first complete step after the recovery.")
        self.assertEqual(page.locator(".gantt-cell").count(), 0)

    def test_a_stage_that_is_placed_but_not_loaded_has_no_layers_yet(self):
        stages = self.fake.job()["stages"]
        self.fake.says = {"detail": "planned", "stages": [{**stage, "first_layer": "0", "last_layer": "0"} for stage in stages]}
        page = self.job()
        page.wait_for_selector('[data-part="strip"] strong')
        self.assertEqual(page.locator(".strip-label .note").all_inner_texts()[:2], ["stage-0", "stage-1"])
        self.assertEqual((self.tile(page, "eta"), self.hint(page, "eta")), (NEVER, "is being placed"))

    def test_a_finished_job_shows_its_weights_and_their_digest(self):
        page = self.job()
        self.assertFalse(self.part(page, "result").is_visible())
        self.fake.says = {"weights_folder": "/state/exports/fake-gpipe", "weights_digest": "sha256:" + "5a" * 32}
        self.fake.finish("SUCCEEDED")
        page.wait_for_selector('[data-field="weights_folder"]')
        self.assertEqual(self.field(page, "weights_folder").inner_text(), "/state/exports/fake-gpipe")
        self.assertEqual(self.field(page, "weights_digest").inner_text(), "sha256:" + "5a" * 32)

    def settings(self, page):
        page.wait_for_selector("[data-setting]")
        return {row.get_attribute("data-setting"): row.locator("dd").inner_text().replace("\n", "; ") for row in page.locator("[data-setting]").all()}

    def test_the_job_panel_shows_what_was_asked_for(self):
        self.assertEqual(self.settings(self.job()), {
            "model": "gpt, 16 layers × 256; heads 8, context 256, vocabulary 128, dropout 0.1",
            "data": "walden.txt; /data/books/walden.txt",
            "batch": "64 sequences; M = 8 micro-batches of 8, 16,384 tokens",
            "optimizer": "adamw; beta1 0.9, beta2 0.95, epsilon 1e−8, weight decay 0.1, "
                         "clip at norm 1",
            "learning_rate": "3e−3 cosine; warmup steps 100, final 3e−4",
            "pipeline": "gpipe, K = 4; rematerialize always, auto partition",
            "precision": "float32; seed 1",
            "saving": "every 200 steps; evaluation every 50 steps"})
        spec = copy.deepcopy(self.fake.job()["spec"])
        sgd = {"momentum": 0.9, "weight_decay": 0.0, "nesterov": True}
        spec["training"].update(optimizer={"sgd": sgd}, gradient_clip_norm=0,
                                learning_rate={"constant": {"peak": 0.1, "warmup_steps": "0"}})
        spec["pipeline"].update(schedule="SCHEDULE_KIND_ONE_FORWARD_ONE_BACKWARD", partition={"rule": "PARTITION_RULE_AUTO", "cuts": ["5", "9", "14"]})
        spec.update(precision="PRECISION_BFLOAT16", resume={"job": "before", "step": "40"}, checkpoint={"every_steps": "0"}, evaluation={})
        self.fake.says = {"spec": spec}
        shown = self.settings(self.job())
        self.assertEqual(shown["optimizer"], "sgd; momentum 0.9, nesterov, no clipping")
        self.assertEqual(shown["learning_rate"], "0.1 constant")
        self.assertEqual(shown["pipeline"],
                         "one forward one backward, K = 4; rematerialize always, cuts 5, 9, 14")
        self.assertEqual(shown["precision"], "bfloat16; seed 1, from before, step 40")
        self.assertEqual(shown["saving"], "every 3 minutes or more; no evaluation")

    # Symptom: the panel said "groups 32" of a network with batch normalization, and of data in folders not where they are.
    def test_the_job_panel_shows_of_pictures_what_holds(self):
        spec = copy.deepcopy(self.fake.job()["spec"])
        resnet = {"image": ["48", "48", "3"], "classes": "10", "depth": "20", "norm": "RESNET_NORM_BATCH", "groups": "32"}
        spec.update(model={"resnet": resnet}, data={"image_folder": {"train": "/data/animals/train", "test": "/data/animals/test"}})
        self.fake.says = {"spec": spec}
        self.fake.shown = lambda step: {"step": str(step), "pictures": [], "files": []}
        shown = self.settings(self.job())
        self.assertEqual(shown["data"], "image folder; /data/animals/train")
        self.assertNotIn("groups", shown["model"])
        resnet["norm"] = "RESNET_NORM_GROUP"
        self.assertIn("groups 32", self.settings(self.job())["model"])
        self.assertIn("image [48, 48, 3]", self.settings(self.job())["model"])

    # Symptom: the timeline never came where the first stage trains nothing (examples/fine-tune.yaml).
    def test_a_stage_that_trains_nothing_has_its_lane(self):
        self.fake.frozen = 1
        cells = self.cells(self.job())
        for micro in range(MICRO):
            self.assertIn((0, "forward", micro), cells)
            self.assertNotIn((0, "backward", micro), cells)
            self.assertIn((1, "backward", micro), cells)

    # Symptom: an ended job that nobody tells of any more had used "0 B peak", and an empty last minute.
    def test_an_ended_job_that_nobody_tells_of_shows_no_zeros(self):
        self.fake.finish("SUCCEEDED")
        self.fake.says = {"stages": [{"name": f"stage-{k}", "stage": k, "first_layer": str(5 * k), "last_layer": str(5 * k + 5)} for k in range(4)]}
        page = self.job()
        for where in ("strip", "memory"):
            self.wait_for_text(page, where, "The job has ended: its stages work for others or are gone.")
        self.assertFalse(page.get_by_text("Last minute").is_visible())

    # Symptom: beside the ideal of zero_bubble stood (K−1)/(M+K−1), which is GPipe's and 1F1B's.
    def test_the_schedule_s_ideal_bubble_is_the_server_s(self):
        self.fake.says = {"bubble_ideal": 0.0625}
        page = self.job()
        page.wait_for_function("() => document.querySelector('[data-section=timeline]').textContent.includes('forwards and backwards only: 6.3 %')")

    # Symptom: the page of an ended job said "Waiting for the first complete step" for ever.
    def test_a_list_of_many_jobs_is_read_page_by_page(self):
        for number in range(6):
            self.fake.others[f"older-{number}"] = ({"id": f"older-{number}", "state": "JOB_STATE_SUCCEEDED", "detail": "succeeded",
                                                    "submitted_unix_seconds": 1e9 - number, "finished_unix_seconds": 1e9,
                                                    "total_steps": "10", "step": "10"}, [])
        self.fake.most_listed = 3
        page = self.open(f"{self.fake.url}/")
        page.wait_for_selector('#connection[data-state="live"]')  # also what the stream tells is a page only
        page.wait_for_function("document.querySelectorAll('[data-part=jobs] [data-field=id]').length === 7")
        self.assertEqual(page.locator('[data-part="jobs-note"]').inner_text(), "7 in all, 1 running")
        asked = [path for path in self.fake.requests if path.startswith("/api/v1/jobs?")]
        self.assertTrue(any("after=3" in path for path in asked) and any("after=6" in path for path in asked), asked)

    def test_an_ended_job_without_a_trace_says_so(self):
        self.fake.untraced = True
        self.fake.finish("SUCCEEDED")
        page = self.job()
        self.wait_for_text(page, "gantt", "No timeline: stages keep the trace of their last steps only while they run")
        self.assertNotIn("cannot be reached", self.part(page, "gantt").inner_text())
        for name in ("Pause", "Zoom in", "Download trace"):
            self.assertFalse(page.get_by_text(name, exact=True).or_(page.get_by_label(name, exact=True)).first.is_visible(), name)

    # As `stagecoach ui` opens the folder of an old run: the coordinator knows the job and no stage is there.
    def test_the_history_of_a_run_says_what_is_not_kept(self):
        self.fake.untraced = True
        self.fake.finish("SUCCEEDED")
        self.fake.says = {"stages": []}
        page = self.job()
        for where in ("strip", "memory"):
            self.wait_for_text(page, where, "The job has ended: its stages work for others or are gone.")
        self.assertIn("K = 4 stages,", self.part(page, "subtitle").inner_text())

    def test_an_interrupted_job_is_held_and_has_no_time_left(self):
        self.fake.untraced = True
        self.fake.says = {"state": "JOB_STATE_PENDING", "detail": "held", "stages": [], "message": "interrupted; it goes on when it is resumed"}
        page = self.job()
        page.wait_for_selector('[data-field="state"][data-state="HELD"]')
        self.assertEqual(self.field(page, "state").inner_text(), "HELD")
        self.assertEqual((self.tile(page, "eta"), self.hint(page, "eta")), (NEVER, "interrupted"))
        self.wait_for_text(page, "gantt", "No timeline: the job was interrupted")
        self.wait_for_text(page, "strip", "The job was interrupted: no stage works for it.")
        page.evaluate("location.hash = '#/'")
        page.wait_for_selector('[data-part="jobs"] .badge[data-state="HELD"]')

    # Symptom: a job whose data file was missing had 0.0 % bubble, 0 tokens/s and steps of 0 s.
    def test_a_job_that_failed_before_its_first_step_shows_no_measurements(self):
        self.serve(FakeCoordinator(self.STAGES, steps_done=0))
        self.fake.finish("FAILED")
        self.fake.untraced = True
        self.fake.says = {"step": "0", "loss": None, "evaluation_loss": None, "tokens_per_second": 0.0, "step_seconds": 0.0, "bubble": 0.0,
                          "bubble_ideal": 0.0, "forecast_step_seconds": 0.0, "message": "NOT_FOUND: no such file"}
        page = self.job()
        page.wait_for_selector('[data-field="state"][data-state="FAILED"]')
        for name in ("loss", "evaluation_loss", "tokens_per_second", "step_seconds", "bubble"):
            self.assertEqual(self.tile(page, name), NEVER, name)
            self.assertIn(self.hint(page, name), ("", "no step yet"), name)
        self.wait_for_text(page, "gantt", "The job ended before its first step.")
        page.evaluate("location.hash = '#/'")
        page.wait_for_selector('[data-part="jobs"] a')
        row = page.locator('[data-part="jobs"] tbody tr').first.locator("td").all_inner_texts()
        self.assertEqual(row[3:7], [NEVER] * 4)

    # Symptom: a step "planned 222 ms", at a rate that nobody had measured, stood beside 428 ms.
    def test_a_planned_time_says_where_it_comes_from(self):
        self.serve(FakeCoordinator(self.STAGES))
        self.fake.says = {"step_seconds": 0.428, "forecast_step_seconds": 0.222, "forecast_rate_source": "RATE_SOURCE_ASSUMED",
                          "forecast_flops_per_second": 150e9}
        page = self.job()
        page.wait_for_selector('.tile [data-field="step_seconds"][data-value]')
        self.assertEqual(self.hint(page, "step_seconds"), "planned 222 ms at an assumed 150 GFLOP/s")
        self.fake.says = {**self.fake.says, "forecast_rate_source": "RATE_SOURCE_PROFILE", "forecast_flops_per_second": 0.0}
        page.reload()
        # Until the steps are there the page may say "before the recovery".
        hint = page.locator('[data-hint="step_seconds"]').filter(has_text="planned 222 ms")
        hint.wait_for()
        self.assertEqual(hint.inner_text(), "planned 222 ms from a profile")

    # Symptom: a job on pictures had tokens a second, and a U-Net's were its pixels.
    def test_pictures_are_counted_as_pictures(self):
        self.serve(FakeCoordinator(self.STAGES))
        self.fake.says = {"summary": {"name": "cells", "model": "unet", "data": "mask_folder", "batch_size": "64", "micro_batches": "8"},
                          "step_seconds": 0.14}
        page = self.job()
        page.wait_for_function("document.querySelector('.tile [data-field=\"tokens_per_second\"]').innerText === '457 pictures/s'")
        page.evaluate("location.hash = '#/'")
        page.wait_for_selector('[data-part="jobs"] a')
        self.assertIn("457 pictures/s", page.locator('[data-part="jobs"] tbody tr').first.locator("td").all_inner_texts())

    # Symptom: one stage, which waits for nobody, was shown a bubble of 7 %: the time between its layers.
    def test_one_stage_has_no_bubble(self):
        self.serve(FakeCoordinator(1))
        page = self.job()
        self.cells(page)
        self.assertEqual((self.tile(page, "bubble"), self.hint(page, "bubble")), (NEVER, "one stage: none"))
        self.assertEqual(page.locator('[data-curve="bubble"] .note').inner_text(), "one stage: none")
        self.assertIn("K = 1 stage,", self.part(page, "subtitle").inner_text())
        self.assertNotIn("bubble", page.locator('[data-section="timeline"] .card-head').inner_text())
        page.evaluate("location.hash = '#/'")
        page.wait_for_selector('[data-part="jobs"] a')
        self.assertEqual(page.locator('[data-part="jobs"] tbody td').all_inner_texts()[6], NEVER)


class Measures(parts.PartsTest):
    """What a network measures beside its loss."""

    def test_accuracy_has_a_curve_and_stands_beside_the_held_out_loss(self):
        measured = [{"name": "accuracy", "value": 0.9125}, {"name": "top_5", "value": 0.995},
                    {"name": "average_loss", "value": 2.375}]
        for step in (100, 150):
            self.fake.happened.append((step, self.fake.time_of(step), {"evaluation": {"loss": 2.5, "measures": measured}}))
        self.fake.says = {"evaluation_measures": measured}
        page = self.job()
        page.wait_for_selector('[data-curve="measure accuracy"]')
        drawn = page.evaluate("""Chart.getChart(document.querySelector('[data-curve="measure top_5"] canvas'))
            .data.datasets.find(set => set.label === 'evaluation').data.map(point => [point.x, point.y])""")
        self.assertEqual([point for point in drawn if point[1] is not None], [[100, 0.995], [150, 0.995]])
        self.assertIn("accuracy 91.3 % · top 5 99.5 % · average loss 2.3750", page.locator('[data-hint="evaluation_loss"]').inner_text())

    def test_padding_stands_beside_the_throughput_and_has_no_curve(self):
        measured = [{"name": "accuracy", "value": 0.5}, {"name": "padding", "value": 0.125}]
        self.fake.happened.append((100, self.fake.time_of(100), {"step_done": {**self.fake.step_record(100), "measures": measured}}))
        self.fake.says = {"measures": measured, "summary": {"name": "pairs", "model": "transformer", "data": "parallel_text", "batch_size": "64"}}
        page = self.job()
        page.wait_for_selector('[data-curve="measure accuracy"]')
        self.assertEqual(page.locator('[data-curve="measure padding"]').count(), 0)
        self.assertRegex(page.locator('[data-hint="tokens_per_second"]').inner_text(), r"^last step · 12\.5 % padding$")
        self.assertRegex(page.locator('.tile [data-field="tokens_per_second"]').inner_text(), r" tokens/s$")
        for data in ("json_lines", "token_file"):
            self.fake.says["summary"]["data"] = data
            page.reload()
            page.wait_for_selector('.tile [data-field="tokens_per_second"][data-value]')
            self.assertRegex(page.locator('.tile [data-field="tokens_per_second"]').inner_text(), r" tokens/s$", data)

    def test_classes_stand_in_a_table_and_have_no_curves(self):
        measured = [{"name": "mean_iou", "value": 0.5}, {"name": "accuracy/0", "value": 0.75}, {"name": "accuracy/10", "value": 0.25},
                    {"name": "iou/0", "value": 0.625}, {"name": "iou/2", "value": 0}]
        self.fake.happened.append((100, self.fake.time_of(100), {"evaluation": {"loss": 2.5, "measures": measured}}))
        self.fake.says = {"evaluation_measures": measured}
        page = self.job()
        page.wait_for_selector('[data-curve="measure mean_iou"]')
        self.assertEqual(page.locator('[data-curve="measure accuracy/0"]').count(), 0)
        self.assertIn("mean IoU 50.0 %", page.locator('[data-hint="evaluation_loss"]').inner_text())
        self.assertNotIn("75", page.locator('[data-hint="evaluation_loss"]').inner_text())
        page.locator('[data-part="classes"] summary').click()
        table = page.locator('[data-part="classes-table"] table')
        self.assertEqual(table.locator("thead th").all_inner_texts(), ["Class", "Accuracy", "IoU"])
        self.assertEqual([row.split() for row in table.locator("tbody tr").all_inner_texts()],
                         [["0", "75.0", "%", "62.5", "%"], ["2", "–", "0.0", "%"], ["10", "25.0", "%", "–"]])


class TwoRuns(parts.PartsTest):
    """Two jobs of one coordinator laid over each other."""

    OTHER_STEPS = 120

    def setUp(self):
        super().setUp()
        job = copy.deepcopy(self.fake.job())
        job.update(id="slower-rate", state="JOB_STATE_SUCCEEDED", detail="succeeded", step=str(self.OTHER_STEPS), loss=2.5,
                   finished_unix_seconds=self.fake.started)
        job["spec"]["training"]["learning_rate"] = {"constant": {"peak": 1e-3, "warmup_steps": "0"}}
        began = self.fake.started - 5000
        records = [{"state": {"state": "JOB_STATE_RUNNING", "detail": "running", "message": ""}, "step": "0"}]
        for step in range(1, self.OTHER_STEPS + 1):
            records.append({"step": str(step), "step_done": {**self.fake.step_record(step), "loss": 5 - step / 50}})
        records.append({"step": "100", "evaluation": {"loss": 3.25}})
        for number, record in enumerate(records, start=1):
            record.update(number=str(number), unix_seconds=began + number)
        self.fake.others = {"slower-rate": (job, records)}

    def lines(self, page, curve="loss"):
        """label -> [last x, last y, number of points] of what a chart draws."""
        return page.evaluate("""curve => Object.fromEntries(Chart.getChart(document.querySelector(`[data-curve="${curve}"] canvas`))
          .data.datasets.map(set => [set.label, [set.data[set.data.length - 1]?.x, set.data[set.data.length - 1]?.y, set.data.length]]))""", curve)

    def wait_for_other(self, page):
        page.wait_for_selector('[data-part="comparison"]:not([hidden])')

    def test_a_second_job_is_laid_over_the_curves(self):
        page = self.job()
        page.locator('[data-setting="model"]').wait_for()
        self.assertNotIn("slower-rate smoothed", self.lines(page))
        page.get_by_label("Compare with").select_option("slower-rate")
        self.wait_for_other(page)
        page.get_by_label("Smoothing").fill("0")
        lines = self.lines(page)
        self.assertEqual(lines["slower-rate loss"], [self.OTHER_STEPS, 5 - self.OTHER_STEPS / 50, self.OTHER_STEPS])
        self.assertEqual(lines["slower-rate evaluation"], [100, 3.25, 1])
        self.assertGreaterEqual(lines["fake-gpipe loss"][0], 600)
        self.assertIn("slower-rate tokens per second", self.lines(page, "tokens_per_second"))
        self.assertRegex(page.locator('[data-curve="loss"] .note').inner_text(), r"^\d\.\d{4} and 2\.6000$")
        differs = {row[0]: row[1:] for row in page.evaluate(
            "[...document.querySelectorAll('[data-part=comparison-table] tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")}
        self.assertEqual(differs["Learning rate"],
                         ["3e−3 cosine; warmup steps 100, final 3e−4", "1e−3 constant"])
        self.assertNotIn("Optimizer", differs)
        page.get_by_label("Compare with").select_option("")
        self.assertFalse(page.locator('[data-part="comparison"]').is_visible())
        self.assertNotIn("slower-rate loss", self.lines(page))

    def test_by_time_both_runs_begin_at_nought(self):
        page = self.job("/with/slower-rate")
        self.wait_for_other(page)
        page.get_by_label("Smoothing").fill("0")
        page.get_by_text("Time", exact=True).click()
        self.assertEqual(self.lines(page)["slower-rate loss"][0], self.OTHER_STEPS)

    def test_the_address_keeps_the_comparison(self):
        page = self.job()
        page.get_by_label("Compare with").select_option("slower-rate")
        self.wait_for_other(page)
        self.assertTrue(page.url.endswith("#/jobs/fake-gpipe/with/slower-rate"), page.url)
        page.reload()
        self.wait_for_other(page)
        self.assertEqual(page.get_by_label("Compare with").input_value(), "slower-rate")

    # Symptom: without /with/ in the address the page went on drawing the other run.
    def test_without_it_in_the_address_a_job_stands_alone_and_sections_keep_it(self):
        page = self.job("/with/slower-rate")
        self.wait_for_other(page)
        page.get_by_role("link", name="Timeline").click()
        page.wait_for_function("() => location.hash === '#/jobs/fake-gpipe/timeline/with/slower-rate'")
        self.assertTrue(page.locator('[data-part="comparison"]').is_visible(), "a section of the same page")
        page.reload()
        self.wait_for_other(page)
        page.evaluate("location.hash = '#/jobs/fake-gpipe'")
        page.wait_for_selector('[data-part="comparison"]', state="hidden")
        self.assertNotIn("slower-rate smoothed", self.lines(page))
        self.assertEqual(page.get_by_label("Compare with").input_value(), "")
        page.go_back()
        self.wait_for_other(page)

    def test_a_job_that_is_not_there_is_named(self):
        page = self.job("/with/nobody", expected_problems=["404"])
        page.get_by_text("nobody: no job nobody").wait_for()

    def test_accessible_with_two_runs(self):
        for scheme, width in (("light", 1360), ("dark", 360)):
            page = self.job("/with/slower-rate", scheme=scheme, width=width, height=800)
            self.wait_for_other(page)
            with self.subTest(scheme=scheme, width=width):
                self.assert_accessible(page)
                self.assert_no_sideways_scroll(page)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
