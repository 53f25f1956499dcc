// WeightOptions: which trained weights a command uses, and on what.
// Threads: the main thread.
// Errors:  as WeightSource; of the job beside the weights with its place.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/files/data_facts.h"
#include "plan/job/job_spec.h"
#include "services/cli/commands/commands.h"
#include "services/cli/trained/weight_source.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct FoundWeights {
  WeightSource source;
  JobSpec spec;     // the job that they were trained by
  DataFacts facts;  // and what its data told
};
// Says which weights were taken where there were several.
absl::StatusOr<FoundWeights> FindWeights(const WeightOptions& options,
                                         const CommandContext& context);

int64_t ThreadsHere(const WeightOptions& options);
// This machine's processor.
std::unique_ptr<Backend> MakeBackendHere(const WeightOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_
