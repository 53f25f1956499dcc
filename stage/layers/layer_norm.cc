// Layer norm over the width, with weight and bias.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

constexpr float kEpsilon = 1e-5f;

class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(LayerBuilder& builder)
      : backend_(builder.backend()), parameters_(builder.Take({"weight", "bias"})) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    CHECK_EQ(x.shape().back(), parameters_[0].value.elements()) << "width into layer norm";
    const int64_t rows = x.shape()[0];
    ASSIGN_OR_RETURN(Tensor y, NewActivation(backend_, x.dtype(), x.shape()));
    ASSIGN_OR_RETURN(Tensor mean, NewActivation(backend_, DType::kF32, {rows}));
    ASSIGN_OR_RETURN(Tensor rstd, NewActivation(backend_, DType::kF32, {rows}));
    backend_.LayerNormForward(
        {x, parameters_[0].value, parameters_[1].value, kEpsilon, y, mean, rstd});
    if (stash != nullptr) {
      *stash = {context, {std::move(x), std::move(mean), std::move(rstd)}, {}};
    }
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor dx, NewActivation(backend_, dy.dtype(), dy.shape()));
    backend_.LayerNormBackwardInput({dy, stash->tensors[kX], parameters_[0].value,
                                     stash->tensors[kMean], stash->tensors[kRstd], dx});
    stash->tensors.push_back(std::move(dy));
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash stash) override {
    CHECK_EQ(stash.tensors.size(), 4u) << "the weight part follows the input part";
    backend_.LayerNormBackwardWeight({stash.tensors[kOutputGradient], stash.tensors[kX],
                                      stash.tensors[kMean], stash.tensors[kRstd],
                                      parameters_[0].gradient, parameters_[1].gradient});
    return absl::OkStatus();
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  enum { kX, kMean, kRstd, kOutputGradient };

  Backend& backend_;
  const ParameterSlice parameters_;
};

}  // namespace

std::unique_ptr<Layer> MakeLayerNorm(LayerBuilder& builder) {
  return std::make_unique<LayerNorm>(builder);
}

}  // namespace stagecoach
