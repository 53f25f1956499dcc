// Tar files for tests.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_TAR_TESTING_H_
#define STAGECOACH_STAGE_DATA_FORMATS_TAR_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace stagecoach {

inline constexpr size_t kTarBlock = 512;

inline std::string PaddedToBlock(std::string content) {
  content.resize((content.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  return content;
}

// A member in the form of POSIX ustar.
inline std::string TarMemberText(const std::string& name, const std::string& content,
                                 char type = '0') {
  std::string header(kTarBlock, '\0');
  const auto put = [&header](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, absl::StrFormat("%011o", content.size()));
  header[156] = type;
  put(257, "ustar");
  put(263, "00");
  put(148, "        ");
  int sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put(148, absl::StrFormat("%06o", sum) + std::string(1, '\0'));
  return header + PaddedToBlock(content);
}
inline const std::string kTarEnd(2 * kTarBlock, '\0');

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_TAR_TESTING_H_
