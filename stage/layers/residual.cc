// Residual: x + f(x), f = the inner layers in order. Its last layer adds x to its result, and in the
// backward the first one adds dy to its gradient. Stash: its children's; x is the first one's.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Residual final : public Layer {
 public:
  Residual(Backend& backend, std::vector<std::unique_ptr<Layer>> inner, ParameterSlice parameters)
      : Layer(backend), inner_(std::move(inner)), parameters_(std::move(parameters)) {
    CHECK(!inner_.empty()) << "a residual around nothing";
  }

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    const Tensor x = TheOnly(inputs);
    Tensors tensors = std::move(inputs);
    if (stash != nullptr) *stash = {context, {}, std::vector<Stash>(inner_.size())};
    const auto child = [&](size_t i) { return stash == nullptr ? nullptr : &stash->children[i]; };
    const size_t last = inner_.size() - 1;
    for (size_t i = 0; i < last; ++i) {
      ASSIGN_OR_RETURN(tensors, inner_[i]->Forward(std::move(tensors), context, child(i)));
    }
    return inner_[last]->ForwardOnto(x, std::move(tensors), context, child(last));
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    const Tensor dy = TheOnly(output_gradients);
    Tensors tensors = std::move(output_gradients);
    for (size_t i = inner_.size(); i-- > 1;) {
      ASSIGN_OR_RETURN(tensors, inner_[i]->BackwardInput(std::move(tensors), &stash->children[i]));
    }
    return inner_[0]->BackwardInputOnto(dy, std::move(tensors), &stash->children[0]);
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
    for (size_t i = inner_.size(); i-- > 1;) {
      ASSIGN_OR_RETURN(tensors,
                       inner_[i]->Backward(std::move(tensors), std::move(stash.children[i])));
    }
    return inner_[0]->BackwardOnto(dy, std::move(tensors), std::move(stash.children[0]));
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
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
