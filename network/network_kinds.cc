#include "network/network_kinds.h"

#include "absl/strings/str_cat.h"
#include "base/named_list.h"
#include "base/status.h"
#include "network/objective_kind.h"

// A line a network. Its file in network/zoo defines `const NetworkKind* <Name>Network()`; its message is in
// proto/stagecoach/v1/networks.proto.
#define STAGECOACH_NETWORK_KINDS(KIND) \
  KIND(AmoebanetB)                     \
  KIND(AmoebanetD)                     \
  KIND(Gpt)                            \
  KIND(Llama)                          \
  KIND(Mlp)                            \
  KIND(Resnet)                         \
  KIND(Sequence)                       \
  KIND(Unet)                           \
  KIND(Vit)

namespace stagecoach {

#define STAGECOACH_DECLARE_NETWORK(Name) const NetworkKind* Name##Network();
STAGECOACH_NETWORK_KINDS(STAGECOACH_DECLARE_NETWORK)
#undef STAGECOACH_DECLARE_NETWORK

namespace {

const NamedList<NetworkKind>& Networks() {
#define STAGECOACH_NETWORK_ENTRY(Name) Name##Network(),
  static const auto* const list =
      new NamedList<NetworkKind>("network", {STAGECOACH_NETWORK_KINDS(STAGECOACH_NETWORK_ENTRY)});
#undef STAGECOACH_NETWORK_ENTRY
  return *list;
}

}  // namespace

const std::vector<const NetworkKind*>& AllNetworkKinds() { return Networks().all(); }

absl::StatusOr<const NetworkKind*> FindNetworkKind(std::string_view name) {
  return Networks().Find(name);
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
