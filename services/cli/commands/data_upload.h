// DataUpload: brings files of this machine to the cluster, with a bar on a terminal and a note
// elsewhere. Shared by submit, `data put`, and commands that write texts on stages.
// Threads:   the main thread.
// Errors:    those of FileSet, MakeParts and Upload (services/cli/data/). After a stop, a note says
//            that the next run goes on where this one was.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_DATA_UPLOAD_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_DATA_UPLOAD_H_

#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "services/cli/commands/commands.h"
#include "services/cli/data/file_set.h"
#include "services/cli/data/local_parts.h"
#include "services/cli/data/upload.h"

namespace stagecoach {

// Asked before anything is uploaded; an error ends it.
using CheckParts = std::function<absl::Status(const LocalParts&)>;

// files: sorted. check: may be empty.
absl::StatusOr<v1::DataSet> UploadFiles(DataClient& client, const FileSet& files,
                                        const DataSetName& name, CommandContext& context,
                                        const CheckParts& check = {});

struct JobUpload {
  std::set<std::string> not_here;  // paths that the stages' machines have
  CheckParts check;                // may be empty
  bool again = false;              // as in DataSetName
};

// Uploads what the job names of this machine, and puts its places in the cluster into the spec.
absl::Status UploadDataOf(JobClient& client, v1::JobSpec* spec, CommandContext& context,
                          const JobUpload& upload = {});

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_DATA_UPLOAD_H_
