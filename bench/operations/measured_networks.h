// The networks whose operations are measured, each with the samples of a micro-batch.
// Ownership: plain values.
// Errors:    INVALID_ARGUMENT for a name that is none, with those that there are.
#ifndef STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_
#define STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network_kinds.h"

namespace stagecoach {

struct MeasuredNetwork {
  const char* name;
  ModelSpec model;
  int64_t samples;  // of a micro-batch
};

// names: "gpt2_1.5b,resnet_50". samples: 0 leaves each network its own.
absl::StatusOr<std::vector<MeasuredNetwork>> ChosenNetworks(const std::string& names,
                                                            int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_
