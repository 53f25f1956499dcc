// Dropout. Stash: nothing, the mask is drawn again from the same stream.
#include <utility>

#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Dropout final : public Layer {
 public:
  Dropout(const DropoutSpec& spec, LayerBuilder& builder)
      : Layer(builder.backend()), rate_(spec.rate), random_(builder.TakeRandomSource()) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    if (stash != nullptr) *stash = {context, {}, {}};
    return Apply(std::move(inputs), context);
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    return Apply(std::move(output_gradients), stash->context);
  }

  absl::Status BackwardWeight(Stash) override { return absl::OkStatus(); }
  std::span<Parameter> parameters() override { return {}; }

 private:
  // The identity hands the same buffer on.
  absl::StatusOr<Tensors> Apply(Tensors tensors, const ForwardContext& context) {
    if (!context.training || rate_ == 0.0) return tensors;
    const Tensor x = TheOnly(std::move(tensors));
    ASSIGN_OR_RETURN(Tensor y, NewActivation(backend(), x.dtype(), x.shape()));
    backend().Dropout({x, y, rate_, random_.At(context)});
    return Tensors{std::move(y)};
  }

  const double rate_;
  const RandomSource random_;
};

}  // namespace

std::unique_ptr<Layer> MakeDropout(const DropoutSpec& spec, LayerBuilder& builder) {
  return std::make_unique<Dropout>(spec, builder);
}

}  // namespace stagecoach
