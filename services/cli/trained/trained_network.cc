#include "services/cli/trained/trained_network.h"

#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/numbers/bfloat16.h"
#include "checkpoint/content_digest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "network/passes/freeze.h"
#include "stage/files/data_roots.h"
#include "stage/weights/weight_file.h"

namespace stagecoach {
namespace {

using ReadWeight =
    std::function<absl::StatusOr<bool>(const std::string& name, std::span<float> values)>;

// A cell that trains nothing and has its values from `read`, which gives all.
absl::StatusOr<TrainedNetwork> Load(Network network, std::unique_ptr<Backend> backend,
                                    const ReadWeight& read) {
  ASSIGN_OR_RETURN(network, AsBase(std::move(network)));
  const int layers = static_cast<int>(network.layers.size());
  // All values are given, so the seed draws none.
  ASSIGN_OR_RETURN(std::unique_ptr<Cell> cell, Cell::Create(network, 0, layers, /*seed=*/0,
                                                            /*micro_batches=*/1, *backend, read));
  return TrainedNetwork{std::move(network), std::move(backend), std::move(cell)};
}

std::map<std::string, Shape> ShapesOf(const Network& network) {
  std::map<std::string, Shape> shapes;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      shapes[parameter.name] = parameter.shape;
    }
    for (const StateSpec& state : layer.states) shapes[state.name] = state.shape;
  }
  return shapes;
}

// Empty `values`: the file is only asked whether it fits.
absl::Status ReadOwn(SafetensorsReader& reader, const std::string& name, const Shape& shape,
                     std::span<float> values) {
  const TensorEntry* entry = reader.Find(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no tensor ", name, "; give the configuration that these weights were trained with"));
  }
  if (entry->dtype != DType::kF32 || entry->shape != shape) {
    return absl::DataLossError(
        absl::StrCat("tensor ", name, " is ", DTypeName(entry->dtype), entry->shape.ToString(),
                     "; the configuration beside it wants F32", shape.ToString()));
  }
  return values.empty() ? absl::OkStatus() : reader.Read(*entry, std::as_writable_bytes(values));
}

}  // namespace

absl::StatusOr<TrainedNetwork> LoadTrainedNetwork(const std::string& weights_file, Network network,
                                                  std::unique_ptr<Backend> backend) {
  ASSIGN_OR_RETURN(SafetensorsReader reader,
                   SafetensorsReader::Open(*PosixFileSystem(), weights_file));
  RETURN_IF_ERROR(Annotate(CheckContent(reader), weights_file));
  const std::map<std::string, Shape> shapes = ShapesOf(network);
  std::set<std::string> read;
  const auto read_own = [&](const std::string& name,
                            std::span<float> values) -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(Annotate(ReadOwn(reader, name, shapes.at(name), values), weights_file));
    read.insert(name);
    return true;
  };
  ASSIGN_OR_RETURN(TrainedNetwork trained, Load(std::move(network), std::move(backend), read_own));
  // A network that does without one of the file's, as a tied head's, is another function.
  for (const TensorEntry& entry : reader.tensors()) {
    if (read.contains(entry.name) || !entry.name.starts_with("model/")) continue;
    return absl::DataLossError(absl::StrCat(weights_file,
                                            ": the network of the configuration beside it "
                                            "has no ",
                                            entry.name,
                                            "; give the configuration that "
                                            "these weights were trained with"));
  }
  return trained;
}

absl::StatusOr<TrainedNetwork> LoadNamedNetwork(const InitializeSpec& weights, Network network,
                                                std::unique_ptr<Backend> backend) {
  const std::unique_ptr<DataRoots> files = DataRoots::Everything();
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightFile> file,
                   Annotate(WeightFile::Open(*files, weights, network),
                            "the weights are not those of the folder's config.json"));
  ASSIGN_OR_RETURN(TrainedNetwork trained,
                   Load(std::move(network), std::move(backend),
                        [&file](const std::string& name, std::span<float> values) {
                          return file->Read(name, values);
                        }));
  RETURN_IF_ERROR(file->Finish().status());
  return trained;
}

absl::StatusOr<std::vector<float>> Evaluate(const TrainedNetwork& trained, Tensors inputs,
                                            int64_t samples) {
  ForwardContext context;
  context.micro_batch = MicroBatchId(0);
  context.sequences = samples;
  context.training = false;
  ASSIGN_OR_RETURN(const Tensors outputs, trained.cell->Evaluate(std::move(inputs), context));
  const Tensor& output = outputs.at(trained.network.objective.output_place());
  const auto read = [&]<typename Number>(Number) -> absl::StatusOr<std::vector<Number>> {
    std::vector<Number> numbers(static_cast<size_t>(output.shape().elements()));
    trained.backend->CopyToHost(output, std::as_writable_bytes(std::span(numbers)));
    RETURN_IF_ERROR(trained.backend->Synchronize());
    return numbers;
  };
  if (output.dtype() == DType::kF32) return read(float());
  CHECK(output.dtype() == DType::kBF16) << DTypeName(output.dtype());
  ASSIGN_OR_RETURN(const std::vector<Bfloat16> narrow, read(Bfloat16()));
  return std::vector<float>(narrow.begin(), narrow.end());
}

}  // namespace stagecoach
