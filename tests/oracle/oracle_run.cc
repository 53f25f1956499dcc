#include "tests/oracle/oracle_run.h"

#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "network/names/weight_names.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "plan/schedules/schedule_kinds.h"
#include "services/cli/spec/message_reader.h"
#include "services/cli/spec/yaml_tree.h"
#include "services/common/convert/spec/convert_layer.h"
#include "services/common/flags/flag_parser.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/weights/weight_file.h"
#include "tests/oracle/host_source.h"
#include "tests/oracle/recorder.h"

namespace stagecoach {
namespace {

struct Options {
  std::string network, weights, batch, out, init;
  std::string device = "cpu", schedule = "gpipe", rematerialization = "always";
  std::string precision = "float32", names = "stagecoach";
  int64_t stages = 1, micro_batches = 1, seed = 0, step = 0, threads = 1;
  bool evaluate = false, sample_weights = false;
};

std::optional<int> Parse(int argc, const char* const* argv, Options* options) {
  FlagParser parser(
      "One step of a network on given weights and data: outputs, loss, measures, gradients and "
      "states.");
  parser.Text("--network", &options->network, "YAML file: the `model:` part of a job");
  parser.Text("--weights", &options->weights,
              "safetensors file or folder: parameters and states, all of them");
  parser.OneOf("--names", &options->names, "of the tensors in --weights", WeightTables());
  parser.Text("--batch", &options->batch, "safetensors: the network's inputs for the mini-batch");
  parser.Text("--out", &options->out,
              "safetensors to write, which must not be there: output, loss, measure/<name>, "
              "grad/<name>, state/<name>");
  parser.Text("--init", &options->init,
              "instead: write initial weights here, or those of --weights, in our names, and end");
  parser.Number("--seed", &options->seed, "of initial weights and random draws", 0,
                int64_t{1} << 62);
  parser.Number("--step", &options->step, "that random draws are keyed by", 0, int64_t{1} << 31);
  parser.OneOf("--device", &options->device, "what computes", {"cpu", "reference"});
  parser.Number("--threads", &options->threads, "of a cpu device", 1, 1024);
  parser.Number("--stages", &options->stages, "K, in this process", 1, 1024);
  parser.Number("--micro-batches", &options->micro_batches, "M", 1, 65536);
  parser.OneOf("--schedule", &options->schedule, "of the step", ScheduleNames());
  parser.OneOf("--rematerialization", &options->rematerialization, "what is computed again",
               {"always", "except_first", "never"});
  parser.OneOf("--precision", &options->precision, "of the job", {"float32", "bfloat16"});
  parser.Switch("--sample-weights", &options->sample_weights,
                "the batch has `weights`, float32, one a sample, for the loss");
  parser.Switch("--evaluate", &options->evaluate, "an evaluation: no gradients, no states");
  return parser.Parse(argc, argv);
}

absl::StatusOr<Network> ReadNetwork(const Options& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(options.network, YamlLimits().bytes));
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, options.network, YamlLimits()));
  v1::Model model;
  std::map<std::string, Position> positions;
  RETURN_IF_ERROR(ReadMessage(root, options.network, &model, &positions));
  ASSIGN_OR_RETURN(const NetworkSpec spec, ModelFromProto(model));
  ASSIGN_OR_RETURN(Network network,
                   ExpandNetwork(spec, options.precision == "bfloat16" ? Precision::kBfloat16
                                                                       : Precision::kFloat32));
  if (!options.sample_weights) return network;
  return WithSampleWeights(std::move(network), "--sample-weights");
}

HarnessOptions HarnessOf(const Options& options, const Network& network,
                         std::shared_ptr<HostSource> source) {
  HarnessOptions harness{.stages = static_cast<int>(options.stages)};
  harness.batch_size = std::max<int64_t>(source->samples(), 1);
  harness.micro_batches = options.micro_batches;
  harness.precision = network.precision;
  harness.network = network;
  harness.seed = static_cast<uint64_t>(options.seed);
  harness.source = std::move(source);
  harness.schedule = options.schedule;
  harness.rematerialization = options.rematerialization == "always" ? Rematerialization::kAlways
                              : options.rematerialization == "never"
                                  ? Rematerialization::kNever
                                  : Rematerialization::kExceptFirst;
  const BackendOptions backend{.threads = static_cast<int>(options.threads)};
  const bool cpu = options.device == "cpu";
  harness.make_backend = [backend, cpu] {
    return cpu ? MakeCpuBackend(backend) : MakeReferenceBackend(backend);
  };
  return harness;
}

// Parameters and states of all stages.
std::vector<NamedTensor> TensorsOf(PipelineHarness& pipeline, int stage) {
  return ModelTensors(pipeline.cells(stage));
}

// As a job that begins with the file.
absl::Status LoadWeights(const Options& options, const Network& network,
                         PipelineHarness& pipeline) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> file,
                   WeightFile::Open(*PosixFileSystem(),
                                    {.from = options.weights, .names = options.names}, network));
  const auto load = [&](const std::string& name, const Tensor& into, int k) -> absl::Status {
    std::vector<float> values(static_cast<size_t>(into.shape().elements()));
    RETURN_IF_ERROR(file->Read(name, values).status());
    pipeline.backend(k).CopyFromHost(std::as_bytes(std::span(values)), into);
    return pipeline.backend(k).Synchronize();
  };
  for (int k = 0; k < pipeline.stages(); ++k) {
    for (const NamedTensor& named : TensorsOf(pipeline, k)) {
      RETURN_IF_ERROR(load(named.name, named.tensor, k));
    }
    for (const TiedExchange::Copy& copy : pipeline.cell(k).ties().copies()) {
      RETURN_IF_ERROR(SetCopy(copy, pipeline.backend(k),
                              [&](const Tensor& wide) { return load(copy.owner.name, wide, k); }));
    }
    pipeline.cell(k).RefreshCompute();
  }
  return absl::OkStatus();
}

absl::Status WriteInitial(const Options& options, const Network& network) {
  PipelineHarness pipeline(HarnessOf(options, network, HostSource::Nothing()));
  if (!options.weights.empty()) RETURN_IF_ERROR(LoadWeights(options, network, pipeline));
  Recorder recorder;
  for (int k = 0; k < pipeline.stages(); ++k) {
    for (const NamedTensor& named : TensorsOf(pipeline, k)) {
      recorder.Add(named.name, pipeline.backend(k), named.tensor);
    }
  }
  return recorder.Write(options.init);
}

// What the objective read, micro-batch after micro-batch, as F32.
class Outputs {
 public:
  Outputs(const ValueType& type, int64_t samples) : type_(type), samples_(samples) {}
  absl::Status Add(Backend& backend, MicroBatchId id, const Tensor& output) {
    Tensor wide = output;
    if (output.dtype() != DType::kF32) {
      ASSIGN_OR_RETURN(wide, MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kF32,
                                        output.shape()));
      backend.Convert(output, wide);
    }
    std::vector<std::byte>& bytes = pieces_[id.value];
    bytes.resize(static_cast<size_t>(wide.bytes()));
    backend.CopyToHost(wide, bytes);
    return absl::OkStatus();
  }
  void Write(Recorder* recorder) const {
    std::vector<std::byte> all;
    for (const auto& [id, bytes] : pieces_) all.insert(all.end(), bytes.begin(), bytes.end());
    std::vector<int64_t> extents = type_.shape.extents();
    extents.insert(extents.begin(), samples_);
    recorder->Add("output", DType::kF32, Shape(std::move(extents)), std::move(all));
  }

 private:
  const ValueType type_;
  const int64_t samples_;
  std::map<int, std::vector<std::byte>> pieces_;
};

absl::Status Write(const Options& options, PipelineHarness& pipeline, const StepReport& last,
                   const Outputs& outputs) {
  Recorder recorder;
  outputs.Write(&recorder);
  recorder.Add("loss", std::vector<double>{last.loss_sum / last.terms});
  for (const Measure& measure : last.measures) {
    recorder.Add("measure/" + measure.name, std::vector<double>{measure.value / last.terms});
  }
  for (int k = 0; k < pipeline.stages() && !options.evaluate; ++k) {
    Cell& cell = pipeline.cell(k);
    for (Parameter* parameter : cell.parameters()) {
      recorder.Add("grad/" + parameter->spec.name, pipeline.backend(k), parameter->gradient);
    }
    RETURN_IF_ERROR(cell.CommitStates());
    for (LayerState* state : cell.states()) {
      recorder.Add("state/" + state->spec.name, pipeline.backend(k), state->value);
    }
  }
  return recorder.Write(options.out);
}

absl::Status RunStep(const Options& options, const Network& network) {
  if (options.weights.empty() || options.batch.empty() || options.out.empty()) {
    return absl::InvalidArgumentError("a step needs --weights, --batch and --out");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<HostSource> source,
                   HostSource::Open(options.batch, network, options.micro_batches));
  if (options.micro_batches > source->samples()) {
    return absl::InvalidArgumentError(absl::StrCat("--micro-batches=", options.micro_batches,
                                                   ": the batch has ", source->samples(),
                                                   " samples"));
  }
  Outputs outputs(network.wire(network.objective.output).type, source->samples());
  HarnessOptions harness = HarnessOf(options, network, source);
  PipelineHarness* running = nullptr;
  harness.on_output = [&](MicroBatchId id, const Tensor& output) {
    CHECK_OK(outputs.Add(running->backend(running->stages() - 1), id, output));
  };
  PipelineHarness pipeline(harness);
  running = &pipeline;
  pipeline.set_step(static_cast<uint64_t>(options.step));
  RETURN_IF_ERROR(LoadWeights(options, network, pipeline));
  ASSIGN_OR_RETURN(const std::vector<StepReport> reports, pipeline.RunPass(!options.evaluate, 0));
  return Write(options, pipeline, reports.back(), outputs);
}

absl::Status Run(const Options& options) {
  if (options.network.empty()) return absl::InvalidArgumentError("--network names a YAML file");
  ASSIGN_OR_RETURN(const Network network, ReadNetwork(options));
  const auto layers = static_cast<int64_t>(network.layers.size());
  if (options.stages > layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages=", options.stages, ": the network has ", layers, " layers"));
  }
  return options.init.empty() ? RunStep(options, network) : WriteInitial(options, network);
}

}  // namespace

int OracleRun(int argc, const char* const* argv) {
  Options options;
  if (const std::optional<int> code = Parse(argc, argv, &options)) return *code;
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "stagecoach-oracle: %s\n", std::string(status.message()).c_str());
  return 1;
}

int OracleRuns() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, '\t');
    std::vector<const char*> arguments = {"run"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    const int code = OracleRun(static_cast<int>(arguments.size()), arguments.data());
    std::printf("%d\n", code);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace stagecoach
