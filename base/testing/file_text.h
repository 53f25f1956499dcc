// FileText, FileBytes: a whole file; for tests. They abort if it cannot be read.
#ifndef STAGECOACH_BASE_TESTING_FILE_TEXT_H_
#define STAGECOACH_BASE_TESTING_FILE_TEXT_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/errors/check.h"

namespace stagecoach {

inline std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<uint8_t> FileBytes(const std::filesystem::path& path) {
  const std::string text = FileText(path);
  return {text.begin(), text.end()};
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_TESTING_FILE_TEXT_H_
