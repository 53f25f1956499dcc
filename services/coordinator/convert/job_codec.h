// ProtoJobCodec: encodes a spec for the coordinator's journal as proto3 JSON. A person can read it,
// and it survives added fields.  Errors: Decode returns DATA_LOSS for a text it did not write.
#ifndef STAGECOACH_SERVICES_COORDINATOR_CONVERT_JOB_CODEC_H_
#define STAGECOACH_SERVICES_COORDINATOR_CONVERT_JOB_CODEC_H_

#include <string>

#include "coordinator/loop/job_manager.h"

namespace stagecoach {

class ProtoJobCodec final : public JobCodec {
 public:
  std::string Encode(const JobSpec& spec) const override;
  absl::StatusOr<JobSpec> Decode(const std::string& text) const override;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_CONVERT_JOB_CODEC_H_
