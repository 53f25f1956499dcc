#include "network/zoo/branch.h"

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "network/layer_kinds.h"
#include "network/layers/dropout.h"

namespace stagecoach {
namespace {

absl::StatusOr<ValueId> Write(const Branch& branch, const std::string& path, ValueId trunk,
                              LayerBuilder& layer) {
  const auto named = [&](const LayerSpec& spec, ValueId x) {
    return BuildLayer(spec, x, {.path = path, .prefix = spec.kind + "."}, layer);
  };
  ValueId x = trunk;
  if (branch.place == NormPlace::kPre) {
    ASSIGN_OR_RETURN(x, named(branch.norm, x));
  }
  ASSIGN_OR_RETURN(x, named(branch.layer, x));
  if (branch.dropout > 0) {
    ASSIGN_OR_RETURN(x, BuildLayer(DropoutSpec{.rate = branch.dropout}, x, {.path = path}, layer));
  }
  LayerWriter& writer = layer.writer();
  if (!writer.AddToLast(x, trunk)) x = writer.Emit("add", {}, {trunk, x})[0];
  RETURN_IF_ERROR(writer.status());
  if (branch.place == NormPlace::kPre) return x;
  return named(branch.norm, x);
}

NetworkBuilder::Naming NamingOf(const Branch& branch, const std::string& path) {
  const std::string layer = LayerFunction(branch.layer), norm = LayerFunction(branch.norm);
  if (branch.place == NormPlace::kPre) {
    return {absl::StrCat("residual(", branch.norm.kind, ", ", branch.layer.kind, ")"),
            absl::StrCat("residual(", norm, " ", layer, ")"), path};
  }
  return {absl::StrCat("residual(", branch.layer.kind, "), ", branch.norm.kind),
          absl::StrCat("residual(", layer, ") ", norm), path};
}

}  // namespace

absl::StatusOr<WireId> AddBranch(const Branch& branch, const std::string& path, WireId x,
                                 const SideInputs<WireId>& sides, NetworkBuilder* builder) {
  return builder->Add(NamingOf(branch, path), x, sides, [&](ValueId trunk, LayerBuilder& layer) {
    return Write(branch, path, trunk, layer);
  });
}

}  // namespace stagecoach
