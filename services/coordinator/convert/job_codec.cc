#include "services/coordinator/convert/job_codec.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {

std::string ProtoJobCodec::Encode(const JobSpec& spec) const {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(ToProto(spec), &text, options);
  CHECK(status.ok()) << "a spec that was accepted can be printed: " << status.ToString();
  return text;
}

absl::StatusOr<JobSpec> ProtoJobCodec::Decode(const std::string& text) const {
  v1::JobSpec proto;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &proto);
  if (!status.ok()) {
    return absl::DataLossError(absl::StrCat("job spec in the journal: ", status.ToString()));
  }
  absl::StatusOr<JobSpec> spec = FromProto(proto);
  if (spec.ok()) return spec;
  return absl::DataLossError(
      absl::StrCat("job spec in the journal: ", std::string(spec.status().message())));
}

}  // namespace stagecoach
