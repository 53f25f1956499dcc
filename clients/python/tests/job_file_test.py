"""Job files become the message that `stagecoach submit` makes of them, and mistakes name their place."""
import json
import re
import unittest.mock

import support
import yaml
from stagecoach import _fields, _job_file
from stagecoach._proto import model_pb2

import stagecoach

JOB = """name: first-job
seed: 1
model:
  gpt: {layers: 4, width: 64, heads: 4, context: 64, vocabulary: 256}
data:
  text: {path: texts/../input.txt}
training:
  steps: 200
  batch_size: 16
  micro_batches: 4
  learning_rate: {constant: {peak: 1.0e-3}}
pipeline: {stages: auto, schedule: one_forward_one_backward, partition: uniform}
"""


class JobFiles(support.servers.ServersTest):
    def refused(self, job, message):
        with self.assertRaises(stagecoach.InvalidJob) as caught:
            _job_file.read_job(job)
        self.assertEqual(str(caught.exception), message)

    def test_the_short_forms(self):
        path = self.folder / "job.yaml"
        path.write_text(JOB)
        spec = _job_file.read_job(path)
        self.assertEqual(spec.pipeline.stages, 0)
        self.assertEqual(spec.pipeline.schedule, model_pb2.SCHEDULE_KIND_ONE_FORWARD_ONE_BACKWARD)
        self.assertEqual(spec.pipeline.partition.rule, model_pb2.PARTITION_RULE_UNIFORM)
        self.assertEqual(spec.data.text.path, str(self.folder / "input.txt"), "beside the job file, without ..")
        self.assertEqual(spec, _job_file.read_job(str(path)), "a str is a path too")
        spec = _job_file.read_job({"data": {"cifar": {"folder": "/c", "mean": 0.5, "deviation": [0.1, 0.2]}}})
        self.assertEqual(list(spec.data.cifar.mean), [0.5])
        self.assertEqual(list(spec.data.cifar.deviation), [0.1, 0.2])
        self.assertTrue(_job_file.read_job("evaluation: {translate: {}}\n").evaluation.HasField("translate"))

    def test_a_file_a_text_and_a_dict_are_the_same_job(self):
        path = self.folder / "job.yaml"
        path.write_text(JOB.replace("texts/../input.txt", "/input.txt"))
        spec = _job_file.read_job(path)
        self.assertEqual(_job_file.read_job(path.read_text()), spec)
        as_dict = yaml.safe_load(path.read_text())
        as_dict["training"]["learning_rate"]["constant"]["peak"] = 0.001
        self.assertEqual(_job_file.read_job(as_dict), spec)
        with unittest.mock.patch.dict("sys.modules", {"yaml": None}):
            self.assertEqual(_job_file.read_job(json.dumps(as_dict)), spec)
        self.assertEqual(_job_file.read_job(_fields.to_dict(spec, with_defaults=False)), spec, "a printed one is read back")

    def test_a_link_and_dots_lead_where_the_system_goes(self):
        (self.folder / "real" / "below").mkdir(parents=True)
        (self.folder / "link").symlink_to(self.folder / "real" / "below")
        path = self.folder / "job.json"
        path.write_text(json.dumps({"data": {"text": {"path": "link/../x.txt", "test": "nowhere/../y.txt"}}}))
        text = _job_file.read_job(path).data.text
        self.assertEqual(text.path, str((self.folder / "real" / "x.txt").resolve()))
        self.assertEqual(text.test, str(self.folder / "y.txt"))

    def test_yaml_guesses_nothing(self):
        self.assertEqual(_job_file.read_job("name: no\nseed: +7\n").name, "no")
        self.assertEqual(_job_file.read_job("seed: +7\nname: x\n").seed, 7)
        self.assertEqual(_job_file.read_job('{"name": 12}').name, "12")

    def test_a_schedule_of_ones_own_stands_beside_the_job_file(self):
        (self.folder / "wave.txt").write_text("stage 0: F0 B0\n")
        (self.folder / "own.yaml").write_text("pipeline: {stages: 1, schedule: {file: wave.txt}}\n")
        pipeline = _job_file.read_job(self.folder / "own.yaml").pipeline
        self.assertEqual((pipeline.schedule, pipeline.own_schedule), (model_pb2.SCHEDULE_KIND_OWN, "stage 0: F0 B0\n"))
        (self.folder / "wave.txt").unlink()
        self.refused(self.folder / "own.yaml", f"{self.folder / 'own.yaml'}:1:34: pipeline.schedule.file: wave.txt: No such file or "
                     "directory")

    def test_mistakes_name_the_field_and_the_line(self):
        path = self.folder / "job.yaml"
        path.write_text(JOB.replace("micro_batches", "micro_batchs"))
        self.refused(path, f'{path}:10:3: training.micro_batchs: unknown field; did you mean "micro_batches"?')
        self.refused({"seed": -1}, 'seed: "-1"; wants a whole number from 0 to 2^64 - 1')
        self.refused({"seed": 1.0}, 'seed: "1.0"; wants a whole number from 0 to 2^64 - 1')
        self.refused({"seed": True}, 'seed: "True"; wants a whole number from 0 to 2^64 - 1')
        self.refused({"pipeline": {"stages": 1 << 63}}, f'pipeline.stages: "{1 << 63}"; wants a whole number or auto')
        self.refused({"pipeline": {"schedule": "gpip"}}, 'pipeline.schedule: "gpip" is not one of gpipe, '
                     'one_forward_one_backward, zero_bubble, zero_bubble_2, interleaved, breadth_first, zero_bubble_v, v_min, own; '
                     'did you mean "gpipe"?')
        self.refused({"pipeline": {"schedule": {"path": "x"}}}, "pipeline.schedule: a group of fields; wants a schedule's name or "
                     "{file: PATH}")
        self.refused({"training": {"gradient_clip_norm": float("inf")}}, 'training.gradient_clip_norm: "inf"; wants a finite '
                     "number")
        self.refused({"checkpoint": {"never": "yes"}}, 'checkpoint.never: "yes"; wants true or false, in lower case (yes, no, '
                     "on and off are texts)")
        self.refused({"data": {"text": {}, "idx": {}}}, "data.idx: text is given already; keep one of the two")
        self.refused({"pipeline": {"partition": 3}}, 'pipeline.partition: "3"; wants auto, uniform or {cuts: [3, 6]}')
        self.refused({"name": None}, "name: no value given; wants a text, or leave it out")
        self.refused("name: a\nname: b\n", "job:2:1: name: given twice; keep one")
        self.refused('{"name": "a", "name": "b"}', "name: given twice; keep one")
        self.refused("a: &x {}\nb: *x\n", "b: an alias (*name) of what stands at job:1:4 is not taken; write the value out")
        self.refused("name: [\n", "job:2:1: not valid YAML: expected the node content, but found '<stream end>'")
        self.refused(self.folder / "none.yaml", f"{self.folder / 'none.yaml'}: No such file or directory")

    def test_yaml_without_pyyaml_names_the_remedy(self):
        with unittest.mock.patch.dict("sys.modules", {"yaml": None}):
            self.refused("name: a\n", "job: reading YAML needs PyYAML: pip install pyyaml, or write the job as JSON or as a dict")

    def test_paths_are_those_of_the_planner(self):
        """The kinds of data say their files in C++; a kind or field that is new there belongs into DATA_PATHS too."""
        paths = {}
        for source in (support.ROOT / "plan" / "data").glob("*.cc"):
            lists = re.findall(r"F(?:ile|older)Fields\(\) const override \{\s*return \{([^}]*)\}", source.read_text())
            names = {name for one in lists for name in re.findall(r'"(\w+)"', one)}
            if names:
                paths[source.stem] = names
        self.assertEqual({kind: set(names) for kind, names in _job_file.DATA_PATHS.items()}, paths)
        kinds = [field.name for field in model_pb2.JobSpec.DESCRIPTOR.fields_by_name["data"].message_type.oneofs_by_name["kind"].fields]
        self.assertEqual(sorted(kinds), sorted(_job_file.DATA_PATHS))

    def test_every_example_is_the_job_that_the_command_submits(self):
        """The same id and another spec would be refused. So is, by both, an example whose data nobody has made here."""
        self.launch("stagecoach-coordinator", "coordinator", "--state-dir", self.folder / "state")
        address = self.address("coordinator")
        examples = sorted((support.ROOT / "examples").glob("*.yaml"))
        self.assertGreater(len(examples), 10)
        taken = 0
        with stagecoach.Client(address) as client:
            for example in examples:
                with self.subTest(example.name):
                    id = example.stem
                    submitted = self.cli("--address", address, "submit", "--detach", "--id", id, example)
                    if "submit uploads it" in submitted.stderr:
                        self.assertEqual(submitted.returncode, 2, submitted.stderr)
                        with self.assertRaisesRegex(stagecoach.InvalidJob, "a path of a job is this machine's"):
                            client.submit(example, id=id)
                        continue
                    self.assertEqual(submitted.returncode, 0, submitted.stderr)
                    taken += 1
                    self.assertEqual(client.submit(example, id=id).id, id)
                    with self.assertRaises(stagecoach.AlreadyExists):
                        client.submit({**client.job(id).spec(), "seed": 12345}, id=id)
            self.assertGreater(taken, 4)
            self.assertEqual(len(client.jobs()), taken)


if __name__ == "__main__":
    support.main()
