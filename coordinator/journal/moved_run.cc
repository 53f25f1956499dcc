#include "coordinator/journal/moved_run.h"

#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

// The last component with its slash: "/1" of "/a/runs/1".
std::string_view LastOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(slash);
}

}  // namespace

MovedRun::MovedRun(const std::string& before, const std::string& now, FileSystem* files)
    : files_(files) {
  if (before == now || !absl::StartsWith(before, "/") || !absl::StartsWith(now, "/")) return;
  std::string_view from = before, to = now;
  while (!LastOf(from).empty() && LastOf(from) == LastOf(to)) {
    from.remove_suffix(LastOf(from).size());
    to.remove_suffix(LastOf(to).size());
  }
  before_ = from;
  now_ = to;
}

std::string MovedRun::Path(const std::string& path) const {
  if (before_.empty() || !absl::StartsWith(path, absl::StrCat(before_, "/"))) return path;
  std::string moved = absl::StrCat(now_, path.substr(before_.size()));
  return files_->Exists(moved) ? moved : path;
}

bool MovedRun::Move(JobSpec* spec) const {
  const JobSpec old = *spec;
  if (spec->initialize.given()) spec->initialize.from = Path(spec->initialize.from);
  ChangeDataPaths([this](const std::string& path) { return Path(path); }, &spec->data);
  return *spec != old;
}

}  // namespace stagecoach
