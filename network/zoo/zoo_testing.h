// For tests of networks: expands and counts them.
#ifndef STAGECOACH_NETWORK_ZOO_ZOO_TESTING_H_
#define STAGECOACH_NETWORK_ZOO_ZOO_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "network/network_kinds.h"
#include "network/passes/tied.h"

namespace stagecoach {

inline Network ExpandedOf(const NetworkSpec& spec) {
  absl::StatusOr<Network> network = ExpandNetwork(spec);
  CHECK_OK(network.status());
  return *std::move(network);
}

inline int64_t ParametersOf(const Network& network) {
  int64_t elements = 0;
  for (const NetworkLayer& layer : network.layers) elements += OwnElements(layer);
  return elements;
}

inline std::vector<std::string> LabelsOf(const Network& network) {
  std::vector<std::string> labels;
  for (const NetworkLayer& layer : network.layers) labels.push_back(layer.label);
  return labels;
}

// Deviation of the initial values of a parameter that is there.
inline double StddevOf(const Network& network, const std::string& name) {
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.name == name) return parameter.init_stddev;
    }
  }
  CHECK(false) << "there is no " << name;
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_ZOO_TESTING_H_
