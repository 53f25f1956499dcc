#include "stage/data/formats/class_folders.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "base/utf8.h"
#include "stage/data/formats/data_file.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

using Listed = DataRoots::Entry;

constexpr char kNoPictures[] = "no JPEG, PNG, TIFF or WebP files";

}  // namespace

std::string ClassFolders::Where() const { return absl::StrCat(field_, " = \"", root_, "\""); }

std::string ClassFolders::Where(const std::string& below) const {
  return absl::StrCat(Where(), ", ", ShownName(below));
}

std::string ClassFolders::Where(int64_t i) const {
  return Where(entries_[static_cast<size_t>(i)].path);
}

ClassFolders ClassFolders::Rooted(const DataRoots& roots, const std::string& field,
                                  const std::string& root) {
  ClassFolders folders;
  folders.roots_ = &roots;
  folders.field_ = field;
  folders.root_ = root;
  return folders;
}

std::string ClassFolders::RealPathOf(const std::string& below) const {
  return absl::StrCat(real_root_, "/", below);
}

absl::StatusOr<std::vector<Listed>> ClassFolders::EntriesOf(const std::string& below) {
  const std::string where = below.empty() ? Where() : Where(below);
  ASSIGN_OR_RETURN(DataRoots::Folder folder,
                   Annotate(roots_->ListFolder(below.empty() ? root_ : RealPathOf(below)), where));
  if (below.empty()) real_root_ = std::move(folder.real);
  std::vector<Listed> entries = std::move(folder.entries);
  std::erase_if(entries, [this](const Listed& entry) {
    const bool hidden = absl::StartsWith(entry.name, ".");
    if (hidden) left_out_.Add(entry.name);
    return hidden;
  });
  return entries;
}

absl::StatusOr<ClassFolders> ClassFolders::ListWithoutClasses(const DataRoots& roots,
                                                              const std::string& field,
                                                              const std::string& root) {
  ClassFolders folders = Rooted(roots, field, root);
  RETURN_IF_ERROR(folders.AddBelow("", 0));
  if (folders.count() > 0) return folders;
  return absl::InvalidArgumentError(absl::StrCat(folders.Where(), ": has ", kNoPictures,
                                                 folders.LeftOutText(),
                                                 "; give a folder that has some"));
}

absl::StatusOr<ClassFolders> ClassFolders::List(const DataRoots& roots, const std::string& field,
                                                const std::string& root) {
  ClassFolders folders = Rooted(roots, field, root);
  ASSIGN_OR_RETURN(const std::vector<Listed> entries, folders.EntriesOf(""));
  for (const Listed& entry : entries) RETURN_IF_ERROR(folders.AddClass(entry));
  if (folders.classes_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folders.Where(), ": has no folders", folders.LeftOutText(),
                     "; give a folder that has a folder for each class"));
  }
  return folders;
}

std::string ClassFolders::LeftOutText() const {
  return left_out_.empty() ? "" : absl::StrCat(", but ", left_out_.Text());
}

// A class or a part of one that is not there must not go unnoticed; where no link is followed,
// nobody knows what it is.
absl::Status ClassFolders::CheckLink(const std::string& below) const {
  const absl::Status followed = roots_->ListFolder(RealPathOf(below)).status();
  if (absl::IsNotFound(followed) || roots_->OpenFile(RealPathOf(below)).ok()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Where(below), followed.ok() ? ": a link to a folder" : ": a link",
                   "; put the folder itself there"));
}

absl::Status ClassFolders::AddClass(const Listed& folder) {
  const std::string& name = folder.name;
  if (folder.kind == Listed::Kind::kLink) {
    left_out_.Add(name, "beside the folders of the classes");
    return CheckLink(name);
  }
  if (folder.kind != Listed::Kind::kFolder) {
    left_out_.Add(name, "beside the folders of the classes");
    return absl::OkStatus();
  }
  const size_t before = entries_.size();
  const LeftOut others = std::exchange(left_out_, {});
  RETURN_IF_ERROR(AddBelow(name, static_cast<int32_t>(classes_.size())));
  if (entries_.size() == before) {
    return absl::InvalidArgumentError(absl::StrCat(Where(name), ": a class with ", kNoPictures,
                                                   LeftOutText(),
                                                   "; put some there or take the folder away"));
  }
  left_out_.Add(others);
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

// By path. A folder that is a link is refused: it may lead out of the root, or in a circle.
absl::Status ClassFolders::AddBelow(const std::string& folder, int32_t label) {
  // Paths that are still to be looked at, the next one last.
  std::vector<std::pair<std::string, Listed>> left = {{folder, {.kind = Listed::Kind::kFolder}}};
  while (!left.empty()) {
    auto [path, entry] = std::move(left.back());
    left.pop_back();
    if (entry.kind == Listed::Kind::kFolder) {
      ASSIGN_OR_RETURN(std::vector<Listed> inner, EntriesOf(path));
      std::reverse(inner.begin(), inner.end());
      for (Listed& below : inner) {
        std::string name = path.empty() ? below.name : absl::StrCat(path, "/", below.name);
        left.emplace_back(std::move(name), std::move(below));
      }
    } else if (IsPictureName(path)) {
      const bool link = entry.kind == Listed::Kind::kLink;
      if (link) {
        const auto opened = OpenedFile::OpenAs(*roots_, field_, path, RealPathOf(path));
        entry.bytes = opened.ok() ? (*opened)->size() : 0;
      }
      entries_.push_back({.path = path, .label = label, .bytes = entry.bytes, .link = link});
      TickProgress();
    } else {
      if (entry.kind == Listed::Kind::kLink) RETURN_IF_ERROR(CheckLink(path));
      left_out_.Add(path.substr(path.rfind('/') + 1));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> ClassFolders::Read(int64_t i, int64_t most) const {
  const auto& [path, label, size, link] = entries_[static_cast<size_t>(i)];
  const auto refused = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(Where(i), ": ", what));
  };
  const auto opened = OpenedFile::OpenAs(
      *roots_, field_, (std::filesystem::path(root_) / path).string(), RealPathOf(path));
  if (absl::IsNotFound(opened.status()) && link) {
    return refused("a link to a file that is not there");
  }
  RETURN_IF_ERROR(opened.status());
  const std::unique_ptr<OpenedFile>& file = *opened;
  if (!absl::StartsWith(file->real_path(), real_root_ + "/")) {
    return refused(absl::StrCat("a link out of the folder, to ", ShownName(file->real_path()),
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
