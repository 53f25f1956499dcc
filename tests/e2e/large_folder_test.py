"""A Hugging Face folder of 7 B weights: import, validate and plan read its headers alone, and a stage reads its own tensors.

The weights are zeros in sparse files. No test has room for all of them: that a stage of such a network reads the ranges of
its cell is shown by stage/runtime/stage_runtime_large_weights_test.cc. Here whole processes read a smaller folder.
"""
import json
import math
import pathlib
import struct
import unittest

import harness
from writing_test import write_tokenizer_json

LARGE = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32}
SMALL = {"num_hidden_layers": 8, "hidden_size": 1024, "intermediate_size": 2752, "num_attention_heads": 16}
VOCABULARY = 32000
NUMBER = 2  # bytes of a bfloat16
# Of a process beside weights: libraries, the text, configurations, /proc.
BESIDE = 1 << 20


def layers_of(shape):
    """The tensors of each layer of the job's network, in its order: name -> shape."""
    width, hidden = shape["hidden_size"], shape["intermediate_size"]
    layers = [{"model.embed_tokens.weight": [VOCABULARY, width]}]
    for i in range(shape["num_hidden_layers"]):
        block = f"model.layers.{i}."
        layers.append({block + "input_layernorm.weight": [width],
                       **{f"{block}self_attn.{part}_proj.weight": [width, width] for part in "qkvo"}})
        layers.append({block + "post_attention_layernorm.weight": [width],
                       **{f"{block}mlp.{part}_proj.weight": [hidden, width] for part in ("gate", "up")},
                       block + "mlp.down_proj.weight": [width, hidden]})
    return [*layers, {"model.norm.weight": [width]}, {"lm_head.weight": [VOCABULARY, width]}]


def bytes_of(layers):
    return sum(NUMBER * math.prod(shape) for layer in layers for shape in layer.values())


def write_shard(path, tensors):
    """Safetensors with zeros, which take no room on the disk."""
    header, end = {}, 0
    for name, shape in tensors.items():
        begin, end = end, end + NUMBER * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def write_folder(folder, shape, shards=3):
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": VOCABULARY,
              "num_key_value_heads": shape["num_attention_heads"], "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", **shape}
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer_json(folder)
    layers = layers_of(shape)
    files = {}
    for i in range(shards):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        held = layers[len(layers) * i // shards:len(layers) * (i + 1) // shards]
        tensors = {name: extents for layer in held for name, extents in layer.items()}
        write_shard(folder / file, tensors)
        files.update(dict.fromkeys(tensors, file))
    index = {"metadata": {"total_size": bytes_of(layers)}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def counts_reads():
    try:
        read_by("self")
    except OSError:
        return False
    return True


def read_by(process):
    """Bytes that a process asked files for; of `self` also those of processes that it has waited for."""
    fields = dict(line.split(": ") for line in pathlib.Path(f"/proc/{process}/io").read_text().splitlines())
    return int(fields["rchar"])


@unittest.skipUnless(counts_reads(), "this system does not tell what a process reads (/proc/PID/io)")
class LargeFolder(harness.EndToEndTest):
    def imported(self, shape, context):
        """The job with adapters in bfloat16: import's comments say where both go."""
        write_folder(self.folder / "llama", shape)
        job = self.folder / "job.yaml"
        self.reads_headers("import", self.folder / "llama", "--to", job, "--text", self.folder / "input.txt", "--context", context)
        text = job.read_text()
        for old, new in (("precision: float32 ", "precision: bfloat16 "), ("\n  # lora:", "\n  lora:"),
                         ("steps: 1000 ", "steps: 100000 "), ("batch_size: 16", "batch_size: 2"), ("micro_batches: 8", "micro_batches: 2"),
                         ("partition: auto", "partition: uniform")):
            self.assertEqual(text.count(old), 1, f"{old!r} in {text}")
            text = text.replace(old, new)
        job.write_text(text)
        return job

    def reads_headers(self, *arguments):
        before = read_by("self")
        done = self.cli(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = read_by("self") - before
        print(f"{arguments[0]}: {read / 2**20:.1f} MiB read", flush=True)
        self.assertLess(read, BESIDE, arguments)
        return done.stdout

    def test_import_validate_and_plan_read_headers_alone(self):
        job = self.imported(LARGE, 512)
        shards = list((self.folder / "llama").glob("*.safetensors"))
        self.assertGreater(sum(path.stat().st_size for path in shards), 13e9)
        self.assertLess(sum(512 * path.stat().st_blocks for path in shards), 1 << 20, "sparse")
        self.reads_headers("validate", job)
        sizes = ("--stages", 8, "--memory-per-stage", 3 << 30, "-o", "json")
        plan = json.loads(self.reads_headers("plan", job, *sizes))["stages"]
        layers = layers_of(LARGE)
        for stage in plan:
            cell = layers[int(stage["first_layer"]):int(stage["last_layer"])]
            self.assertGreaterEqual(int(stage["memory"]["parameters"]), bytes_of(cell), stage)
            self.assertLess(int(stage["memory"]["parameters"]), 1.01 * bytes_of(cell), stage)
            self.assertLessEqual(sum(int(kind) for kind in stage["memory"].values()), 3 << 30)
        refused = self.cli("plan", job, "--stages", 8, "--memory-per-stage", 1 << 30)
        self.assertNotEqual(refused.returncode, 0, refused.stdout)

    def test_each_process_reads_its_own_tensors(self):
        job = self.imported(SMALL, 16)
        plan = json.loads(self.cli("plan", job, "--stages", 3, "-o", "json").stdout)["stages"]
        cluster = self.start(job, 3, "state")
        cluster.wait_for_step(1)
        layers = layers_of(SMALL)
        for k, stage in enumerate(plan):
            own = bytes_of(layers[int(stage["first_layer"]):int(stage["last_layer"])])
            read = read_by(cluster.pid(f"stage-{k}"))
            print(f"stage {k}: {read / 2**20:.1f} MiB read, its tensors {own / 2**20:.1f} of {bytes_of(layers) / 2**20:.1f} MiB",
                  flush=True)
            self.assertGreaterEqual(read, own)
            self.assertLess(read, own + BESIDE)
        self.assertLess(read_by(cluster.pid("coordinator")), BESIDE)
        self.assertEqual(self.cli("cancel", "llama", "--address", cluster.processes()["coordinator"]["address"]).returncode, 0)
        self.assertEqual(cluster.finish(), 5, cluster.describe())


if __name__ == "__main__":
    harness.main()
