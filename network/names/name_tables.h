// The tables behind WeightNames, one file a family of networks. Each is given our names, those of the layers one after
// the other, and sets `other`, `older` and `layout` of every one.
// Errors: INVALID_ARGUMENT: what the network has and the other program's has not, as the end of "the network ...".
#ifndef STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_
#define STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "network/layer_builder.h"
#include "network/names/weight_names.h"

namespace stagecoach {

// Of torchvision and timm, whose names are the same.
absl::Status NameResnet(const Network& network, std::vector<WeightName>* names);

bool IsVit(const Network& network);
absl::Status NameVit(const Network& network, std::string_view table,
                     std::vector<WeightName>* names);

// Calls name(path, &entry) for each entry of the layer, from `*next` on; `path` is that of its array within the layer.
template <typename Name>
absl::Status ForNamesOf(const NetworkLayer& layer, size_t* next, std::vector<WeightName>* names,
                        const Name& name) {
  const size_t prefix = NamePrefix(layer.index).size();
  size_t own = layer.states.size();
  for (const ParameterSpec& parameter : layer.parameters) own += parameter.tied() ? 0 : 1;
  for (const size_t end = *next + own; *next < end; ++*next) {
    WeightName& entry = (*names)[*next];
    RETURN_IF_ERROR(name(entry.ours.substr(prefix), &entry));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_NAMES_NAME_TABLES_H_
