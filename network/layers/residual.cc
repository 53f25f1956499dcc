#include "network/layers/residual.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/errors/field_check.h"
#include "network/layer_kind.h"
#include "network/layer_kinds.h"
#include "network/limits.h"

namespace stagecoach {
namespace {

class ResidualLayer final : public LayerKind {
 public:
  std::string_view name() const override { return ResidualSpec::kKind; }
  Attributes Defaults() const override { return {}; }
  bool HasLayers() const override { return true; }
  bool AddsToTrunk() const override { return true; }

  absl::StatusOr<ValueId> Build(const LayerSpec& layer, ValueId x, const LayerPlace& place,
                                LayerBuilder& builder) const override {
    const std::string path = FieldPath(place, name(), "layers");
    if (place.depth >= kMaxDepth) {
      return FieldError(path, absl::StrCat("residual number ", place.depth + 1, " inside another"),
                        absl::StrCat("at most ", kMaxDepth, " may be nested"));
    }
    RETURN_IF_ERROR(CheckInteger(path + " (count)", static_cast<int64_t>(layer.layers.size()), 1,
                                 kMaxInnerLayers));
    ValueId branch = x, before_last = x;
    std::map<std::string, int> seen;  // kinds so far
    for (size_t i = 0; i < layer.layers.size(); ++i) {
      const std::string& kind = layer.layers[i].kind;
      const int number = ++seen[kind];
      const LayerPlace inner{
          .path = absl::StrCat(path, "[", i, "]"),
          .prefix = absl::StrCat(place.prefix, kind,
                                 number > 1 ? absl::StrCat(number) : std::string(), "."),
          .depth = place.depth + 1};
      before_last = branch;
      ASSIGN_OR_RETURN(branch, BuildLayer(layer.layers[i], branch, inner, builder));
    }
    if (builder.WidthOf(branch) != builder.WidthOf(x)) {
      return FieldError(
          path, absl::StrCat("gives width ", builder.WidthOf(branch), " for ", builder.WidthOf(x)),
          "a residual must keep the width");
    }
    const ValueType &in = builder.writer().type(x), &out = builder.writer().type(branch);
    if (in != out) {
      return FieldError(path, absl::StrCat("gives ", FormatType(out), " for ", FormatType(in)),
                        "a residual must keep the type");
    }
    // A last layer that ends with a product adds the trunk before its one rounding. One that hands
    // its input on has no operation of its own.
    LayerWriter& writer = builder.writer();
    if (branch != before_last && writer.AddToLast(branch, x)) return branch;
    return writer.Emit("add", {}, {x, branch})[0];
  }

  std::string Function(const LayerSpec& layer) const override {
    std::string text = "residual(";
    for (const LayerSpec& inner : layer.layers) {
      const std::string word = LayerFunction(inner);
      if (word.empty()) continue;
      absl::StrAppend(&text, text.back() == '(' ? "" : " ", word);
    }
    return text + ")";
  }
};

}  // namespace

const LayerKind* ResidualKind() {
  static const ResidualLayer kind;
  return &kind;
}

}  // namespace stagecoach
