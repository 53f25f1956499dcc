#include "services/cli/spec/data_check.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "base/errors/status.h"
#include "services/cli/spec/file_head.h"

namespace stagecoach {
namespace {

absl::Status CheckFile(const JobSpec& spec, const Network& network, const DataFile& data_file) {
  const std::optional<std::string> head = FileHead(data_file.path, kDataHeadBytes);
  if (!head.has_value()) return absl::OkStatus();
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(data_file.path, error));
  if (error) return absl::OkStatus();
  return DataKinds().Named(spec.data.kind).CheckFile(spec, network, data_file, *head, bytes);
}

}  // namespace

std::vector<DataFile> FilesRead(const DataSpec& data, bool writes) {
  std::vector<DataFile> files = DataFiles(data);
  if (writes) std::erase_if(files, [](const DataFile& file) { return file.field != "tokenizer"; });
  return files;
}

absl::Status CheckDataFiles(const JobSpec& spec, const Network& network) {
  for (const DataFile& file : FilesRead(spec.data, spec.write.has_value())) {
    if (!file.folder && !file.beside) RETURN_IF_ERROR(CheckFile(spec, network, file));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
