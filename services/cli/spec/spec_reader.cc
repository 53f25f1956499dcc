#include "services/cli/spec/spec_reader.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "plan/job/data_kinds.h"
#include "services/cli/spec/beside_job_file.h"
#include "services/cli/spec/message_reader.h"
#include "services/common/convert/spec/convert_kind.h"
#include "services/common/convert/spec/convert_spec.h"

namespace stagecoach {
namespace {

constexpr char kStandardInput[] = "standard input";

// Not those in a data set, or on the stages' machines.
void MakePathsAbsolute(const std::string& file, v1::JobSpec* spec) {
  const v1::Initialize& initialize = spec->initialize();
  if (!initialize.from().empty() && initialize.dataset().empty() &&
      initialize.on_stages().empty()) {
    spec->mutable_initialize()->set_from(BesideJobFile(file, initialize.from()));
  }
  if (!spec->data().dataset().empty() || !spec->data().on_stages().empty()) return;
  absl::StatusOr<DataSpec> data = DataFromProto(spec->data());
  if (!data.ok()) return;  // who validates says why
  ChangeDataPaths([&file](const std::string& path) { return BesideJobFile(file, path); }, &*data);
  KindToProto(*data, spec->mutable_data());
}

// "training.steps: 0; must be >= 1" -> "training.steps"; empty if the message begins with no path.
std::string LeadingPath(const std::string& message) {
  const size_t end = message.find_first_of(":= ,");
  return end == std::string::npos ? "" : message.substr(0, end);
}

// "a.b[3].c" -> "a.b[3]" -> "a.b" -> "a" -> "".
std::string ParentPath(const std::string& path) {
  const size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

absl::StatusOr<SpecFile> ReadSpec(const std::string& text, const std::string& file) {
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file, YamlLimits{}));
  SpecFile result;
  result.file = file;
  RETURN_IF_ERROR(ReadMessage(root, file, &result.spec, &result.positions));
  return result;
}

}  // namespace

absl::StatusOr<SpecFile> ParseSpec(const std::string& text, const std::string& file) {
  absl::StatusOr<SpecFile> read = ReadSpec(text, file);
  const std::string kind = read.ok() ? "" : KindInstead(text);
  if (!kind.empty()) return ErrorAt(file, {}, kind);
  if (read.ok()) MakePathsAbsolute(file, &read->spec);
  return read;
}

absl::StatusOr<SpecFile> ReadSpecFile(const std::string& path) {
  if (path == "-") {
    // No folder of its own: relative paths are those of the shell that the command stands in.
    ASSIGN_OR_RETURN(const std::string text,
                     ReadSmallStream(std::cin, kStandardInput, YamlLimits{}.bytes));
    return ParseSpec(text, kStandardInput);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, YamlLimits{}.bytes));
  return ParseSpec(text, path);
}

absl::Status LocateError(const SpecFile& spec_file, const absl::Status& error) {
  if (error.ok()) return error;
  const std::string message(error.message());
  for (std::string path = LeadingPath(message); !path.empty(); path = ParentPath(path)) {
    const auto found = spec_file.positions.find(path);
    if (found == spec_file.positions.end()) continue;
    return absl::Status(error.code(), ErrorAt(spec_file.file, found->second, message).message());
  }
  return absl::Status(error.code(), ErrorAt(spec_file.file, {}, message).message());
}

absl::StatusOr<ValidSpecFile> ValidateSpecFile(SpecFile spec_file) {
  absl::StatusOr<JobSpec> job = FromProto(spec_file.spec);
  if (!job.ok()) return LocateError(spec_file, job.status());
  absl::StatusOr<Network> network = ExpandValidJob(*job);
  if (!network.ok()) return LocateError(spec_file, network.status());
  return ValidSpecFile{std::move(spec_file), *std::move(job), *std::move(network)};
}

absl::Status ValidateAgain(const ValidSpecFile& spec_file) {
  return LocateError(spec_file, ValidateJob(spec_file.job, spec_file.network));
}

}  // namespace stagecoach
