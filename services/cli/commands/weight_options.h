// WeightOptions: finds the trained weights that a command uses, and makes its back end.
// Threads: the main thread.
// Errors:  as WeightSource; errors of the job beside the weights name its place.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/data_facts.h"
#include "plan/job/job_spec.h"
#include "services/cli/commands/commands.h"
#include "services/cli/trained/decoding_network.h"
#include "services/cli/trained/weight_source.h"
#include "stage/backends/backend.h"

namespace stagecoach {

struct FoundWeights {
  WeightSource source;
  JobSpec spec;     // the job that trained them
  DataFacts facts;  // facts of its data
};
// If there were several weights, notes which were taken. tokenizer: the user's; empty: none.
absl::StatusOr<FoundWeights> FindWeights(const WeightOptions& options,
                                         const CommandContext& context,
                                         const std::string& tokenizer = "");

// Weights that write text or translations. tokenizer: empty: where the job had it.
struct FoundWriter {
  std::string name;  // of the weights
  JobSpec spec;
  DecodingNetwork network;
};
// check: of the job, before its weights are read.
absl::StatusOr<FoundWriter> FindWriter(
    Writes writes, const WeightOptions& options, const std::string& tokenizer,
    const CommandContext& context, const std::function<absl::Status(const JobSpec&)>& check = {});

// If adapters were merged, notes with what.
void NoteBase(const WeightSource& source, Console& console);

int64_t ThreadsHere(const WeightOptions& options);
// Back end of this machine's processor.
std::unique_ptr<Backend> MakeBackendHere(const WeightOptions& options);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_WEIGHT_OPTIONS_H_
