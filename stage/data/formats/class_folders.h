// ClassFolders: the pictures of a folder that has a folder for each class, as a list, and their
// bytes.
//
// Classes are the folders of the root, by name. Pictures are the files below them with a picture's
// ending (IsPictureName), by path. Names compare as bytes, so the list is the same on every
// machine. Everything else, and every name that begins with a dot, is left out and counted. A link
// to a folder is refused. A link to a picture is followed if the stage follows links and its target
// is below the root. The check looks at the opened file, not at its name.
// Ownership: owns the list; borrows the roots of data.
// Threads:   Read from any thread.
// Errors:    all begin with field and path of the root. List: INVALID_ARGUMENT for a class without
//            pictures, a link to a folder, and a root without classes; as
//            stage/data/formats/data_file.h. Read: INVALID_ARGUMENT for a link out of the root, for
//            anything that is not a file, and for a file larger than kMostPictureBytes; as
//            data_file.h.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_CLASS_FOLDERS_H_
#define STAGECOACH_STAGE_DATA_FORMATS_CLASS_FOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/hash.h"
#include "stage/data/formats/left_out.h"
#include "stage/files/data_roots.h"

namespace stagecoach {

inline constexpr int64_t kMostPictureBytes = int64_t{256} << 20;

class ClassFolders {
 public:
  // field: "data.image_folder.train".
  static absl::StatusOr<ClassFolders> List(const DataRoots& roots, const std::string& field,
                                           const std::string& root);

  // All pictures below the root, without classes; label 0. INVALID_ARGUMENT: there are none.
  static absl::StatusOr<ClassFolders> ListWithoutClasses(const DataRoots& roots,
                                                         const std::string& field,
                                                         const std::string& root);

  // Puts the first picture of each class in front, then the second of each, and so on. So the
  // beginning of the list has all classes.
  void TakeClassesInTurn();

  const std::vector<std::string>& classes() const { return classes_; }
  int64_t count() const { return static_cast<int64_t>(entries_.size()); }
  int32_t label(int64_t i) const { return entries_[static_cast<size_t>(i)].label; }
  // Below the root: "cats/1.jpg".
  const std::string& path(int64_t i) const { return entries_[static_cast<size_t>(i)].path; }
  // Bytes of entry i; only the first `most` if there are more.
  absl::StatusOr<std::vector<uint8_t>> Read(int64_t i, int64_t most = kMostPictureBytes) const;
  // "data.image_folder.train = "/a", cats/1.jpg"
  std::string Where(int64_t i) const;
  std::string Where(const std::string& below) const;
  std::string Where() const;
  // Files of the folder that are no pictures.
  const LeftOut& left_out() const { return left_out_; }
  // Adds paths, labels and sizes.
  void Sum(Sha256* digest, int64_t* bytes) const;

 private:
  struct Entry {
    std::string path;  // below the root: "cats/1.jpg"
    int32_t label = 0;
    int64_t bytes = 0;  // 0: stat fails; Read returns the error
    bool link = false;
  };
  static ClassFolders Rooted(const DataRoots& roots, const std::string& field,
                             const std::string& root);
  // The entries of a folder below the root, in order, without hidden ones; "": of the root.
  absl::StatusOr<std::vector<DataRoots::Entry>> EntriesOf(const std::string& below);
  absl::Status AddClass(const DataRoots::Entry& folder);
  // Not ok: a link to a folder, or to an unknown kind of target.
  absl::Status CheckLink(const std::string& below) const;
  std::string LeftOutText() const;
  absl::Status AddBelow(const std::string& folder, int32_t label);
  std::string RealPathOf(const std::string& below) const;

  const DataRoots* roots_ = nullptr;
  std::string field_, root_;
  std::string real_root_;  // without links
  std::vector<std::string> classes_;
  std::vector<Entry> entries_;
  LeftOut left_out_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_CLASS_FOLDERS_H_
