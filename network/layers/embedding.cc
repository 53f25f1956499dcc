#include "network/layers/embedding.h"

#include "network/layer_kind.h"
#include "operations/attention/embedding.h"
#include "operations/pointwise/dropout.h"

namespace stagecoach {
namespace {

class EmbeddingLayer final : public LayerKindOf<EmbeddingSpec> {
 public:
  bool ReadsIds() const override { return true; }

 private:
  absl::StatusOr<ValueId> Write(const EmbeddingSpec& spec, ValueId ids, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    LayerWriter& writer = builder.writer();
    const int64_t context = writer.type(ids).shape[0];
    const int64_t vocabulary = builder.network().vocabulary, width = builder.network().width;
    std::vector<ValueId> inputs = {
        ids, builder.Weight(place, "token.weight", {vocabulary, width}, kInitStddev)};
    if (spec.position) {
      inputs.push_back(builder.Weight(place, "position.weight", {context, width}, kInitStddev));
    }
    const EmbeddingAttributes tables{.tokens_only = !spec.position};
    const ValueId y = writer.Emit("embedding", ToAttributes(tables), std::move(inputs))[0];
    const int64_t draw = writer.TakeDraw();
    if (spec.dropout == 0) return y;
    const DropoutAttributes attributes{spec.dropout, draw, true};
    return writer.Emit("dropout", ToAttributes(attributes), {y})[0];
  }
};

}  // namespace

const LayerKind* EmbeddingKind() {
  static const EmbeddingLayer kind;
  return &kind;
}

}  // namespace stagecoach
