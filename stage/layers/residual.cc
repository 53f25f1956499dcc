// Residual: x + f(x), f = the inner layers in order. Stash: its children's; x is the first one's.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Residual final : public Layer {
 public:
  Residual(Backend& backend, std::vector<std::unique_ptr<Layer>> inner, ParameterSlice parameters)
      : backend_(backend), inner_(std::move(inner)), parameters_(std::move(parameters)) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    const Tensor x = TheOnly(inputs);
    Tensors tensors = std::move(inputs);
    if (stash != nullptr) *stash = {context, {}, std::vector<Stash>(inner_.size())};
    for (size_t i = 0; i < inner_.size(); ++i) {
      Stash* const child = stash == nullptr ? nullptr : &stash->children[i];
      ASSIGN_OR_RETURN(tensors, inner_[i]->Forward(std::move(tensors), context, child));
    }
    return Sum(std::move(tensors), x);
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    const Tensor dy = TheOnly(output_gradients);
    Tensors tensors = std::move(output_gradients);
    for (size_t i = inner_.size(); i-- > 0;) {
      ASSIGN_OR_RETURN(tensors, inner_[i]->BackwardInput(std::move(tensors), &stash->children[i]));
    }
    return Sum(std::move(tensors), dy);
  }

  absl::Status BackwardWeight(Stash stash) override {
    for (size_t i = inner_.size(); i-- > 0;) {
      RETURN_IF_ERROR(inner_[i]->BackwardWeight(std::move(stash.children[i])));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash) override {
    const Tensor dy = TheOnly(output_gradients);
    Tensors tensors = std::move(output_gradients);
    for (size_t i = inner_.size(); i-- > 0;) {
      ASSIGN_OR_RETURN(tensors,
                       inner_[i]->Backward(std::move(tensors), std::move(stash.children[i])));
    }
    return Sum(std::move(tensors), dy);
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  // branch + trunk, in the branch's buffer: no layer keeps its own result, so the branch is free to
  // be written, unless every inner layer was the identity and the branch is the trunk itself.
  absl::StatusOr<Tensors> Sum(Tensors branch, const Tensor& trunk) {
    Tensor y = TheOnly(std::move(branch));
    CHECK(y.shape() == trunk.shape()) << "a residual keeps the shape " << trunk.shape().ToString();
    if (y.buffer() == trunk.buffer()) {
      ASSIGN_OR_RETURN(y, NewActivation(backend_, trunk.dtype(), trunk.shape()));
      backend_.Fill(y, 0.0f);
      backend_.Add({trunk, y});
    }
    backend_.Add({trunk, y});
    return Tensors{std::move(y)};
  }

  Backend& backend_;
  const std::vector<std::unique_ptr<Layer>> inner_;
  const ParameterSlice parameters_;
};

}  // namespace

std::unique_ptr<Layer> MakeResidual(const ResidualSpec& spec, LayerBuilder& builder) {
  const size_t first = builder.next_parameter();
  std::vector<std::unique_ptr<Layer>> inner;
  inner.reserve(spec.layers.size());
  for (const LayerSpec& layer : spec.layers) inner.push_back(builder.Build(layer));
  return std::make_unique<Residual>(builder.backend(), std::move(inner), builder.TakenSince(first));
}

}  // namespace stagecoach
