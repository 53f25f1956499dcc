#include "services/cli/commands/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 20;

// Also "local.lock", so that nobody holds the jobs of a cluster's coordinator by looking at its folder.
bool HasJournal(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "journal.sqlite", error) &&
         fs::exists(folder / "local.lock", error);
}

// The newest last, as `stagecoach local` names them by their time.
std::vector<std::string> RunsBelow(const fs::path& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (HasJournal(entry->path())) runs.push_back(entry->path().string());
  }
  std::sort(runs.begin(), runs.end());
  if (runs.size() > kMostNamed) runs.erase(runs.begin(), runs.end() - kMostNamed);
  return runs;
}

}  // namespace

absl::StatusOr<std::string> FindRunFolder(const std::string& given) {
  if (given.empty()) return absl::InvalidArgumentError("the state folder is empty; name one");
  const fs::path folder = fs::absolute(given).lexically_normal();
  if (HasJournal(folder)) return folder.string();
  std::string message = absl::StrCat(
      "state folder ", folder.string(),
      ": no run of `stagecoach local` is kept here (it has no journal.sqlite with a local.lock)");
  const std::vector<std::string> runs = RunsBelow(folder);
  if (!runs.empty()) absl::StrAppend(&message, "; below it there are");
  for (const std::string& run : runs) absl::StrAppend(&message, "\n  ", run);
  return absl::NotFoundError(message);
}

}  // namespace stagecoach
