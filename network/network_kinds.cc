#include "network/network_kinds.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "base/suggest.h"
#include "network/objective_kind.h"

// A line a network. Its file in network/zoo defines `const NetworkKind* <Name>Network()`; its message is in
// proto/stagecoach/v1/model.proto.
#define STAGECOACH_NETWORK_KINDS(KIND) \
  KIND(Gpt)                            \
  KIND(Llama)                          \
  KIND(Mlp)                            \
  KIND(Resnet)                         \
  KIND(Sequence)

namespace stagecoach {

#define STAGECOACH_DECLARE_NETWORK(Name) const NetworkKind* Name##Network();
STAGECOACH_NETWORK_KINDS(STAGECOACH_DECLARE_NETWORK)
#undef STAGECOACH_DECLARE_NETWORK

namespace {

std::vector<const NetworkKind*> MakeNetworks() {
#define STAGECOACH_NETWORK_ENTRY(Name) Name##Network(),
  std::vector<const NetworkKind*> all = {STAGECOACH_NETWORK_KINDS(STAGECOACH_NETWORK_ENTRY)};
#undef STAGECOACH_NETWORK_ENTRY
  std::sort(all.begin(), all.end(),
            [](const NetworkKind* a, const NetworkKind* b) { return a->name() < b->name(); });
  for (size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i - 1]->name() != all[i]->name()) << "two networks " << all[i]->name();
  }
  return all;
}

}  // namespace

const std::vector<const NetworkKind*>& AllNetworkKinds() {
  static const auto* const all = new std::vector<const NetworkKind*>(MakeNetworks());
  return *all;
}

absl::StatusOr<const NetworkKind*> FindNetworkKind(std::string_view name) {
  std::vector<std::string> known;
  for (const NetworkKind* kind : AllNetworkKinds()) {
    if (kind->name() == name) return kind;
    known.emplace_back(kind->name());
  }
  return absl::NotFoundError(absl::StrCat("there is no network \"", std::string(name), "\"",
                                          Suggestion(std::string(name), known)));
}

absl::StatusOr<Network> ExpandModel(const ModelSpec& model, Precision precision) {
  const absl::StatusOr<const NetworkKind*> kind = FindNetworkKind(model.kind);
  if (!kind.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("model: ", kind.status().message()));
  }
  ASSIGN_OR_RETURN(Network network, (*kind)->Expand(model));
  RETURN_IF_ERROR(SetObjective(model.objective, "model.objective", &network));
  network.precision = precision;
  return network;
}

}  // namespace stagecoach
