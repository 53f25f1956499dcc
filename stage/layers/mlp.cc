// Mlp: linear up, GELU, linear down.
// Stash: x, pre (before the GELU), activation (after it); after the input part x, d_pre,
// activation, dy, which is all that the two weight gradients need.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Mlp final : public Layer {
 public:
  explicit Mlp(LayerBuilder& builder)
      : Layer(builder.backend()),
        parameters_(builder.Take({"up.weight", "up.bias", "down.weight", "down.bias"})),
        up_(backend(), parameters_[0], &parameters_[1]),
        down_(backend(), parameters_[2], &parameters_[3]) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    return ForwardOnto(Tensor(), std::move(inputs), context, stash);
  }

  absl::StatusOr<Tensors> ForwardOnto(const Tensor& trunk, Tensors inputs,
                                      const ForwardContext& context, Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    ASSIGN_OR_RETURN(LinearMap::WithGelu hidden, up_.ForwardWithGelu(x));
    if (stash == nullptr) {
      x.Reset();
      hidden.y.Reset();
    }
    ASSIGN_OR_RETURN(Tensor y, down_.Forward(hidden.activation, trunk));
    if (stash != nullptr) {
      *stash = {context, {std::move(x), std::move(hidden.y), std::move(hidden.activation)}, {}};
    }
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor d_pre, down_.BackwardInput(dy, stash->tensors[kPre]));
    stash->tensors[kPre].Reset();
    ASSIGN_OR_RETURN(Tensor dx, up_.BackwardInput(d_pre));
    stash->tensors[kPreGradient] = std::move(d_pre);
    stash->tensors.push_back(std::move(dy));
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash stash) override {
    CHECK_EQ(stash.tensors.size(), 4u) << "the weight part follows the input part";
    down_.BackwardWeight(stash.tensors[kOutputGradient], stash.tensors[kActivation]);
    up_.BackwardWeight(stash.tensors[kPreGradient], stash.tensors[kX]);
    return absl::OkStatus();
  }

  // The same operations; down's weight gradient first, so that the activation makes room for d_pre.
  absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    down_.BackwardWeight(dy, stash.tensors[kActivation]);
    stash.tensors[kActivation].Reset();
    ASSIGN_OR_RETURN(Tensor d_pre, down_.BackwardInput(dy, stash.tensors[kPre]));
    dy.Reset();
    stash.tensors[kPre].Reset();
    up_.BackwardWeight(d_pre, stash.tensors[kX]);
    stash.tensors[kX].Reset();
    ASSIGN_OR_RETURN(Tensor dx, up_.BackwardInput(d_pre));
    return Tensors{std::move(dx)};
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  // Places in the stash; in the input part d_pre takes the place of pre.
  enum { kX, kPre, kActivation, kOutputGradient };
  enum { kPreGradient = kPre };

  const ParameterSlice parameters_;
  const LinearMap up_, down_;
};

}  // namespace

std::unique_ptr<Layer> MakeMlp(LayerBuilder& builder) { return std::make_unique<Mlp>(builder); }

}  // namespace stagecoach
