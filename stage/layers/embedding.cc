// Embedding: token plus learned position, then dropout. Reads ids, so it has no input gradient.
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "stage/layers/parts.h"

namespace stagecoach {
namespace {

class Embedding final : public Layer {
 public:
  Embedding(const EmbeddingSpec& spec, LayerBuilder& builder)
      : Layer(builder.backend()),
        context_(builder.context()),
        rate_(spec.dropout),
        parameters_(builder.Take({"token.weight", "position.weight"})),
        random_(builder.TakeRandomSource()) {}

  absl::StatusOr<Tensors> Forward(Tensors inputs, const ForwardContext& context,
                                  Stash* stash) override {
    Tensor ids = TheOnly(std::move(inputs));
    const int64_t rows = context.sequences * context_;
    CHECK_EQ(ids.elements(), rows) << "ids of micro-batch " << context.micro_batch.value;
    const int64_t width = parameters_[0].spec.shape[1];
    ASSIGN_OR_RETURN(Tensor y,
                     NewActivation(backend(), parameters_[0].compute.dtype(), {rows, width}));
    backend().EmbeddingForward({ids, parameters_[0].compute, parameters_[1].compute, context_, y});
    if (Drops(context)) backend().Dropout({y, y, rate_, random_.At(context)});
    if (stash != nullptr) *stash = {context, {std::move(ids)}, {}};
    return Tensors{std::move(y)};
  }

  absl::StatusOr<Tensors> BackwardInput(Tensors output_gradients, Stash* stash) override {
    Tensor dy = TheOnly(std::move(output_gradients));
    if (Drops(stash->context)) {
      ASSIGN_OR_RETURN(Tensor kept, NewActivation(backend(), dy.dtype(), dy.shape()));
      backend().Dropout({dy, kept, rate_, random_.At(stash->context)});
      dy = std::move(kept);
    }
    stash->tensors.push_back(std::move(dy));
    return Tensors{};
  }

  absl::Status BackwardWeight(Stash stash) override {
    CHECK_EQ(stash.tensors.size(), 2u) << "the weight part follows the input part";
    backend().EmbeddingBackward({stash.tensors[0], stash.tensors[1], context_,
                                 parameters_[0].gradient, parameters_[1].gradient});
    return absl::OkStatus();
  }

  std::span<Parameter> parameters() override { return parameters_.span(); }

 private:
  bool Drops(const ForwardContext& context) const { return context.training && rate_ > 0.0; }

  const int64_t context_;
  const double rate_;
  const ParameterSlice parameters_;
  const RandomSource random_;
};

}  // namespace

std::unique_ptr<Layer> MakeEmbedding(const EmbeddingSpec& spec, LayerBuilder& builder) {
  return std::make_unique<Embedding>(spec, builder);
}

}  // namespace stagecoach
