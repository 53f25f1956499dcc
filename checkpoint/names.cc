#include "checkpoint/names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/job_name.h"

namespace stagecoach {
namespace {

constexpr char kStepPrefix[] = "step-";
constexpr char kTemporaryPrefix[] = ".tmp-";
constexpr size_t kStepDigits = 12;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Digits only: no sign, no space, no leading zero, so that a number has one spelling.
std::optional<uint64_t> ParseNumber(const std::string& text) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || absl::StrCat(value) != text) return std::nullopt;
  return value;
}

// A name from outside in an error message: printable and short.
std::string ShownName(const std::string& name) {
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, 80)), "\"");
}

}  // namespace

absl::Status CheckJobName(const std::string& name) {
  if (IsJobName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("job name ", ShownName(name), ": want ", kJobNameRule));
}

absl::Status CheckShardFile(const std::string& name) {
  const bool legal =
      !name.empty() && name.size() <= 255 && name.front() != '.' &&
      name.find("..") == std::string::npos && name != kManifestFile &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
      });
  if (legal) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shard file name ", ShownName(name),
                   ": want 1 to 255 of A-Z, a-z, 0-9, '.', '_' and '-', no \"..\", no leading "
                   "dot, and not ",
                   kManifestFile));
}

std::string FormatStepFolder(uint64_t step) {
  return absl::StrFormat("%s%0*d", kStepPrefix, static_cast<int>(kStepDigits), step);
}

std::optional<uint64_t> ParseStepFolder(const std::string& name) {
  const size_t prefix = sizeof(kStepPrefix) - 1;
  if (name.size() != prefix + kStepDigits) return std::nullopt;
  uint64_t step = 0;
  if (!absl::SimpleAtoi(name.substr(prefix), &step)) return std::nullopt;
  if (FormatStepFolder(step) != name) return std::nullopt;
  return step;
}

std::string FormatTemporaryFolder(const TemporaryName& name, const std::string& nonce) {
  return absl::StrCat(kTemporaryPrefix, name.term, "-", name.step, "-", nonce);
}

std::optional<TemporaryName> ParseTemporaryFolder(const std::string& name) {
  const size_t prefix = sizeof(kTemporaryPrefix) - 1;
  if (name.compare(0, prefix, kTemporaryPrefix) != 0) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(name.substr(prefix), '-');
  if (parts.size() != 3 || parts[2].empty()) return std::nullopt;
  const std::optional<uint64_t> term = ParseNumber(parts[0]);
  const std::optional<uint64_t> step = ParseNumber(parts[1]);
  if (!term || !step) return std::nullopt;
  return TemporaryName{.term = *term, .step = *step};
}

std::string JoinPath(const std::string& folder, const std::string& name) {
  return absl::StrCat(folder, "/", name);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace stagecoach
