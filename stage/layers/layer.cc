#include "stage/layers/layer.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"
#include "base/thread.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

constexpr size_t kElementsOfThread = size_t{1} << 16;  // fewer are not worth a thread

absl::StatusOr<ParameterBlock> AllocateParameters(const ExpandedLayer& layer, DType dtype,
                                                  Backend& backend) {
  auto block = std::make_shared<std::vector<Parameter>>();
  block->reserve(layer.parameters.size());
  for (const ParameterSpec& spec : layer.parameters) {
    Allocator& memory = backend.allocator();
    ASSIGN_OR_RETURN(Tensor value,
                     MakeTensor(memory, MemoryKind::kParameters, DType::kF32, spec.shape));
    ASSIGN_OR_RETURN(Tensor gradient,
                     MakeTensor(memory, MemoryKind::kGradients, DType::kF32, spec.shape));
    backend.Fill(gradient, 0.0f);
    Tensor compute = value;
    if (dtype != DType::kF32) {
      ASSIGN_OR_RETURN(compute, MakeTensor(memory, MemoryKind::kParameters, dtype, spec.shape));
    }
    block->push_back({spec, std::move(value), std::move(gradient), std::move(compute)});
  }
  return block;
}

}  // namespace

absl::StatusOr<Tensors> Layer::Backward(Tensors output_gradients, Stash stash) {
  ASSIGN_OR_RETURN(Tensors input_gradients, BackwardInput(std::move(output_gradients), &stash));
  RETURN_IF_ERROR(BackwardWeight(std::move(stash)));
  return input_gradients;
}

absl::StatusOr<std::unique_ptr<Layer>> MakeLayer(const ExpandedModel& model,
                                                 const ExpandedLayer& layer, Backend& backend) {
  ASSIGN_OR_RETURN(ParameterBlock block,
                   AllocateParameters(layer, ComputeDType(model.precision), backend));
  LayerBuilder builder(model, layer, block, backend);
  std::unique_ptr<Layer> built = builder.Build(layer.spec);
  CHECK_EQ(builder.next_parameter(), block->size()) << "parameters used of " << layer.label;
  return built;
}

std::unique_ptr<Layer> LayerBuilder::Build(const LayerSpec& spec) {
  struct Visitor {
    LayerBuilder& builder;
    std::unique_ptr<Layer> operator()(const EmbeddingSpec& s) { return MakeEmbedding(s, builder); }
    std::unique_ptr<Layer> operator()(const LayerNormSpec&) { return MakeLayerNorm(builder); }
    std::unique_ptr<Layer> operator()(const AttentionSpec& s) { return MakeAttention(s, builder); }
    std::unique_ptr<Layer> operator()(const MlpSpec&) { return MakeMlp(builder); }
    std::unique_ptr<Layer> operator()(const LinearSpec& s) { return MakeLinear(s, builder); }
    std::unique_ptr<Layer> operator()(const GeluSpec&) { return MakeGelu(builder); }
    std::unique_ptr<Layer> operator()(const DropoutSpec& s) { return MakeDropout(s, builder); }
    std::unique_ptr<Layer> operator()(const ResidualSpec& s) { return MakeResidual(s, builder); }
  };
  return std::visit(Visitor{*this}, spec.kind);
}

std::vector<float> InitialValue(const ParameterSpec& spec, uint64_t seed, int layer) {
  const size_t elements = static_cast<size_t>(spec.shape.elements());
  if (spec.init == ParameterSpec::Init::kZeros) return std::vector<float>(elements, 0.0f);
  if (spec.init == ParameterSpec::Init::kOnes) return std::vector<float>(elements, 1.0f);
  const RandomStream stream = {seed, 0, 0xffffffff, static_cast<uint32_t>(layer),
                               0x8000u | static_cast<uint32_t>(spec.index)};
  std::vector<float> values(elements);
  // Each value is a function of its index alone, so that threads change nothing; without them the
  // weights of a billion parameters take longer than a stage may load.
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t parts = std::clamp<size_t>(elements / kElementsOfThread, 1, cores);
  std::vector<Thread> threads;
  for (size_t part = 0; part < parts; ++part) {
    const auto fill = [&values, &spec, stream, first = elements * part / parts,
                       last = elements * (part + 1) / parts] {
      for (size_t i = first; i < last; ++i) {
        values[i] = static_cast<float>(spec.init_stddev * RandomNormal(stream, i));
      }
    };
    if (part + 1 < parts) {
      threads.emplace_back("weights", fill);
    } else {
      fill();
    }
  }
  threads.clear();  // joins
  return values;
}

}  // namespace stagecoach
