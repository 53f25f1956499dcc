#include "network/network_kinds.h"

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/listed.h"
#include "base/named_list.h"
#include "network/objective_kind.h"

namespace stagecoach {

// Each has a file in network/zoo, which defines `const NetworkKind* GptNetwork()`, and a message in
// proto/stagecoach/v1/networks.proto.
STAGECOACH_LISTED(Giver<const NetworkKind*>, Network,  //
                  AmoebanetB, AmoebanetD, Bert, Gpt, Llama, Mlp, Resnet, Sequence, Transformer,
                  Unet, Vit)

namespace {

const NamedList<NetworkKind>& Networks() {
  static const auto* const list = new NamedList<NetworkKind>("network", CallEach(kListedNetwork));
  return *list;
}

}  // namespace

const std::vector<const NetworkKind*>& AllNetworkKinds() { return Networks().all(); }

absl::StatusOr<const NetworkKind*> FindNetworkKind(std::string_view name) {
  return Networks().Find(name);
}

absl::StatusOr<Network> ExpandNetwork(const NetworkSpec& spec, Precision precision) {
  const absl::StatusOr<const NetworkKind*> kind = FindNetworkKind(spec.kind);
  if (!kind.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("model: ", kind.status().message()));
  }
  ASSIGN_OR_RETURN(Network network, (*kind)->Expand(spec));
  RETURN_IF_ERROR(SetObjective(spec.objective, "model.objective", &network));
  network.precision = precision;
  return network;
}

}  // namespace stagecoach
