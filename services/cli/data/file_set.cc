#include "services/cli/data/file_set.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {
namespace {

absl::Status NoDataFile(const std::string& here, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(ShownName(here), ": ", why));
}

absl::Status SystemErrorAt(const std::string& here, int error) {
  const std::string text = absl::StrCat(ShownName(here), ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG) {
    return absl::InvalidArgumentError(text);
  }
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnavailableError(text);
}

absl::StatusOr<std::vector<std::string>> NamesInFolder(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (open == nullptr) return SystemErrorAt(folder, errno);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = readdir(open.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  if (errno != 0) return SystemErrorAt(folder, errno);
  std::sort(names.begin(), names.end());
  return names;
}

int64_t NanosOf(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp FileStamp::Of(const struct stat& info) {
  return {.bytes = info.st_size,
          .modified_nanos = NanosOf(info.st_mtim),
          .changed_nanos = NanosOf(info.st_ctim),
          .inode = info.st_ino};
}

// One Add: a path with all below it.
class FileSet::Walk {
 public:
  Walk(FileSet* set, const Takes& takes) : set_(*set), takes_(takes) {}

  absl::Status Visit(const std::string& here, const std::string& path) {
    struct stat info;
    if (stat(here.c_str(), &info) != 0) return SystemErrorAt(here, errno);
    if (!path.empty()) RETURN_IF_ERROR(Annotate(CheckPathInSet(path), ShownName(here)));
    if (S_ISDIR(info.st_mode)) return VisitFolder(here, path, info);
    if (!S_ISREG(info.st_mode)) return NoDataFile(here, "is no regular file or folder");
    if (path.empty()) return NoDataFile(here, "is a file, not a folder");
    set_.files_.push_back({.path = path, .here = here, .stamp = FileStamp::Of(info)});
    return absl::OkStatus();
  }

 private:
  absl::Status VisitFolder(const std::string& here, const std::string& path,
                           const struct stat& info) {
    const std::pair<dev_t, ino_t> id(info.st_dev, info.st_ino);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) {
      return NoDataFile(here, "is a link to a folder that it lies in; remove the link");
    }
    if (above_.empty()) root_ = here;
    above_.push_back(id);
    const size_t before = set_.files_.size();
    ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInFolder(here));
    for (const std::string& name : names) {
      if (name == "." || name == "..") continue;
      if (name.starts_with('.')) {
        ++set_.hidden_;
        continue;
      }
      const std::string inside = here.ends_with('/') ? here + name : absl::StrCat(here, "/", name);
      if (takes_ && !takes_(name) && !IsFolder(inside)) continue;
      if (!takes_) RETURN_IF_ERROR(CheckLink(inside));
      RETURN_IF_ERROR(Visit(inside, path.empty() ? name : absl::StrCat(path, "/", name)));
    }
    above_.pop_back();
    if (takes_ || set_.files_.size() > before) return absl::OkStatus();
    // A folder of pictures has a class for each folder, the empty ones as well.
    return NoDataFile(here, "has no file, and a data set is of files; put some in, or remove it");
  }

  // Readers of folders follow the same links (stage/data/formats/class_folders.h).
  absl::Status CheckLink(const std::string& here) const {
    struct stat info;
    if (lstat(here.c_str(), &info) != 0) return SystemErrorAt(here, errno);
    if (!S_ISLNK(info.st_mode)) return absl::OkStatus();
    std::error_code error;
    const auto target = std::filesystem::canonical(here, error);
    if (error) return SystemErrorAt(here, error.value());
    const auto root = std::filesystem::canonical(root_, error);
    if (error) return SystemErrorAt(root_, error.value());
    const bool inside = target.string().starts_with(root.string() + "/");
    if (inside && !IsFolder(here)) return absl::OkStatus();
    return NoDataFile(here, inside ? "is a link to a folder; put the folder itself there"
                                   : "is a link out of the folder; put the file itself there");
  }

  static bool IsFolder(const std::string& here) {
    struct stat info;
    return stat(here.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }

  FileSet& set_;
  const Takes& takes_;
  std::vector<std::pair<dev_t, ino_t>> above_;  // folders that the walk is in
  std::string root_;                            // the first of them
};

absl::Status FileSet::Add(const std::string& here, const std::string& path, const Takes& takes) {
  return Walk(this, takes).Visit(here, path);
}

absl::Status FileSet::Sort() {
  std::stable_sort(files_.begin(), files_.end(),
                   [](const LocalFile& a, const LocalFile& b) { return a.path < b.path; });
  std::vector<LocalFile> once;
  for (LocalFile& file : files_) {
    if (once.empty() || once.back().path != file.path) {
      once.push_back(std::move(file));
    } else if (once.back().here != file.here) {
      return NoDataFile(file.here, absl::StrCat("has the name of ", ShownName(once.back().here),
                                                "; rename one, or put both into a folder"));
    }
  }
  files_ = std::move(once);
  return absl::OkStatus();
}

int64_t FileSet::bytes() const {
  int64_t bytes = 0;
  for (const LocalFile& file : files_) bytes += file.stamp.bytes;
  return bytes;
}

}  // namespace stagecoach
