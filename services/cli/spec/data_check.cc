#include "services/cli/spec/data_check.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "plan/text_check.h"

namespace stagecoach {

absl::Status CheckData(const DataSpec& data) {
  const std::string& path = data.text.path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return absl::OkStatus();  // a pipe would block
  std::ifstream file(path, std::ios::binary);
  std::string head(kTextCheckBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (file.bad()) return absl::OkStatus();
  head.resize(static_cast<size_t>(file.gcount()));
  return CheckIsText(data.text, head);
}

}  // namespace stagecoach
