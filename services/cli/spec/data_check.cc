#include "services/cli/spec/data_check.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/status.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& data_file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(data_file.path, error)) {
    return absl::OkStatus();  // a pipe would block
  }
  std::ifstream file(data_file.path, std::ios::binary);
  std::string head(kDataHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (file.bad()) return absl::OkStatus();
  head.resize(static_cast<size_t>(file.gcount()));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(data_file.path, error));
  if (error) return absl::OkStatus();
  return DataKinds().Named(spec.data.kind).CheckFile(spec, network, data_file, head, bytes);
}

}  // namespace

absl::Status CheckDataFiles(const JobSpec& spec) {
  ASSIGN_OR_RETURN(const Network network, ExpandJob(spec));
  RETURN_IF_ERROR(ValidateData(spec.data, network));
  for (const DataFile& file : DataFiles(spec.data)) {
    if (!file.folder) RETURN_IF_ERROR(CheckFile(spec, network, file));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
