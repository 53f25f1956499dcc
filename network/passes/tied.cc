#include "network/passes/tied.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/errors/suggest.h"
#include "network/limits.h"

namespace stagecoach {
namespace {

absl::StatusOr<ParameterUse> FindParameter(const std::string& name, const std::string& path,
                                           const Network& network) {
  std::vector<std::string> names;
  for (const NetworkLayer& layer : network.layers) {
    for (size_t i = 0; i < layer.parameters.size(); ++i) {
      if (layer.parameters[i].name == name) return ParameterUse{layer.index, static_cast<int>(i)};
      names.push_back(layer.parameters[i].name);
    }
  }
  return FieldError(path, absl::StrCat("\"", name, "\""),
                    absl::StrCat("there is no such parameter", DidYouMean(name, names)));
}

std::string TextOf(const Network& network, const ParameterUse& use) {
  return absl::StrCat(SpecOf(network, use).name, ", ", FormatType(TypeOf(network, use)));
}

}  // namespace

const ParameterSpec& SpecOf(const Network& network, const ParameterUse& use) {
  return network.layers[static_cast<size_t>(use.layer)].parameters[static_cast<size_t>(use.index)];
}

const ValueType& TypeOf(const Network& network, const ParameterUse& use) {
  const LayerLists& lists = *network.layers[static_cast<size_t>(use.layer)].lists;
  return lists.value(lists.parameters[static_cast<size_t>(use.index)]).type;
}

absl::Status TieParameter(const std::string& parameter, const std::string& owner,
                          const std::string& path, Network* network) {
  ASSIGN_OR_RETURN(const ParameterUse user, FindParameter(parameter, path, *network));
  ASSIGN_OR_RETURN(const ParameterUse first, FindParameter(owner, path, *network));
  const std::string both =
      absl::StrCat(TextOf(*network, user), ", tied to ", TextOf(*network, first));
  if (first.layer >= user.layer) {
    return FieldError(path, both, "must be tied to a parameter of a layer in front of its own");
  }
  if (SpecOf(*network, first).tied()) {
    return FieldError(
        path, both,
        absl::StrCat("that one is tied itself: tie both to ", SpecOf(*network, first).tied_to));
  }
  if (TypeOf(*network, user) != TypeOf(*network, first)) {
    return FieldError(path, both,
                      "must have the same type: give both layers one width, or do not tie them");
  }
  if (SpecOf(*network, user).trained != SpecOf(*network, first).trained) {
    return FieldError(path, both, "must be frozen both, or none of them");
  }
  int64_t uses = 1;
  for (const TiedParameter& tied : TiedParameters(*network)) {
    for (const ParameterUse& use : tied.users) {
      uses += use != user;
      // Its users would lose their owner.
      if (tied.owner == user) {
        return FieldError(path, both,
                          absl::StrCat(SpecOf(*network, use).name, " is tied to ", parameter,
                                       ": tie that to ", owner, " as well"));
      }
    }
  }
  if (uses > kMaxTiedUses) {
    return FieldError(path, absl::StrCat(uses, " tied parameters"),
                      absl::StrCat("at most ", kMaxTiedUses));
  }
  network->layers[static_cast<size_t>(user.layer)]
      .parameters[static_cast<size_t>(user.index)]
      .tied_to = owner;
  return absl::OkStatus();
}

std::vector<TiedParameter> TiedParameters(const Network& network) {
  std::map<std::string, std::vector<ParameterUse>> users;  // by the owner's name
  for (const NetworkLayer& layer : network.layers) {
    for (size_t i = 0; i < layer.parameters.size(); ++i) {
      const ParameterSpec& spec = layer.parameters[i];
      if (spec.tied()) users[spec.tied_to].push_back({layer.index, static_cast<int>(i)});
    }
  }
  std::vector<TiedParameter> all;
  if (users.empty()) return all;
  for (const NetworkLayer& layer : network.layers) {
    for (size_t i = 0; i < layer.parameters.size(); ++i) {
      const auto found = users.find(layer.parameters[i].name);
      if (found == users.end()) continue;
      all.push_back({{layer.index, static_cast<int>(i)}, std::move(found->second)});
      users.erase(found);
    }
  }
  CHECK(users.empty()) << users.begin()->first << " is tied to and is not there";
  return all;
}

CellTies TiesOfCell(const Network& network, int first, int last) {
  CellTies ties;
  for (const TiedParameter& tied : TiedParameters(network)) {
    if (!SpecOf(network, tied.owner).trained) continue;
    const auto crosses = [&tied](int cut) {
      return tied.owner.layer < cut && cut <= tied.users.back().layer;
    };
    if (first <= tied.owner.layer && tied.owner.layer < last) ties.owned.push_back(tied);
    if (crosses(first)) ties.received_values.push_back(tied.owner);
    if (crosses(last)) ties.sent_values.push_back(tied.owner);
    for (const ParameterUse& user : tied.users) {
      if (tied.owner.layer < first && user.layer >= first) ties.sent_gradients.push_back(user);
      if (tied.owner.layer < last && user.layer >= last) ties.received_gradients.push_back(user);
    }
  }
  std::sort(ties.sent_gradients.begin(), ties.sent_gradients.end());
  std::sort(ties.received_gradients.begin(), ties.received_gradients.end());
  return ties;
}

int64_t OwnElements(const NetworkLayer& layer) {
  int64_t elements = 0;
  for (const ParameterSpec& parameter : layer.parameters) {
    if (!parameter.tied()) elements += parameter.shape.elements();
  }
  return elements;
}

int64_t ValueBytes(const Network& network, const std::vector<ParameterUse>& of) {
  int64_t bytes = 0;
  for (const ParameterUse& use : of) {
    bytes += TypeBytes(TypeOf(network, use), 1, ComputeDType(network.precision));
  }
  return bytes;
}

int64_t GradientBytes(const Network& network, const std::vector<ParameterUse>& of) {
  int64_t bytes = 0;
  for (const ParameterUse& use : of) {
    bytes += SpecOf(network, use).shape.elements() * DTypeSize(DType::kF32);
  }
  return bytes;
}

}  // namespace stagecoach
