// TemporaryFolder: a folder of a test's own, below the system's folder for temporary files. Tests
// run as processes beside each other, and so do two checkouts: no test may choose such a path.
// Ownership: removes the folder with all it holds; aborts if it cannot.
// Threads:   thread-compatible.
#ifndef STAGECOACH_BASE_TESTING_TEMPORARY_FOLDER_H_
#define STAGECOACH_BASE_TESTING_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/errors/check.h"

namespace stagecoach {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    namespace fs = std::filesystem;
    path_ = fs::canonical(fs::temp_directory_path()) / "stagecoach-XXXXXX";
    CHECK(mkdtemp(path_.data()) != nullptr) << path_ << ", errno " << errno;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    CHECK(!error) << path_ << ": " << error.message();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Absolute and without links.
  const std::string& path() const { return path_; }
  // The path of a file or folder in it, which need not exist.
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }

  // These make missing folders, and return the path.
  std::string MakeFolder(std::string_view name) const {
    std::filesystem::create_directories(File(name));
    return File(name);
  }
  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::string path = File(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    file.close();
    CHECK(file.good()) << path;
    return path;
  }
  std::string Write(std::string_view name, std::span<const uint8_t> bytes) const {
    return Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

 private:
  std::string path_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_TESTING_TEMPORARY_FOLDER_H_
