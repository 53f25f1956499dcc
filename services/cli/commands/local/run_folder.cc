#include "services/cli/commands/local/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 20;

// Also "local.lock", so that nobody holds the jobs of a cluster's coordinator by looking at its
// folder.
bool HasJournal(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "journal.sqlite", error) &&
         fs::exists(folder / "local.lock", error);
}

}  // namespace

absl::StatusOr<std::string> FindRunFolder(const std::string& given) {
  if (given.empty()) return absl::InvalidArgumentError("the state folder is empty; name one");
  const fs::path folder = fs::absolute(given).lexically_normal();
  if (HasJournal(folder)) return folder.string();
  std::string message = absl::StrCat(
      "state folder ", folder.string(),
      ": no run of `stagecoach local` is kept here (it has no journal.sqlite with a local.lock)");
  std::vector<std::string> runs = RunsBelow(given);
  if (runs.size() > kMostNamed) runs.erase(runs.begin(), runs.end() - kMostNamed);
  if (!runs.empty()) absl::StrAppend(&message, "; below it there are");
  for (const std::string& run : runs) absl::StrAppend(&message, "\n  ", run);
  return absl::NotFoundError(message);
}

std::vector<std::string> RunsBelow(const std::string& given) {
  const fs::path folder = fs::absolute(given).lexically_normal();
  std::vector<std::string> runs;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (HasJournal(entry->path())) runs.push_back(entry->path().string());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

std::optional<std::string> HolderOf(const std::string& run) {
  const std::string path = absl::StrCat(run, "/local.lock");
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const bool held = flock(descriptor, LOCK_SH | LOCK_NB) != 0;
  close(descriptor);
  if (!held) return std::nullopt;
  std::string who;
  std::getline(std::ifstream(path), who);
  return who.empty() ? "another `stagecoach`" : who;
}

}  // namespace stagecoach
