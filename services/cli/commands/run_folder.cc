#include "services/cli/commands/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 20;

bool HasJournal(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "journal.sqlite", error);
}

// The newest last, as `stagecoach local` names them by their time.
std::vector<std::string> RunsBelow(const fs::path& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (HasJournal(entry.path())) runs.push_back(entry.path().string());
  }
  std::sort(runs.begin(), runs.end());
  if (runs.size() > kMostNamed) runs.erase(runs.begin(), runs.end() - kMostNamed);
  return runs;
}

}  // namespace

absl::StatusOr<std::string> FindRunFolder(const std::string& given) {
  const fs::path folder = fs::absolute(given).lexically_normal();
  if (HasJournal(folder)) return folder.string();
  std::string message = absl::StrCat("state folder ", folder.string(),
                                     ": no run is kept here (it has no journal.sqlite)");
  const std::vector<std::string> runs = RunsBelow(folder);
  if (!runs.empty()) absl::StrAppend(&message, "; below it there are");
  for (const std::string& run : runs) absl::StrAppend(&message, "\n  ", run);
  return absl::NotFoundError(message);
}

}  // namespace stagecoach
