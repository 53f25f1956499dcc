#include "plan/data/data_set_path.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr size_t kMostPathBytes = 4096;
constexpr size_t kMostNames = 64;

absl::Status Refused(std::string_view path, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", ShownName(path), "\" in a data set: ", std::string(why)));
}

}  // namespace

bool IsDigest(std::string_view text) { return IsSha256Hex(text); }

absl::Status CheckPathInSet(std::string_view path) {
  if (path.size() > kMostPathBytes) return Refused(path.substr(0, 64), "longer than 4096 bytes");
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return Refused(path, "has a control character; rename the file");
    }
  }
  if (!IsUtf8Text(path)) return Refused(path, "is not UTF-8; rename the file");
  const std::vector<std::string> names = absl::StrSplit(std::string(path), '/');
  if (names.size() > kMostNames) return Refused(path, "has more than 64 folders in each other");
  for (const std::string& name : names) {
    if (name.empty() || name == "." || name == "..") {
      return Refused(path, "want names between slashes, none of them empty, \".\" or \"..\"");
    }
  }
  return absl::OkStatus();
}

std::string DataSetPath::Text() const {
  return absl::StrCat(kDataSetPrefix, set, path.empty() ? "" : "/", path);
}

absl::StatusOr<DataSetPath> ParseDataSetPath(std::string_view path) {
  if (!IsDataSetPath(path)) return Refused(path, "want store:/data/ID/PATH");
  const std::string_view rest = path.substr(std::string_view(kDataSetPrefix).size());
  const size_t slash = rest.find('/');
  DataSetPath parsed{.set = std::string(rest.substr(0, slash))};
  if (!IsDigest(parsed.set) && !IsJobName(parsed.set)) {
    return Refused(
        path, absl::StrCat("want an id of 64 hexadecimal digits, or a name of ", kJobNameRule));
  }
  if (slash == std::string_view::npos) return parsed;
  parsed.path = std::string(rest.substr(slash + 1));
  RETURN_IF_ERROR(CheckPathInSet(parsed.path));
  return parsed;
}

}  // namespace stagecoach
