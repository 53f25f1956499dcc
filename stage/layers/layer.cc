#include "stage/layers/layer.h"

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

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

absl::StatusOr<Tensors> Layer::ForwardOnto(const Tensor& trunk, Tensors inputs,
                                           const ForwardContext& context, Stash* stash) {
  return Sum(Forward(std::move(inputs), context, stash), trunk);
}

absl::StatusOr<Tensors> Layer::BackwardInputOnto(const Tensor& trunk, Tensors output_gradients,
                                                 Stash* stash) {
  return Sum(BackwardInput(std::move(output_gradients), stash), trunk);
}

absl::StatusOr<Tensors> Layer::BackwardOnto(const Tensor& trunk, Tensors output_gradients,
                                            Stash stash) {
  return Sum(Backward(std::move(output_gradients), std::move(stash)), trunk);
}

// In the branch's buffer: no layer keeps its own result, so the branch is free to be written, unless
// every layer of it was the identity and the branch is the trunk itself.
absl::StatusOr<Tensors> Layer::Sum(absl::StatusOr<Tensors> branch, const Tensor& trunk) {
  RETURN_IF_ERROR(branch.status());
  Tensor y = TheOnly(*std::move(branch));
  CHECK(y.shape() == trunk.shape()) << "a residual keeps the shape " << trunk.shape().ToString();
  if (y.buffer() == trunk.buffer()) {
    ASSIGN_OR_RETURN(y, NewActivation(backend_, trunk.dtype(), trunk.shape()));
    backend_.Fill(y, 0.0f);
    backend_.Add({trunk, y});
  }
  backend_.Add({trunk, y});
  return Tensors{std::move(y)};
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

}  // namespace stagecoach
