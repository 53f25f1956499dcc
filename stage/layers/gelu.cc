// GELU (tanh form) by itself. Stash: x.
#include <utility>

#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Gelu final : public Layer {
 public:
  explicit Gelu(Backend& backend) : Layer(backend) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    ASSIGN_OR_RETURN(Tensor y, NewActivation(backend(), x.dtype(), x.shape()));
    backend().GeluForward({x, y});
    if (stash != nullptr) *stash = {context, {std::move(x)}, {}};
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    const Tensor dy = TheOnly(std::move(output_gradients));
    const Tensor x = TheOnly(std::move(stash->tensors));
    stash->tensors.clear();
    ASSIGN_OR_RETURN(Tensor dx, NewActivation(backend(), x.dtype(), x.shape()));
    backend().GeluBackward({dy, x, dx});
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash) override { return absl::OkStatus(); }
  std::span<Parameter> parameters() override { return {}; }
};

}  // namespace

std::unique_ptr<Layer> MakeGelu(LayerBuilder& builder) {
  return std::make_unique<Gelu>(builder.backend());
}

}  // namespace stagecoach
