"""Files of this machine become the data set that `stagecoach submit` makes of them, and travel once."""
import os

import support
from stagecoach import _data_set, _job_file, _upload

import stagecoach


class DataSets(support.ClusterTest):
    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def travel(self, job):
        spec = _job_file.read_job(job)
        files, places = _data_set.files_of_job(spec)
        _data_set.put_places(spec, places, "a" * 64)
        return [file.path for file in files], spec

    def test_the_manifest_is_that_of_the_command(self):
        """services/cli/data/local_parts_test.cc has the same files and digest."""
        for name, data in {"b.txt": b"bb", "a/1.txt": b"1", "big": b"x" * (1 << 20), "copy": b"x" * (1 << 20), "empty": b""}.items():
            self.write(f"in/{name}", data)
        files = sorted(_data_set._walk("data", str(self.folder / "in"), ".", None, []), key=lambda file: file.path.encode())
        files = [_data_set.LocalFile(file.path[2:], file.here, file.stamp) for file in files]
        self.assertEqual(_data_set.make_data_set(files).sha256, "13befd637f138277552a54560d40d57903b64a448ab8c6b32310193ca900c4fb")

    def test_paths_in_the_set(self):
        for name in ("texts/input.txt", "llama/tokenizer.json", "llama/tokenizer_config.json", "llama/a.safetensors",
                     "llama/pytorch_model.bin"):
            self.write(name, name.encode())
        paths, spec = self.travel({"data": {"text": {"path": str(self.folder / "texts/input.txt"),
                                                     "tokenizer": str(self.folder / "llama/tokenizer.json")}},
                                   "initialize": {"from": str(self.folder / "llama")}})
        self.assertEqual(paths, ["0/input.txt", "1/llama/a.safetensors", "1/llama/tokenizer.json", "1/llama/tokenizer_config.json"])
        self.assertEqual(spec.data.text.tokenizer, f"store:/data/{'a' * 64}/1/llama/tokenizer.json")
        kept = {"data": {"dataset": "faces", "cifar": {"folder": "batches"}}, "initialize": {"on_stages": "/m", "from": "vit"}}
        paths, spec = self.travel(kept)
        self.assertEqual(paths, [])
        self.assertEqual(spec.data.cifar.folder, "batches", "relative to the set")
        self.assertEqual(getattr(spec.initialize, "from"), "vit")
        paths, spec = self.travel({"data": {"text": {"path": "s3://corpora/a", "tokenizer": str(self.folder / "llama/tokenizer.json")}},
                                   "initialize": {"from": "s3://weights/bert"}})
        self.assertEqual(paths, ["tokenizer.json", "tokenizer_config.json"])
        self.assertEqual(spec.data.text.path, "s3://corpora/a", "the coordinator reads it")
        self.assertEqual(getattr(spec.initialize, "from"), "s3://weights/bert")

    def test_what_is_no_data_names_field_and_file(self):
        with self.assertRaises(stagecoach.InvalidJob) as caught:
            self.travel({"data": {"text": {"path": "/none/x"}}})
        self.assertIn("data.text.path: /none/x: No such file", str(caught.exception))
        for path, job in (("data.text.path", {"data": {"text": {"path": "S3://corpora/a"}}}),
                          ("initialize.from", {"initialize": {"from": "S3://weights/bert"}})):
            with self.assertRaises(stagecoach.InvalidJob) as caught:
                self.travel(job)
            self.assertIn(f'{path}: "S3://', str(caught.exception))
            self.assertIn("begins with s3://, in small letters", str(caught.exception))
        (self.folder / "loop").mkdir()
        os.symlink(self.folder / "loop", self.folder / "loop" / "back")
        with self.assertRaises(stagecoach.InvalidJob) as caught:
            self.travel({"data": {"cifar": {"folder": str(self.folder / "loop")}}})
        self.assertIn("is a link out of the folder", str(caught.exception))

    def test_a_job_brings_its_data_and_the_command_finds_it(self):
        data = self.write("large.bin", os.urandom(3 << 20))
        spec = _job_file.read_job({"data": {"text": {"path": str(data)}}})
        files, _ = _data_set.files_of_job(spec)
        made = _data_set.make_data_set(files)
        connection = self.client._connection
        set_id = _upload.upload(connection, made)
        self.assertEqual(_upload.upload(connection, made), set_id)
        put = self.cli("--address", self.coordinator, "data", "put", data)
        self.assertEqual((put.returncode, put.stdout), (0, set_id + "\n"), put.stderr)
        self.assertIn("the cluster has the data", put.stderr)

    def test_a_changed_file_is_named(self):
        data = self.write("a.txt", b"1")
        spec = _job_file.read_job({"data": {"text": {"path": str(data)}}})
        files, _ = _data_set.files_of_job(spec)
        data.write_bytes(b"22")
        with self.assertRaises(stagecoach.StagecoachError) as caught:
            _data_set.make_data_set(files)
        self.assertIn(f"{data}: was changed", str(caught.exception))


if __name__ == "__main__":
    support.main()
