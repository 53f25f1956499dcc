// Linear: y = x weight^T + bias. Stash: x, and dy from the input part on.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Linear final : public Layer {
 public:
  Linear(Backend& backend, ParameterSlice parameters)
      : Layer(backend),
        parameters_(std::move(parameters)),
        map_(backend, parameters_[0], parameters_.size() > 1 ? &parameters_[1] : nullptr) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    return ForwardOnto(Tensor(), std::move(inputs), context, stash);
  }

  absl::StatusOr<Tensors> ForwardOnto(const Tensor& trunk, Tensors inputs,
                                      const ForwardContext& context, Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    ASSIGN_OR_RETURN(Tensor y, map_.Forward(x, trunk));
    if (stash != nullptr) *stash = {context, {std::move(x)}, {}};
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor dx, map_.BackwardInput(dy));
    stash->tensors.push_back(std::move(dy));
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash stash) override {
    CHECK_EQ(stash.tensors.size(), 2u) << "the weight part follows the input part";
    map_.BackwardWeight(stash.tensors[1], stash.tensors[0]);
    return absl::OkStatus();
  }

  // Weight part first: x makes room for dx.
  absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash) override {
    const Tensor dy = TheOnly(std::move(output_gradients));
    map_.BackwardWeight(dy, stash.tensors[0]);
    stash.tensors.clear();
    ASSIGN_OR_RETURN(Tensor dx, map_.BackwardInput(dy));
    return Tensors{std::move(dx)};
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  const ParameterSlice parameters_;
  const LinearMap map_;
};

}  // namespace

std::unique_ptr<Layer> MakeLinear(const LinearSpec& spec, LayerBuilder& builder) {
  ParameterSlice parameters =
      spec.bias ? builder.Take({"weight", "bias"}) : builder.Take({"weight"});
  return std::make_unique<Linear>(builder.backend(), std::move(parameters));
}

}  // namespace stagecoach
