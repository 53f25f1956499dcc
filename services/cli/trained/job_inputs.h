// JobInputs: what commands on trained weights read of a job beside them, where a data set of the
// cluster has it: the tokenizer, and the weights that adapters adapt.
// Threads:   the caller's, which waits.
// Errors:    those of FetchedSet, in front of them the field and the data set.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_JOB_INPUTS_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_JOB_INPUTS_H_

#include <string>

#include "absl/status/status.h"
#include "services/cli/client/data_client.h"
#include "stagecoach/v1/model.pb.h"

namespace stagecoach {

// Which inputs a command reads.
struct InputChoice {
  bool tokenizer = true;
  bool weights = false;  // initialize.from
  bool config = false;   // of a folder there the .json files alone
};

// Whether a data set of the cluster has one of these.
bool InputsAreInCluster(const v1::JobSpec& spec, const InputChoice& choice);

// Brings them into the folder, and puts their paths in it into the spec: relative ones.
absl::Status FetchInputs(DataClient& client, const InputChoice& choice, const std::string& folder,
                         v1::JobSpec* spec);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_JOB_INPUTS_H_
