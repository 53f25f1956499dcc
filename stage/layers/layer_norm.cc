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
      : Layer(builder.backend()), parameters_(builder.Take({"weight", "bias"})) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    CHECK_EQ(x.shape().back(), parameters_[0].value.elements()) << "width into layer norm";
    const int64_t rows = x.shape()[0];
    ASSIGN_OR_RETURN(Tensor y, NewActivation(backend(), x.dtype(), x.shape()));
    ASSIGN_OR_RETURN(Tensor mean, NewActivation(backend(), DType::kF32, {rows}));
    ASSIGN_OR_RETURN(Tensor rstd, NewActivation(backend(), DType::kF32, {rows}));
    backend().LayerNormForward(
        {x, parameters_[0].value, parameters_[1].value, kEpsilon, y, mean, rstd});
    if (stash != nullptr) {
      *stash = {context, {std::move(x), std::move(mean), std::move(rstd)}, {}};
    }
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    return BackwardInputOnto(Tensor(), std::move(output_gradients), stash);
  }

  absl::StatusOr<Tensors> BackwardInputOnto(const Tensor& trunk, Tensors output_gradients,
                                            Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor dx, NewActivation(backend(), dy.dtype(), dy.shape()));
    backend().LayerNormBackwardInput({dy, stash->tensors[kX], parameters_[0].value,
                                      stash->tensors[kMean], stash->tensors[kRstd], dx, trunk});
    stash->tensors.push_back(std::move(dy));
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash stash) override {
    CHECK_EQ(stash.tensors.size(), 4u) << "the weight part follows the input part";
    backend().LayerNormBackwardWeight({stash.tensors[kOutputGradient], stash.tensors[kX],
                                       stash.tensors[kMean], stash.tensors[kRstd],
                                       parameters_[0].gradient, parameters_[1].gradient});
    return absl::OkStatus();
  }

  absl::StatusOr<Tensors> BackwardOnto(const Tensor& trunk, Tensors output_gradients,
                                       Stash stash) override {
    ASSIGN_OR_RETURN(Tensors dx, BackwardInputOnto(trunk, std::move(output_gradients), &stash));
    RETURN_IF_ERROR(BackwardWeight(std::move(stash)));
    return dx;
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  enum { kX, kMean, kRstd, kOutputGradient };

  const ParameterSlice parameters_;
};

}  // namespace

std::unique_ptr<Layer> MakeLayerNorm(LayerBuilder& builder) {
  return std::make_unique<LayerNorm>(builder);
}

}  // namespace stagecoach
