#include "services/cli/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "checkpoint/safetensors.h"
#include "network/network_kinds.h"

namespace stagecoach {
namespace {

absl::Status LoadParameter(SafetensorsReader& reader, Backend& backend, Parameter& parameter) {
  const std::string& name = parameter.spec.name;
  const TensorEntry* entry = reader.Find(name);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("no tensor ", name));
  if (entry->dtype != DType::kF32 || entry->shape != parameter.spec.shape) {
    return absl::DataLossError(
        absl::StrCat("tensor ", name, " is ", DTypeName(entry->dtype), entry->shape.ToString(),
                     "; the configuration beside it wants F32", parameter.spec.shape.ToString()));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(entry->bytes()));
  RETURN_IF_ERROR(reader.Read(*entry, bytes));
  backend.CopyFromHost(bytes, parameter.value);
  return absl::OkStatus();
}

}  // namespace

Sampler::Sampler(Network model, std::unique_ptr<Backend> backend, std::unique_ptr<Cell> cell)
    : model_(std::move(model)), backend_(std::move(backend)), cell_(std::move(cell)) {}

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Load(const std::string& weights_file,
                                                       const JobSpec& spec,
                                                       std::unique_ptr<Backend> backend) {
  ASSIGN_OR_RETURN(Network model, ExpandModel(spec.model));
  ASSIGN_OR_RETURN(SafetensorsReader reader,
                   SafetensorsReader::Open(*PosixFileSystem(), weights_file));
  const int layers = static_cast<int>(model.layers.size());
  ASSIGN_OR_RETURN(std::unique_ptr<Cell> cell, Cell::Create(model, 0, layers, /*seed=*/std::nullopt,
                                                            /*micro_batches=*/1, *backend));
  for (Parameter* parameter : cell->parameters()) {
    RETURN_IF_ERROR(Annotate(LoadParameter(reader, *backend, *parameter), weights_file));
  }
  return std::unique_ptr<Sampler>(
      new Sampler(std::move(model), std::move(backend), std::move(cell)));
}

absl::StatusOr<std::vector<float>> Sampler::NextLogits(std::span<const int32_t> history) {
  // The network reads whole contexts. What stands behind the last token cannot be seen by it:
  // attention looks back only, and every other layer works row by row.
  const auto seen = std::min<size_t>(history.size(), static_cast<size_t>(model_.targets()));
  std::vector<int32_t> ids(static_cast<size_t>(model_.targets()), 0);
  std::copy(history.end() - static_cast<ptrdiff_t>(seen), history.end(), ids.begin());
  ASSIGN_OR_RETURN(Tensor input, MakeTensor(backend_->allocator(), MemoryKind::kActivations,
                                            DType::kI32, Shape{model_.targets()}));
  backend_->CopyFromHost(std::as_bytes(std::span<const int32_t>(ids)), input);
  ForwardContext context;
  context.micro_batch = MicroBatchId(0);
  context.sequences = 1;
  context.training = false;
  ASSIGN_OR_RETURN(const Tensors outputs, cell_->Evaluate({std::move(input)}, context));
  CHECK_EQ(outputs.size(), size_t{1});
  std::vector<float> logits(static_cast<size_t>(model_.targets() * model_.classes()));
  backend_->CopyToHost(outputs[0], std::as_writable_bytes(std::span<float>(logits)));
  RETURN_IF_ERROR(backend_->Synchronize());
  const auto row = logits.begin() + static_cast<ptrdiff_t>((seen - 1) * model_.classes());
  return std::vector<float>(row, row + model_.classes());
}

absl::Status Sampler::Generate(const std::string& prompt, const SamplingOptions& options,
                               const std::function<bool(char)>& on_byte) {
  if (prompt.empty()) return absl::InvalidArgumentError("--prompt: needs at least one character");
  std::vector<int32_t> history;
  for (const char c : prompt) {
    history.push_back(static_cast<unsigned char>(c));
    if (history.back() < model_.classes()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--prompt: byte ", history.back(),
                                                   " is not among the ", model_.classes(),
                                                   " tokens of the model"));
  }
  for (int64_t i = 0; i < options.tokens; ++i) {
    ASSIGN_OR_RETURN(const std::vector<float> logits, NextLogits(history));
    const RandomStream stream{.seed = options.seed};
    const double uniform = RandomBits(stream, static_cast<uint64_t>(i)) / 4294967296.0;
    history.push_back(ChooseToken(logits, options.temperature, uniform));
    if (!on_byte(static_cast<char>(history.back()))) return absl::OkStatus();
  }
  return absl::OkStatus();
}

int32_t ChooseToken(std::span<const float> logits, double temperature, double uniform) {
  CHECK(!logits.empty()) << "a vocabulary has tokens";
  const auto best = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<int32_t>(best - logits.begin());
  std::vector<double> weights;
  double sum = 0;
  for (const float logit : logits) {
    weights.push_back(std::exp((logit - static_cast<double>(*best)) / temperature));
    sum += weights.back();
  }
  double left = uniform * sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(best - logits.begin());  // rounding took the last share
}

}  // namespace stagecoach
