"""The example of translation: pairs out of manuals, a tokenizer made of them, and what training on them records.

The manuals here are made up: the package is not needed.
"""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock

import harness
import observe_test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "examples" / "translate_data.py"
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<page xmlns="http://projectmallard.org/1.0/" type="topic" id="one">
%s
</page>
"""


def write_page(folder, language, name, body):
    path = folder / language / "gnome-help" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE % body, encoding="utf-8")


def write_manuals(folder, texts=400):
    """Pages of ten texts each, of which German has all and French has those of every second page."""
    for number in range(texts // 10):
        numbers = [10 * number + i for i in range(10)]
        def body(text):
            return "\n".join(f"<p>{text(i)}</p>" for i in numbers)
        write_page(folder, "C", f"{number:03}.page", body(lambda i: f"Click <gui>Button {i}</gui> to open panel {i % 7}."))
        write_page(folder, "de", f"{number:03}.page", body(lambda i: f"Klicken Sie auf <gui>Knopf {i}</gui>, um Feld {i % 7} zu öffnen."))
        if number % 2 == 0:
            write_page(folder, "fr", f"{number:03}.page", body(lambda i: f"Cliquez sur <gui>Bouton {i}</gui> : volet {i % 7}."))


class TranslateData(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.help = self.folder / "help"

    def run_script(self, *arguments, **more):
        return subprocess.run([sys.executable, SCRIPT, self.folder / "out", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, **more)

    def converted(self, *arguments):
        """(output, pairs to train on, pairs to test with)"""
        result = self.run_script("--from", self.help, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        language = arguments[1] if arguments else "de"
        lines = {file: (self.folder / "out" / file).read_text(encoding="utf-8").splitlines()
                 for part in ("train", "test") for file in (f"{part}.en", f"{part}.{language}")}
        parts = []
        for part in ("train", "test"):
            self.assertEqual(len(lines[f"{part}.en"]), len(lines[f"{part}.{language}"]))
            parts.append(list(zip(lines[f"{part}.en"], lines[f"{part}.{language}"])))
        return result.stdout, *parts

    def test_texts_are_paired_by_their_place_in_a_page(self):
        write_page(self.help, "C", "one.page", """<info><desc>All  about
              <gui>Windows</gui>.</desc></info><title>Windows</title><comment><p>For writers: shorten this.</p></comment>
              <steps><item><p>Press <keyseq><key>Alt</key><key>F4</key></keyseq>.</p></item></steps><p/><p>GNOME</p>
              <!-- no text --><p>Windows</p><note><title>Windows</title><p>Save &amp; close.</p></note>""")
        write_page(self.help, "de", "one.page", """<info><desc>Alles über
              <gui>Fenster</gui>.</desc></info><title>Fenster</title>
              <steps><item><p><keyseq><key>Alt</key><key>F4</key></keyseq> drücken.</p></item></steps><p/><p>GNOME</p>
              <p>Die Fenster</p><note><title>Fenster</title><p>Speichern &amp; schließen.</p></note>""")
        write_page(self.help, "C", "two.page", "<p>One.</p><p>Two.</p>")
        write_page(self.help, "de", "two.page", "<p>Eins.</p>")
        write_page(self.help, "de", "three.page", "<p>Drei.</p>")
        output, train, test = self.converted()
        self.assertEqual(sorted(train + test), [("All about Windows.", "Alles über Fenster."),
                                                ("Press AltF4.", "AltF4 drücken."), ("Save & close.", "Speichern & schließen."),
                                                ("Windows", "Die Fenster"), ("Windows", "Fenster")])
        self.assertRegex(output, rf"^{len(train)} pairs to train on, {len(test)} to test with: .*\{{train,test\}}\.\{{en,de\}}\n")
        for count in ("1 empty", "1 not translated", "1 repeated", "1 pages with another number of texts",
                      "1 pages without an English one"):
            self.assertIn(count, output)

    # `translate` refused the held-out sentences: one had 138 tokens, and the example's network reads 96.
    def test_paragraphs_that_the_example_cannot_read_are_left_out(self):
        write_page(self.help, "C", "one.page", f"<p>{'a' * 240}</p><p>{'b' * 241}</p><p>Short.</p>")
        write_page(self.help, "de", "one.page", f"<p>{'A' * 240}</p><p>B.</p><p>{'C' * 241}</p>")
        output, train, test = self.converted()
        self.assertEqual(train + test, [("a" * 240, "A" * 240)])
        self.assertIn("2 of more than 240 characters", output)

    def test_a_text_is_held_out_in_every_language_or_in_none(self):
        write_manuals(self.help)
        for number in (3, 14, 15):  # another translation of a text that is there
            write_page(self.help, "C", f"again-{number}.page", f"<p>Click Button {number} to open panel {number % 7}.</p>")
            write_page(self.help, "de", f"again-{number}.page", f"<p>Öffnen Sie Feld {number % 7} mit Knopf {number}.</p>")
        sides = {}
        for language, pairs in (("de", 403), ("fr", 200)):
            output, train, test = self.converted("--language", language)
            self.assertEqual(len(train) + len(test), pairs, output)
            self.assertTrue(0.02 < len(test) / pairs < 0.1, output)
            for side, part in (("train", train), ("test", test)):
                for source, _ in part:
                    self.assertEqual(sides.setdefault(source, side), side, source)

    def test_a_language_that_is_not_there_is_refused_with_those_that_are(self):
        write_manuals(self.help, 20)
        for folder, language, names in ((self.help, "xx", "de, fr"), (self.help, "C", "de, fr"), (self.folder / "none", "de", "none")):
            result = self.run_script("--from", folder, "--language", language)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr.strip(), f"{folder}: has no pages of language '{language}' beside English ones in C; has {names}")
            self.assertFalse((self.folder / "out").exists())

    def test_the_package_is_fetched_where_it_is_not_installed(self):
        write_manuals(self.folder / "package" / "usr" / "share" / "help", 40)
        programs = self.folder / "programs"
        programs.mkdir()
        for name, script in (("apt-get", '[ "$*" = "download gnome-user-docs" ] && touch gnome-user-docs_1_all.deb'),
                             ("dpkg-deb", f'[ "$*" = "-x $PWD/gnome-user-docs_1_all.deb ." ] && cp -r {self.folder}/package/usr .')):
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        spec = importlib.util.spec_from_file_location("translate_data", SCRIPT)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        script.INSTALLED = self.folder / "not-installed"
        with unittest.mock.patch.dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}"), \
                unittest.mock.patch.object(sys, "argv", [str(SCRIPT), str(self.folder / "out")]), \
                contextlib.redirect_stdout(io.StringIO()) as output:
            script.main()
        self.assertRegex(output.getvalue(), r"^\d+ pairs to train on")
        (programs / "apt-get").write_text("#!/bin/sh\necho 'E: no such package' >&2; exit 100\n")
        with unittest.mock.patch.dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}"), self.assertRaises(SystemExit) as refused:
            script.downloaded(self.folder)
        self.assertIn("apt-get download gnome-user-docs: E: no such package", refused.exception.code)
        with unittest.mock.patch.dict(os.environ, PATH=str(self.folder)), self.assertRaises(SystemExit) as refused:
            script.downloaded(self.folder)
        self.assertIn("apt-get: not found", refused.exception.code)


class PairsTest(harness.EndToEndTest):
    def pairs_job(self, evaluation=None, **training):
        """Of a tiny network on made-up manuals, by the example's own commands."""
        write_manuals(self.folder / "help")
        made = subprocess.run([sys.executable, SCRIPT, self.folder, "--from", self.folder / "help"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        trained = self.cli("tokenizer", "train", "--input", self.folder / "train.en", self.folder / "train.de", "--vocabulary", 320,
                           "--model", "bpe", "--output", self.folder / "pieces.model")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        network = {"width": 16, "hidden": 24, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "source_context": 60,
                   "target_context": 80, "vocabulary": 320}
        files = {"sources": ["train.en"], "targets": ["train.de"], "test_sources": ["test.en"], "test_targets": ["test.de"]}
        return self.job_file(model={"gpt": None, "transformer": network, "objective": {"cross_entropy": {"ignore_index": 0}}},
                             data={"text": None, "parallel_text": {"tokenizer": "pieces.model", "buckets": 4, **files}},
                             training={"steps": 12, **training}, evaluation=evaluation or {})


class Translate(PairsTest):
    def test_each_step_has_its_padding_and_the_weights_translate_on_every_stage_count(self):
        job = self.pairs_job()
        of_runs, translations = [], []
        for stages in (1, 3):
            cluster = self.run_job(job, stages)
            lines = [json.loads(line) for line in next(cluster.state_dir.glob("jobs/*/metrics.jsonl")).read_text().splitlines()]
            for records in (cluster.events, lines):
                steps = {record["step"]: record.get("padding") for record in records if record["event"] == "step"}
                self.assertEqual(set(steps), set(range(1, 13)))
                of_runs.append(steps)
                self.assertFalse([record for record in records if record["event"] != "step" and "padding" in record])
            translated = self.cli("-o", "ndjson", "translate", cluster.state_dir, self.folder / "test.en", "--tokens", 9)
            self.assertEqual(translated.returncode, 0, translated.stderr)
            translations.append(translated.stdout)
        self.assertEqual(of_runs, [of_runs[0]] * 4)
        self.assertTrue(all(0 <= share < 0.5 for share in of_runs[0].values()), of_runs[0])
        self.assertGreater(len(set(of_runs[0].values())), 2, "mini-batches of several buckets")
        sources = (self.folder / "test.en").read_text().splitlines()
        self.assertEqual([json.loads(line)["source"] for line in translations[0].splitlines()], sources)
        self.assertEqual(translations[0], translations[1], "the same weights, whatever K they were trained with")

    def test_an_evaluation_translates_and_scores_as_the_commands_do(self):
        # One group of sentences a mini-batch, as the command's.
        job = self.pairs_job(steps=60, batch_size=64, micro_batches=1, learning_rate={"cosine": None, "constant": {"peak": 0.01}},
                             evaluation={"every_steps": 30, "batches": 9, "translate": {"beam": 3, "tokens": 20}})
        measured = []
        for stages in (1, 2, 3):
            cluster = self.run_job(job, stages)
            evaluations = [event for event in cluster.events if event["event"] == "evaluation"]
            self.assertEqual([event["step"] for event in evaluations], [30, 60])
            measured.append([(event["bleu"], event["chrf2"]) for event in evaluations])
        self.assertEqual(measured, [measured[0]] * 3)
        translated = self.cli("translate", cluster.state_dir, self.folder / "test.en", "--beam", 3, "--tokens", 20, "--batch", 64)
        self.assertEqual(translated.returncode, 0, translated.stderr)
        (self.folder / "made.de").write_text(translated.stdout)
        scored = self.cli("-o", "json", "score", self.folder / "made.de", self.folder / "test.de")
        self.assertEqual(scored.returncode, 0, scored.stderr)
        scores = {score["name"]: score["score"] for score in json.loads(scored.stdout)["scores"]}
        self.assertEqual(measured[0][-1], (scores["BLEU"], scores["chrF2"]))
        signatures = {score["name"].lower(): score["signature"] for score in json.loads(scored.stdout)["scores"]}
        lines = [json.loads(line) for line in next(cluster.state_dir.glob("jobs/*/metrics.jsonl")).read_text().splitlines()]
        for records in (cluster.events, lines):
            self.assertEqual([record["signatures"] for record in records if record["event"] == "evaluation"], [signatures] * 2)
            self.assertFalse([record for record in records if record["event"] != "evaluation" and "signatures" in record])
        self.assertGreater(scores["BLEU"], 0)

    def test_a_list_of_layers_with_an_encoder_trains_and_translates(self):
        def branch(kind, **fields):
            return {"residual": {"layers": [{"layer_norm": {}}, {kind: fields}]}}

        embedding, mlp = {"embedding": {"sinusoidal": True, "scaled": True}}, branch("mlp", hidden=24, relu=True)
        layers = {"encoder": [embedding, branch("attention", heads=2, causal=False), mlp, {"layer_norm": {}}],
                  "layers": [embedding, branch("attention", heads=2), branch("cross_attention", heads=2), mlp, {"layer_norm": {}},
                             {"linear": {"out": 320, "no_bias": True}}]}
        job = json.loads(self.pairs_job(evaluation={"every_steps": 12, "batches": 4, "translate": {"beam": 2, "tokens": 9}}).read_text())
        job["model"] = {"sequence": {"width": 16, "vocabulary": 320, "source_context": 60, "target_context": 80,
                                     "tied_embeddings": True, **layers}, "objective": job["model"]["objective"]}
        (self.folder / "listed.json").write_text(json.dumps(job))
        of_runs = []
        for stages in (1, 2, 3):
            cluster = self.run_job(self.folder / "listed.json", stages)
            losses = [event["loss"] for event in cluster.events if event["event"] == "step"]
            scores = [(event["bleu"], event["chrf2"]) for event in cluster.events if event["event"] == "evaluation"]
            translated = self.cli("-o", "ndjson", "translate", cluster.state_dir, self.folder / "test.en", "--tokens", 9)
            self.assertEqual(translated.returncode, 0, translated.stderr)
            of_runs.append((losses, scores, translated.stdout))
        self.assertEqual(of_runs, [of_runs[0]] * 3)
        self.assertEqual((len(of_runs[0][0]), len(of_runs[0][1])), (12, 1))
        self.assertLess(of_runs[0][0][-1], of_runs[0][0][0])

    def test_rows_to_translate_reach_stages_that_get_no_gradients(self):
        # Each link takes messages up to the largest that its job has.
        frozen = [f"model/{layer:04}/*" for layer in (0, 1, 2, 3, 5, 6)]
        job = json.loads(self.pairs_job(steps=4, freeze=frozen, evaluation={"every_steps": 4, "translate": {"beam": 4}}).read_text())
        scores = []
        for cuts in ([6], [6, 7]):
            job["pipeline"] = {"stages": len(cuts) + 1, "partition": {"cuts": cuts}}
            (self.folder / "frozen.json").write_text(json.dumps(job))
            cluster = self.run_job(self.folder / "frozen.json", len(cuts) + 1)
            scores.append([(event["bleu"], event["chrf2"]) for event in cluster.events if event["event"] == "evaluation"])
        self.assertEqual(scores[0], scores[1])
        self.assertEqual(len(scores[0]), 1)

    def test_fixed_lengths_have_no_padding(self):
        cluster = self.run_job(self.job_file())
        self.assertFalse([event for event in cluster.events if "padding" in event])

    def test_metrics_count_the_positions_that_the_steps_had(self):
        cluster = self.start(self.pairs_job(steps=100000), 2, "state", "--id", "watched")
        cluster.wait_for_step(5)
        text = observe_test.coordinator_metrics(cluster.processes()["coordinator"]["http"])
        applied = observe_test.samples(text, "stagecoach_train_steps_total")['{job_id="watched",result="applied"}']
        cluster.wait_for_step(applied)
        steps = [event for event in cluster.events if event["event"] == "step"][:int(applied)]
        tokens = observe_test.samples(text, "stagecoach_train_tokens_total")['{job_id="watched"}']
        self.assertEqual(tokens, sum(round(step["tokens_per_second"] * step["step_seconds"]) for step in steps))
        self.assertLess(tokens, applied * 6 * 80, "fewer than the largest lengths would make")
        share = observe_test.samples(text, "stagecoach_train_measure")['{job_id="watched",split="train",measure="padding"}']
        self.assertTrue(0 <= share < 0.5, share)


if __name__ == "__main__":
    harness.main()
