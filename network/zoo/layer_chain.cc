#include "network/zoo/layer_chain.h"

#include "absl/strings/str_cat.h"
#include "base/field_check.h"
#include "base/status.h"
#include "network/layer_kinds.h"
#include "network/limits.h"
#include "network/network_builder.h"

namespace stagecoach {
absl::StatusOr<Network> ChainOnTokens(const TokenShape& shape, const std::vector<LayerSpec>& layers,
                                      const std::string& path) {
  const std::string list = path + ".layers";
  RETURN_IF_ERROR(
      CheckInteger(list + " (count)", static_cast<int64_t>(layers.size()), 1, kMaxLayers));
  NetworkBuilder builder(BranchStddev(layers),
                         {.vocabulary = shape.vocabulary, .width = shape.width});
  const ValueType ids{Element::kIds, Leading::kSamples, {shape.context}};
  const WireId tokens = builder.Input("tokens", ids, shape.vocabulary);
  const WireId targets = builder.Input("targets", ids, shape.vocabulary);
  WireId x = tokens;
  for (size_t i = 0; i < layers.size(); ++i) {
    ASSIGN_OR_RETURN(x, builder.Add(layers[i], absl::StrCat(list, "[", i, "]"), x));
  }
  const int64_t width = builder.type(x).shape.back();
  if (width != shape.vocabulary) {
    return FieldError(absl::StrCat(list, "[", layers.size() - 1, "]"),
                      absl::StrCat("gives width ", width),
                      absl::StrCat("the last layer must give logits of the vocabulary: end with "
                                   "linear: {out: ",
                                   shape.vocabulary, "}"));
  }
  return builder.Finish({.logits = x, .targets = targets}, path);
}

}  // namespace stagecoach
