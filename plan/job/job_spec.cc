#include "plan/job/job_spec.h"

#include <string>
#include <utility>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "network/network_kinds.h"
#include "network/objective_kind.h"
#include "network/passes/freeze.h"
#include "network/passes/lora.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

absl::StatusOr<Network> ExpandJob(const JobSpec& spec) {
  ASSIGN_OR_RETURN(Network network, ExpandNetwork(spec.network, spec.precision));
  if (const std::string weights = SampleWeightsPath(spec.data); !weights.empty()) {
    ASSIGN_OR_RETURN(network, WithSampleWeights(std::move(network), weights));
  }
  ASSIGN_OR_RETURN(network, AddAdapters(std::move(network), spec.training.lora, "training.lora"));
  if (spec.write.has_value()) {
    const bool whole = spec.initialize.given() && spec.initialize.except.empty();
    return whole ? AsBase(std::move(network)) : FreezeAll(std::move(network));
  }
  return Freeze(std::move(network), spec.training.freeze, "training.freeze");
}

int64_t MicroBatchSize(int64_t batch_size, int64_t micro_batches, int64_t i) {
  CHECK(micro_batches >= 1 && i >= 0 && i < micro_batches) << i << " of " << micro_batches;
  return batch_size / micro_batches + (i < batch_size % micro_batches ? 1 : 0);
}

const char* RematerializationName(Rematerialization mode) {
  switch (mode) {
    case Rematerialization::kAlways:
      return "always";
    case Rematerialization::kExceptFirst:
      return "except_first";
    case Rematerialization::kNever:
      return "never";
  }
  return "unknown";
}

}  // namespace stagecoach
