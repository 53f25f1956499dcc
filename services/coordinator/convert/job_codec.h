// ProtoJobCodec: the coordinator's journal keeps a spec as proto3 JSON, which a person can read and
// which survives added fields.  Errors: Decode returns DATA_LOSS for a text it did not write.
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
