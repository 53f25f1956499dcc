#include "services/cli/commands/same_data.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/data/data_sets_of.h"
#include "services/cli/client/fetch_data.h"
#include "services/cli/commands/follow_command.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

absl::Status CheckSameData(DataClient& client, const v1::Job& there, const v1::JobSpec& spec,
                           const LocalParts& parts) {
  const absl::StatusOr<JobSpec> job = FromProto(there.spec());
  if (!job.ok()) return absl::OkStatus();
  for (const std::string& id : DataSetsOf(*job)) {
    const absl::StatusOr<FetchedSet> set = FetchedSet::Open(client, id);
    if (!set.ok() || set->manifest_sha256() == parts.manifest_sha256) return absl::OkStatus();
  }
  return ExistsWithAnotherSpec(there, spec, RemedyOfAnotherSpec(there.id()));
}

}  // namespace stagecoach
