// Causal multi-head self-attention between its two projections.
// Stash: x, qkv, attended (the attention's output before proj), log_sum_exp; after the input part
// x, d_qkv, attended, dy, which is all that the two weight gradients need.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Attention final : public Layer {
 public:
  Attention(const AttentionSpec& spec, LayerBuilder& builder)
      : Layer(builder.backend()),
        context_(builder.context()),
        spec_(spec),
        parameters_(builder.Take({"qkv.weight", "qkv.bias", "proj.weight", "proj.bias"})),
        random_(builder.TakeRandomSource()),
        qkv_(backend(), parameters_[0], &parameters_[1]),
        proj_(backend(), parameters_[2], &parameters_[3]) {
    CHECK_EQ(qkv_.out(), 3 * qkv_.in());
    CHECK_EQ(qkv_.in() % spec_.heads, 0) << "heads divide the width";
  }

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    return ForwardOnto(Tensor(), std::move(inputs), context, stash);
  }

  absl::StatusOr<Tensors> ForwardOnto(const Tensor& trunk, Tensors inputs,
                                      const ForwardContext& context, Stash* stash) override {
    Tensor x = TheOnly(std::move(inputs));
    CHECK_EQ(x.shape()[0], context.sequences * context_) << "rows into attention";
    ASSIGN_OR_RETURN(Tensor qkv, qkv_.Forward(x));
    if (stash == nullptr) x.Reset();
    ASSIGN_OR_RETURN(Tensor attended,
                     NewActivation(backend(), qkv.dtype(), {qkv.shape()[0], qkv_.in()}));
    ASSIGN_OR_RETURN(Tensor log_sum_exp, NewActivation(backend(), DType::kF32,
                                                       {context.sequences, spec_.heads, context_}));
    backend().AttentionForward({ShapeOf(context), qkv, attended, log_sum_exp});
    if (stash == nullptr) qkv.Reset();
    ASSIGN_OR_RETURN(Tensor y, proj_.Forward(attended, trunk));
    if (stash != nullptr) {
      *stash = {
          context, {std::move(x), std::move(qkv), std::move(attended), std::move(log_sum_exp)}, {}};
    }
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor d_attended, proj_.BackwardInput(dy));
    ASSIGN_OR_RETURN(Tensor d_qkv, AttentionGradient(std::move(d_attended), stash));
    ASSIGN_OR_RETURN(Tensor dx, qkv_.BackwardInput(d_qkv));
    stash->tensors[kQkv] = std::move(d_qkv);
    stash->tensors[kLogSumExp] = std::move(dy);
    return Tensors{std::move(dx)};
  }

  absl::Status BackwardWeight(Stash stash) override {
    proj_.BackwardWeight(stash.tensors[kOutputGradient], stash.tensors[kAttended]);
    qkv_.BackwardWeight(stash.tensors[kQkvGradient], stash.tensors[kX]);
    return absl::OkStatus();
  }

  // The same operations, each weight gradient as soon as its arguments are there.
  absl::StatusOr<Tensors> Backward(Tensors output_gradients, Stash stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    ASSIGN_OR_RETURN(Tensor d_attended, proj_.BackwardInput(dy));
    proj_.BackwardWeight(dy, stash.tensors[kAttended]);
    dy.Reset();
    ASSIGN_OR_RETURN(Tensor d_qkv, AttentionGradient(std::move(d_attended), &stash));
    stash.tensors[kAttended].Reset();
    qkv_.BackwardWeight(d_qkv, stash.tensors[kX]);
    stash.tensors[kX].Reset();
    ASSIGN_OR_RETURN(Tensor dx, qkv_.BackwardInput(d_qkv));
    return Tensors{std::move(dx)};
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  // Places in the stash; from the input part on, qkv and log_sum_exp give way to gradients.
  enum { kX, kQkv, kAttended, kLogSumExp };
  enum { kQkvGradient = kQkv, kOutputGradient = kLogSumExp };

  AttentionShape ShapeOf(const ForwardContext& context) const {
    return {context.sequences,
            context_,
            spec_.heads,
            qkv_.in(),
            context.training ? spec_.dropout : 0.0,
            random_.At(context)};
  }

  // Drops qkv and log_sum_exp from the stash: nothing needs them any more.
  absl::StatusOr<Tensor> AttentionGradient(Tensor d_attended, Stash* stash) {
    const Tensor qkv = std::move(stash->tensors[kQkv]);
    const Tensor log_sum_exp = std::move(stash->tensors[kLogSumExp]);
    ASSIGN_OR_RETURN(Tensor d_qkv, NewActivation(backend(), qkv.dtype(), qkv.shape()));
    backend().AttentionBackward(
        {ShapeOf(stash->context), d_attended, qkv, stash->tensors[kAttended], log_sum_exp, d_qkv});
    return d_qkv;
  }

  const int64_t context_;
  const AttentionSpec spec_;
  const ParameterSlice parameters_;
  const RandomSource random_;
  const LinearMap qkv_, proj_;
};

}  // namespace

std::unique_ptr<Layer> MakeAttention(const AttentionSpec& spec, LayerBuilder& builder) {
  return std::make_unique<Attention>(spec, builder);
}

}  // namespace stagecoach
