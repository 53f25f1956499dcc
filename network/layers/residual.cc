// x + f(x), f = the inner layers in order.
#include <map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "network/limits.h"

namespace stagecoach {
namespace {

// These end with a product, which adds the trunk before its one rounding.
bool EndsWithLinear(const LayerSpec& layer) {
  return std::holds_alternative<AttentionSpec>(layer.kind) ||
         std::holds_alternative<MlpSpec>(layer.kind) ||
         std::holds_alternative<LinearSpec>(layer.kind);
}

}  // namespace

absl::StatusOr<ValueId> BuildResidual(const ResidualSpec& spec, ValueId x, const LayerPlace& place,
                                      LayerBuilder& builder) {
  const std::string path = place.path + ".residual.layers";
  if (place.depth >= kMaxDepth) {
    return FieldError(path, absl::StrCat("residual number ", place.depth + 1, " inside another"),
                      absl::StrCat("at most ", kMaxDepth, " may be nested"));
  }
  RETURN_IF_ERROR(CheckInteger(path + " (count)", static_cast<int64_t>(spec.layers.size()), 1,
                               kMaxInnerLayers));
  ValueId branch = x;
  std::map<std::string, int> seen;  // kinds so far
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string kind = LayerKindName(spec.layers[i]);
    const int number = ++seen[kind];
    const LayerPlace inner{
        .path = absl::StrCat(path, "[", i, "]"),
        .prefix = absl::StrCat(place.prefix, kind,
                               number > 1 ? absl::StrCat(number) : std::string(), "."),
        .depth = place.depth + 1};
    ASSIGN_OR_RETURN(branch, BuildLayer(spec.layers[i], branch, inner, builder));
  }
  if (builder.WidthOf(branch) != builder.WidthOf(x)) {
    return FieldError(
        path, absl::StrCat("gives width ", builder.WidthOf(branch), " for ", builder.WidthOf(x)),
        "a residual must keep the width");
  }
  LayerWriter& writer = builder.writer();
  if (!EndsWithLinear(spec.layers.back())) return writer.Emit("add", {}, {x, branch})[0];
  writer.AddToLastLinear(x);
  return branch;
}

}  // namespace stagecoach
