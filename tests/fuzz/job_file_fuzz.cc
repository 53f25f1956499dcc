// A job file, from its bytes to the network that it describes. The input is the file.
#include "base/errors/status.h"
#include "network/names/network_text.h"
#include "plan/job/job_spec.h"
#include "services/cli/spec/spec_reader.h"
#include "services/common/convert/spec/convert_spec.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

// What stands in a job file is small; what it describes need not be, and that takes its time.
constexpr size_t kMostBytes = 4096;

}  // namespace

void FuzzJobFile(FuzzInput input) {
  const std::string text = input.Text(kMostBytes);
  const absl::StatusOr<SpecFile> file = ParseSpec(text, "/jobs/job.yaml");
  if (!file.ok()) return CheckShown(file.status());
  const absl::StatusOr<ValidSpecFile> valid = ValidateSpecFile(*file);
  if (!valid.ok()) return CheckShown(valid.status());
  const v1::JobSpec proto = ToProto(valid->job);
  const absl::StatusOr<JobSpec> again = FromProto(proto);
  CHECK_OK(again.status());
  CHECK(ToProto(*again).SerializeAsString() == proto.SerializeAsString()) << text;
  CHECK(!valid->network.layers.empty()) << "a job that was taken has layers";
  CHECK(!CanonicalNetworkText(valid->network).empty()) << "whose text is its digest's";
}

}  // namespace stagecoach

FUZZ_TARGET(job_file, FuzzJobFile)
