#include "stage/backends/cuda/matmul/matmul_table_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach::cuda {
namespace {

absl::Status SystemError(const std::string& path, const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": ", what));
}

std::string NewFile(const std::string& path) { return path + ".new"; }

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(path, ": ", error.message()));
  // A pipe would be waited for, a device never ends.
  if (!std::filesystem::is_regular_file(kind)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no file"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostMatmulTableBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(SystemError(path, "reading").message());
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostMatmulTableBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is larger than ", kMostMatmulTableBytes,
                                                   " bytes, and no table of matrix algorithms"));
  }
  return text;
}

}  // namespace

absl::StatusOr<MatmulTable> LoadMatmulTable(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return Annotate(MatmulTable::Parse(text), path);
}

absl::Status CheckMatmulTableFile(const std::string& path) {
  errno = 0;
  if (!std::ofstream(NewFile(path), std::ios::binary)) return SystemError(NewFile(path), "writing");
  std::remove(NewFile(path).c_str());
  return absl::OkStatus();
}

absl::Status SaveMatmulTable(const MatmulTable& table, const std::string& path) {
  errno = 0;
  std::ofstream file(NewFile(path), std::ios::binary);
  file << table.Format();
  file.close();
  if (!file) return SystemError(NewFile(path), "writing");
  if (std::rename(NewFile(path).c_str(), path.c_str()) != 0) return SystemError(path, "renaming");
  return absl::OkStatus();
}

}  // namespace stagecoach::cuda
