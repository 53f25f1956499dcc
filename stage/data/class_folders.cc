#include "stage/data/class_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/utf8.h"
#include "stage/data/data_file.h"

namespace stagecoach {
namespace {

namespace fs = std::filesystem;

absl::Status Unreadable(const std::string& where, const std::error_code& error) {
  const std::string text = absl::StrCat(where, ": ", error.message(),
                                        "; give a folder that every stage's machine can read");
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return absl::NotFoundError(text);
  }
  return error == std::errc::permission_denied ? absl::PermissionDeniedError(text)
                                               : absl::UnavailableError(text);
}

bool IsPictureName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

// Names of a folder, in order, without those that are hidden.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& where, const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!absl::StartsWith(name, ".")) names.push_back(std::move(name));
  }
  if (error) return Unreadable(where, error);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string ClassFolders::Where() const { return absl::StrCat(field_, " = \"", root_, "\""); }

std::string ClassFolders::Where(const std::string& below) const {
  return absl::StrCat(Where(), ", ", ShownName(below));
}

std::string ClassFolders::Where(int64_t i) const {
  return Where(entries_[static_cast<size_t>(i)].path);
}

absl::StatusOr<ClassFolders> ClassFolders::Rooted(const std::string& field,
                                                  const std::string& root) {
  ClassFolders folders;
  folders.field_ = field;
  folders.root_ = root;
  std::error_code error;
  folders.real_root_ = fs::canonical(root, error).string();
  if (error) return Unreadable(folders.Where(), error);
  return folders;
}

absl::StatusOr<ClassFolders> ClassFolders::ListWithoutClasses(const std::string& field,
                                                              const std::string& root) {
  ASSIGN_OR_RETURN(ClassFolders folders, Rooted(field, root));
  ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(folders.Where(), root));
  std::reverse(names.begin(), names.end());
  RETURN_IF_ERROR(folders.AddBelow(std::move(names), 0));
  if (folders.count() > 0) return folders;
  return absl::InvalidArgumentError(
      absl::StrCat(folders.Where(), ": has no JPEG or PNG files; give a folder that has some"));
}

absl::StatusOr<ClassFolders> ClassFolders::List(const std::string& field, const std::string& root) {
  ASSIGN_OR_RETURN(ClassFolders folders, Rooted(field, root));
  std::error_code error;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folders.Where(), root));
  for (const std::string& name : names) {
    if (fs::is_directory(fs::path(root) / name, error)) RETURN_IF_ERROR(folders.AddClass(name));
  }
  if (folders.classes_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        folders.Where(), ": has no folders; give a folder that has a folder for each class"));
  }
  return folders;
}

absl::Status ClassFolders::AddClass(const std::string& name) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(fs::path(root_) / name, error);
  if (error) return Unreadable(Where(name), error);
  if (!fs::is_directory(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(name), ": a link to a folder; put the folder itself there"));
  }
  const size_t before = entries_.size();
  RETURN_IF_ERROR(AddBelow({name}, static_cast<int32_t>(classes_.size())));
  if (entries_.size() == before) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(name),
        ": a class without JPEG or PNG files; put some there or take the folder away"));
  }
  classes_.push_back(name);
  return absl::OkStatus();
}

void ClassFolders::TakeClassesInTurn() {
  std::vector<int64_t> seen(classes_.size());
  std::vector<std::pair<int64_t, Entry>> by_turn;
  by_turn.reserve(entries_.size());
  for (Entry& entry : entries_) {
    const int64_t turn = seen[static_cast<size_t>(entry.label)]++;
    by_turn.emplace_back(turn, std::move(entry));
  }
  std::stable_sort(by_turn.begin(), by_turn.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < by_turn.size(); ++i) entries_[i] = std::move(by_turn[i].second);
}

// `left`: paths below the root that are still to be looked at, the next one last. A folder that is a link is not entered:
// it may lead out of the root, or in a circle.
absl::Status ClassFolders::AddBelow(std::vector<std::string> left, int32_t label) {
  while (!left.empty()) {
    const std::string path = std::move(left.back());
    left.pop_back();
    const fs::path full = fs::path(root_) / path;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(full, error);
    if (error) return Unreadable(Where(path), error);
    if (fs::is_directory(status)) {
      ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(Where(path), full));
      std::reverse(names.begin(), names.end());
      for (const std::string& inner : names) left.push_back(absl::StrCat(path, "/", inner));
    } else if (IsPictureName(path)) {
      const uintmax_t bytes = fs::file_size(full, error);
      entries_.push_back(
          {.path = path, .label = label, .bytes = error ? 0 : static_cast<int64_t>(bytes)});
      TickProgress();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> ClassFolders::Read(int64_t i, int64_t most) const {
  const std::string& path = entries_[static_cast<size_t>(i)].path;
  const auto refused = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(Where(i), ": ", what));
  };
  const fs::path full = fs::path(root_) / path;
  const auto opened = OpenedFile::Open(field_, full.string());
  std::error_code error;
  if (absl::IsNotFound(opened.status()) && fs::is_symlink(full, error)) {
    return refused("a link to a file that is not there");
  }
  RETURN_IF_ERROR(opened.status());
  const std::unique_ptr<OpenedFile>& file = *opened;
  ASSIGN_OR_RETURN(const std::string real, file->RealPath());
  if (!absl::StartsWith(real, real_root_ + "/")) {
    return refused(absl::StrCat("a link out of the folder, to ", ShownName(real),
                                "; put the file itself there"));
  }
  if (file->size() > kMostPictureBytes) {
    return refused(absl::StrCat(file->size(), " bytes; at most ", kMostPictureBytes, " are read"));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(file->size(), most)));
  RETURN_IF_ERROR(file->ReadAt(0, bytes));
  return bytes;
}

void ClassFolders::Sum(Sha256* digest, int64_t* bytes) const {
  for (const Entry& entry : entries_) {
    digest->Update(
        absl::StrCat(entry.path, std::string(1, '\0'), entry.label, " ", entry.bytes, "\n"));
    *bytes += entry.bytes;
  }
}

}  // namespace stagecoach
