#include "services/cli/spec/file_head.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace stagecoach {

std::optional<std::string> FileHead(const std::string& path, size_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string head(most, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!file.is_open() || file.bad()) return std::nullopt;
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

}  // namespace stagecoach
