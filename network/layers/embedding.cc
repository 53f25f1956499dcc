#include "network/layers/embedding.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "operations/attention/embedding.h"
#include "operations/pointwise/dropout.h"
#include "operations/pointwise/scale.h"

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
    RETURN_IF_ERROR(CheckSinusoids(spec, width, place));
    const double root = std::sqrt(static_cast<double>(width));
    const double stddev = spec.scaled ? 1 / root : kInitStddev;
    std::vector<ValueId> inputs = {
        ids, builder.Weight(place, "token.weight", {vocabulary, width}, stddev)};
    if (spec.position && !spec.sinusoidal) {
      inputs.push_back(builder.Weight(place, "position.weight", {context, width}, stddev));
    }
    const EmbeddingAttributes tables{.tokens_only = inputs.size() == 2};
    ValueId y = writer.Emit("embedding", ToAttributes(tables), std::move(inputs))[0];
    if (spec.scaled) y = writer.Emit("scale", ToAttributes(ScaleAttributes{root}), {y})[0];
    if (spec.sinusoidal) y = writer.Emit("add_sinusoids", {}, {y})[0];
    const int64_t draw = writer.TakeDraw();
    if (spec.dropout == 0) return y;
    const DropoutAttributes attributes{spec.dropout, draw, true};
    return writer.Emit("dropout", ToAttributes(attributes), {y})[0];
  }

  absl::Status CheckSinusoids(const EmbeddingSpec& spec, int64_t width,
                              const LayerPlace& place) const {
    if (!spec.sinusoidal) return absl::OkStatus();
    const std::string path = FieldPath(place, name(), "sinusoidal");
    if (!spec.position) {
      return FieldError(path, "true", "adds positions, and there is no_position: leave one out");
    }
    if (width % 2 == 0) return absl::OkStatus();
    return FieldError(path, "true", absl::StrCat("needs an even width, and not ", width));
  }
  std::string FunctionOf(const EmbeddingSpec& spec) const override {
    return absl::StrCat("embedding", spec.sinusoidal ? ":sinusoidal" : "",
                        spec.scaled ? ":scaled" : "");
  }
};

}  // namespace

const LayerKind* EmbeddingKind() {
  static const EmbeddingLayer kind;
  return &kind;
}

}  // namespace stagecoach
