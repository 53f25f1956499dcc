// The networks whose operations are measured, each with the samples of a micro-batch: well-known
// ones, or a job's.
// Ownership: plain values.
// Errors:    INVALID_ARGUMENT for a name that is none, with those that there are.
#ifndef STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_
#define STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/numbers/precision.h"
#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

struct MeasuredNetwork {
  std::string name;
  Network network;
  int64_t samples = 0;  // of a micro-batch
};

// names: "gpt2_1.5b,resnet_50". samples: 0 leaves each network its own.
absl::StatusOr<std::vector<MeasuredNetwork>> ChosenNetworks(const std::string& names,
                                                            int64_t samples, Precision precision);

// The job's network as it is trained, once for each size of its micro-batches. There is one size,
// or two if the number of micro-batches does not divide the batch. samples: the only size, if it is
// not 0.
absl::StatusOr<std::vector<MeasuredNetwork>> NetworksOfJob(const JobSpec& spec, int64_t samples);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_MEASURED_NETWORKS_H_
