#include "stage/files/data_roots.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "base/utf8.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

using Names = std::vector<std::string>;

constexpr int kMostLinks = 40;        // as the kernel's limit
constexpr size_t kMostFolders = 256;  // on a path: each is a descriptor while it is walked
constexpr int kLook = O_PATH | O_DIRECTORY;
constexpr char kJournal[] = "journal.sqlite";

absl::Status SystemError(int error) {
  const std::string text = absl::StrCat(std::generic_category().message(error),
                                        "; give a path that every stage's machine can read");
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  // It will be too long the next time as well.
  if (error == ENAMETOOLONG) return absl::InvalidArgumentError(text);
  return absl::UnavailableError(text);
}

absl::Status NotAFile() {
  return absl::InvalidArgumentError("not a file; give the path of a file");
}

absl::Status TooDeep() {
  return absl::InvalidArgumentError(absl::StrCat(
      "lies more than ", kMostFolders, " folders below its data root; put it further up"));
}

// The same words whatever is there.
absl::Status NotBeneath() {
  return absl::PermissionDeniedError(
      "is not beneath what this stage reads for jobs; put it into one of the stage's data roots, "
      "or have its operator name another (--data-root)");
}

absl::Status NoRoots() {
  return absl::PermissionDeniedError(
      "this stage reads no files for jobs: it has no data root; have its operator name the folder "
      "of the data (--data-root)");
}

absl::Status NeverData() {
  return absl::PermissionDeniedError(
      "belongs to a server of Stagecoach (its journal, checkpoints, state or key) and is no data; "
      "give a file of data");
}

absl::Status IsALink(const std::string& target) {
  return absl::InvalidArgumentError(
      absl::StrCat("a link, to ", ShownName(target),
                   ", and this stage follows none; put the file itself there, or have the stage's "
                   "operator say --data-follow-links"));
}

absl::Status LinkOut(const std::string& target) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a link out of the folder, to ", ShownName(target),
      ", which is beneath none of the stage's data roots; put the file itself there, or have "
      "the stage's operator name its folder (--data-root)"));
}

// Of "/a//b/./c": a, b, c.
Names NamesOf(const std::string& path) {
  Names names;
  for (const absl::string_view name : absl::StrSplit(path, '/')) {
    if (!name.empty() && name != ".") names.emplace_back(name);
  }
  return names;
}

std::string PathOf(const Names& names) { return absl::StrCat("/", absl::StrJoin(names, "/")); }

bool BeginsWith(const Names& names, const Names& beginning) {
  return names.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), names.begin());
}

bool IsRegular(const FileHandle& folder, const char* name) {
  struct stat information;
  return fstatat(folder.get(), name, &information, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(information.st_mode);
}

// Beside a journal all is a server's, but for the weights that it exports. Empty: the folder
// itself.
bool IsServers(const std::string& name, bool named) {
  if (named) return absl::StartsWith(name, kJournal);
  return !name.empty() && name != "exports";
}

// The entries of an opened folder, by name.
absl::StatusOr<std::vector<DataRoots::Entry>> EntriesOf(const FileHandle& folder) {
  FileHandle again(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const stream = again.open() ? fdopendir(again.get()) : nullptr;
  if (stream == nullptr) return SystemError(errno);
  again.Release();  // it is the stream's
  using Entry = DataRoots::Entry;
  std::vector<Entry> entries;
  errno = 0;
  while (const dirent* const found = readdir(stream)) {
    TickProgress();  // a million names on a cold share take minutes, and are not stuck
    Entry entry{.name = found->d_name};
    struct stat information;
    // Gone meanwhile, it is kOther.
    if (fstatat(folder.get(), found->d_name, &information, AT_SYMLINK_NOFOLLOW) == 0) {
      if (S_ISDIR(information.st_mode)) entry.kind = Entry::Kind::kFolder;
      if (S_ISLNK(information.st_mode)) entry.kind = Entry::Kind::kLink;
      if (S_ISREG(information.st_mode)) {
        entry.kind = Entry::Kind::kFile;
        entry.bytes = information.st_size;
      }
    }
    if (entry.name != "." && entry.name != "..") entries.push_back(std::move(entry));
    errno = 0;
  }
  const int error = errno;
  closedir(stream);
  if (error != 0) return SystemError(error);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

// A file of a data set, for weights: a tensor waits for its own bytes alone.
class RangedFile final : public ReadableFile {
 public:
  RangedFile(std::unique_ptr<ReadableFile> below, int64_t begin, int64_t bytes,
             std::shared_ptr<FileRanges> ranges, std::string path)
      : below_(std::move(below)),
        begin_(begin),
        bytes_(bytes),
        ranges_(std::move(ranges)),
        path_(std::move(path)) {}
  int64_t size() const override { return bytes_; }
  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    const auto wanted = static_cast<int64_t>(target.size());
    if (offset < 0 || offset > bytes_ || wanted > bytes_ - offset) {
      return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", bytes_));
    }
    RETURN_IF_ERROR(Annotate(ranges_->Need(offset, wanted), path_));
    return below_->Read(begin_ + offset, target);
  }

 private:
  const std::unique_ptr<ReadableFile> below_;
  const int64_t begin_, bytes_;
  const std::shared_ptr<FileRanges> ranges_;
  const std::string path_;
};

}  // namespace

// Where a path leads: the descriptors of the folders on it, from the root's on.
struct DataRoots::Place {
  Names root_names;  // without links
  std::vector<FileHandle> folders;
  Names names;              // of the folders, but for the root's
  std::string file;         // what is no folder, in the last of them; empty: the folder itself
  bool named_file = false;  // it is the root

  Names RealNames() const {
    Names all = root_names;
    all.insert(all.end(), names.begin(), names.end());
    if (!file.empty()) all.push_back(file);
    return all;
  }
};

// Walks one path; begins anew, in another root perhaps, where a link leads out of the one it is in.
class DataRoots::Walk {
 public:
  explicit Walk(const DataRoots* roots) : roots_(*roots) {}

  absl::StatusOr<Place> From(const Names& names) {
    RETURN_IF_ERROR(Begin(names, NotBeneath()));
    while (!left_.empty()) {
      const std::string name = std::move(left_.front());
      left_.pop_front();
      if (name == "..") {
        RETURN_IF_ERROR(GoUp());
        continue;
      }
      FileHandle folder = OpenName(place_.folders.back(), name, kLook, roots_.options_.call);
      if (folder.open()) {
        if (place_.folders.size() > kMostFolders) return TooDeep();
        place_.folders.push_back(std::move(folder));
        place_.names.push_back(name);
        continue;
      }
      const int error = errno;
      if (error != ENOTDIR && error != ELOOP) return SystemError(error);
      const std::string target = LinkTarget(place_.folders.back(), name);
      if (!target.empty()) {
        RETURN_IF_ERROR(Follow(target));
      } else if (left_.empty()) {
        place_.file = name;
      } else {
        return SystemError(ENOTDIR);
      }
    }
    return std::move(place_);
  }

 private:
  // In the root that these names lie beneath.
  absl::Status Begin(const Names& names, const absl::Status& outside) {
    size_t length = 0;
    const Root* const root = roots_.RootOf(names, &length);
    if (root == nullptr) return outside;
    left_.assign(names.begin() + static_cast<int64_t>(length), names.end());
    place_ = Place{.root_names = root->real_names, .folders = {}, .names = {}, .file = ""};
    // The operator's word: it may be a link, and is looked at anew each time, as a volume may come
    // later.
    FileHandle folder(open(root->given.c_str(), kLook | O_CLOEXEC));
    if (!folder.open() && errno == ENOTDIR && left_.empty()) {
      place_.file = place_.root_names.back();
      place_.root_names.pop_back();
      place_.named_file = true;
      folder = FileHandle(open(PathOf(place_.root_names).c_str(), kLook | O_CLOEXEC));
    }
    if (!folder.open()) return SystemError(errno);
    place_.folders.push_back(std::move(folder));
    return absl::OkStatus();
  }

  absl::Status GoUp() {
    if (!place_.names.empty()) {
      place_.names.pop_back();
      place_.folders.pop_back();
      return absl::OkStatus();
    }
    // As the kernel has it: above the topmost folder is that folder.
    Names above = place_.root_names;
    if (!above.empty()) above.pop_back();
    while (!left_.empty() && left_.front() == "..") {
      if (!above.empty()) above.pop_back();
      left_.pop_front();
    }
    above.insert(above.end(), left_.begin(), left_.end());
    return Begin(above, LinkOut(target_));
  }

  absl::Status Follow(const std::string& target) {
    if (!roots_.options_.follow_links) return IsALink(target);
    if (++links_ > kMostLinks) return NotAFile();
    target_ = target;
    Names names = NamesOf(target);
    names.insert(names.end(), left_.begin(), left_.end());
    if (absl::StartsWith(target, "/")) return Begin(names, LinkOut(target));
    left_.assign(names.begin(), names.end());
    return absl::OkStatus();
  }

  const DataRoots& roots_;
  Place place_;
  std::deque<std::string> left_;  // names that are still to be looked up
  int links_ = 0;
  std::string target_;  // of the last link
};

DataRoots::DataRoots(Options options) : DataRoots(std::move(options), /*everything=*/false) {}

DataRoots::DataRoots(Options options, bool everything)
    : options_(std::move(options)), everything_(everything) {
  for (const std::string& root : options_.roots) {
    std::error_code error;
    Root made;
    made.given = std::filesystem::absolute(root, error).lexically_normal().string();
    made.names = NamesOf(made.given);
    const std::filesystem::path real = std::filesystem::canonical(made.given, error);
    made.real = error ? made.given : real.string();
    made.real_names = NamesOf(made.real);
    roots_.push_back(std::move(made));
  }
}

std::unique_ptr<DataRoots> DataRoots::Everything(std::vector<std::string> never,
                                                 std::string cache_folder, DataSets* data_sets) {
  return std::unique_ptr<DataRoots>(new DataRoots({.roots = {"/"},
                                                   .follow_links = true,
                                                   .never = std::move(never),
                                                   .cache_folder = std::move(cache_folder),
                                                   .data_sets = data_sets},
                                                  /*everything=*/true));
}

// The longest, so that a root within another one is what the operator said of it.
const DataRoots::Root* DataRoots::RootOf(const Names& names, size_t* length) const {
  const Root* found = nullptr;
  for (const Root& root : roots_) {
    for (const Names* beginning : {&root.names, &root.real_names}) {
      if (!BeginsWith(names, *beginning)) continue;
      if (found != nullptr && beginning->size() <= *length) continue;
      found = &root;
      *length = beginning->size();
    }
  }
  return found;
}

absl::StatusOr<DataRoots::Place> DataRoots::Find(const std::string& path) const {
  if (roots_.empty()) return NoRoots();
  if (path.empty() || path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("is no path: it is empty or has a NUL character");
  }
  Names names = NamesOf(path);
  if (!everything_ && std::find(names.begin(), names.end(), "..") != names.end()) {
    return absl::InvalidArgumentError("has \"..\"; give the path without");
  }
  absl::StatusOr<Place> place;
  if (absl::StartsWith(path, "/")) {
    place = Walk(this).From(names);
  } else {
    place = FindRelative(path);
  }
  if (place.ok()) RETURN_IF_ERROR(CheckIsData(*place));
  return place;
}

absl::StatusOr<DataRoots::Place> DataRoots::FindRelative(const std::string& path) const {
  Names bases;
  if (everything_) {
    std::error_code error;
    bases = {std::filesystem::current_path(error).string()};
  } else {
    for (const Root& root : roots_) bases.push_back(root.given);
  }
  absl::StatusOr<Place> place;
  for (const std::string& base : bases) {
    place = Walk(this).From(NamesOf(absl::StrCat(base, "/", path)));
    if (!absl::IsNotFound(place.status())) break;
  }
  return place;
}

bool DataRoots::IsNever(int descriptor) const {
  struct stat found, own;
  if (fstat(descriptor, &found) != 0) return true;
  return std::any_of(options_.never.begin(), options_.never.end(), [&](const std::string& path) {
    return stat(path.c_str(), &own) == 0 && own.st_dev == found.st_dev &&
           own.st_ino == found.st_ino;
  });
}

// By what they are and not by how they are called, so that a mount or a hard link shows nothing
// more.
absl::Status DataRoots::CheckIsData(const Place& place) const {
  for (size_t i = 0; i < place.folders.size(); ++i) {
    const FileHandle& folder = place.folders[i];
    const bool root = i == 0;
    if (!root && IsNever(folder.get())) return NeverData();
    if (!root && ParseStepFolder(place.names[i - 1]).has_value() &&
        IsRegular(folder, kManifestFile)) {
      return NeverData();
    }
    const std::string& next = i < place.names.size() ? place.names[i] : place.file;
    if (IsServers(next, place.named_file) && IsRegular(folder, kJournal)) return NeverData();
  }
  return absl::OkStatus();
}

absl::StatusOr<DataSets*> DataRoots::Sets() const {
  if (options_.data_sets != nullptr) return options_.data_sets;
  return absl::FailedPreconditionError(
      "data sets of the cluster cannot be read here, only by its stages; give a path of this "
      "machine");
}

absl::StatusOr<DataRoots::Opened> DataRoots::OpenFile(const std::string& path,
                                                      DataSets::Reading reading) const {
  if (IsDataSetPath(path)) {
    ASSIGN_OR_RETURN(DataSets* const sets, Sets());
    ASSIGN_OR_RETURN(const DataSetPath parsed, ParseDataSetPath(path));
    ASSIGN_OR_RETURN(DataSets::File file, sets->Open(parsed, reading));
    return Opened{.descriptor = std::move(file.descriptor),
                  .real = parsed.Text(),
                  .begin = file.begin,
                  .bytes = file.bytes,
                  .ranges = std::move(file.ranges),
                  .sha256 = std::move(file.sha256),
                  .sha256_of = std::move(file.sha256_of)};
  }
  ASSIGN_OR_RETURN(const Place place, Find(path));
  if (place.file.empty()) return NotAFile();
  const FileHandle& folder = place.folders.back();
  struct stat information;
  // To open a device may do something, and a pipe would wait.
  if (fstatat(folder.get(), place.file.c_str(), &information, AT_SYMLINK_NOFOLLOW) != 0) {
    return SystemError(errno);
  }
  if (!S_ISREG(information.st_mode)) return NotAFile();
  Opened opened{OpenName(folder, place.file, O_RDONLY | O_NONBLOCK | O_NOCTTY, options_.call),
                PathOf(place.RealNames())};
  if (!opened.descriptor.open()) return errno == ELOOP ? NotAFile() : SystemError(errno);
  // What was opened, and not what had the name a moment ago.
  if (fstat(opened.descriptor.get(), &information) != 0) return SystemError(errno);
  if (!S_ISREG(information.st_mode)) return NotAFile();
  if (IsNever(opened.descriptor.get())) return NeverData();
  opened.bytes = information.st_size;
  return opened;
}

absl::StatusOr<DataRoots::Folder> DataRoots::ListFolder(const std::string& path) const {
  if (IsDataSetPath(path)) {
    ASSIGN_OR_RETURN(DataSets* const sets, Sets());
    ASSIGN_OR_RETURN(const DataSetPath parsed, ParseDataSetPath(path));
    ASSIGN_OR_RETURN(std::vector<DataSets::Entry> found, sets->List(parsed));
    Folder folder{.real = parsed.Text(), .entries = {}};
    for (DataSets::Entry& entry : found) {
      folder.entries.push_back({std::move(entry.name),
                                entry.folder ? Entry::Kind::kFolder : Entry::Kind::kFile,
                                entry.bytes});
    }
    return folder;
  }
  ASSIGN_OR_RETURN(const Place place, Find(path));
  if (!place.file.empty()) return SystemError(ENOTDIR);
  const FileHandle opened =
      OpenName(place.folders.back(), ".", O_RDONLY | O_DIRECTORY, options_.call);
  if (!opened.open()) return SystemError(errno);
  ASSIGN_OR_RETURN(std::vector<Entry> entries, EntriesOf(opened));
  return Folder{.real = PathOf(place.RealNames()), .entries = std::move(entries)};
}

absl::StatusOr<std::unique_ptr<ReadableFile>> DataRoots::Open(const std::string& path) {
  ASSIGN_OR_RETURN(Opened opened, OpenFile(path, DataSets::Reading::kSome));
  const int64_t end = opened.begin + opened.bytes;
  std::unique_ptr<ReadableFile> file = ReadableFileOf(std::move(opened.descriptor), end, path);
  if (opened.ranges == nullptr) return file;
  return std::make_unique<RangedFile>(std::move(file), opened.begin, opened.bytes,
                                      std::move(opened.ranges), path);
}

// What is there and cannot be opened is there: who opens it learns why.
absl::Status DataRoots::Look(const std::string& path) {
  if (IsDataSetPath(path)) {
    ASSIGN_OR_RETURN(DataSets* const sets, Sets());
    ASSIGN_OR_RETURN(const DataSetPath parsed, ParseDataSetPath(path));
    return sets->Look(parsed);
  }
  const absl::Status found = Find(path).status();
  return absl::IsInvalidArgument(found) ? absl::OkStatus() : found;
}

}  // namespace stagecoach
