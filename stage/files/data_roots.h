// DataRoots: the files of this machine that a job may read, and how they are opened. Every path of
// a job (data, initial weights) goes through here; no reader opens one by its name.
//
// A root is a folder, or one file, that the operator names. A path of a job is relative to a root,
// or absolute and then beneath a root by its text. It is walked from the root name by name. Each
// name is looked up in the descriptor of the folder before it (open_name.h). So a folder that
// becomes a link meanwhile leads nowhere. ".." is refused. Links are refused. With follow_links
// they are read as text and walked the same way: their targets must be beneath a root again. Roots
// themselves are the operator's word and may be links. Only regular files and folders are opened: a
// pipe or a device is looked at and left alone.
//
// These are never data, also beneath a root:
//   - The files and folders of `never`, unless a root is such a folder or lies within it.
//   - Everything beside a coordinator's journal. Exceptions are `exports`, and a file, other than
//     the journal, that a root names.
//   - A checkpoint, unless a root names its folder.
//
// A path of a data set of the cluster ("store:/data/ID/PATH", plan/data/data_set_path.h) needs no
// root: the coordinator's grant opens it (data_sets.h).
//
// Ownership: immutable; borrows the data sets. Readers borrow it for as long as they read.
// Threads:   any.
// Errors:    without field and path, which the caller puts in front; each with its remedy. A path
//            that is not beneath a root is PERMISSION_DENIED with the same words whether something
//            is there or not. Beneath one: INVALID_ARGUMENT for "..", a link, a name that is too
//            long, too many folders, and anything that is not a file. NOT_FOUND. PERMISSION_DENIED,
//            also for a path that is never data. UNAVAILABLE for other errors of the system.
#ifndef STAGECOACH_STAGE_FILES_DATA_ROOTS_H_
#define STAGECOACH_STAGE_FILES_DATA_ROOTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_handle.h"
#include "checkpoint/files/file_system.h"
#include "stage/files/data_sets.h"
#include "stage/files/open_name.h"

namespace stagecoach {

class DataRoots final : public ReadableFiles {
 public:
  struct Options {
    // Paths of folders and files. None: a job reads nothing.
    std::vector<std::string> roots;
    // Whether links beneath a root are followed.
    bool follow_links = false;
    // Files and folders of this process that are no data: its key, its state. Missing ones are
    // ignored.
    std::vector<std::string> never;
    OpenCall call = OpenCall::kBest;
    // Where readers keep what they make of data (stage/data/cache/cache_folder.h); empty: their
    // default.
    std::string cache_folder = {};
    // Null: those of the cluster cannot be read here.
    DataSets* data_sets = nullptr;
  };
  explicit DataRoots(Options options);

  // For a machine with one user: any file, links followed. A relative path begins in the process's
  // folder; ".." is refused too.
  static std::unique_ptr<DataRoots> Everything(std::vector<std::string> never = {},
                                               std::string cache_folder = {},
                                               DataSets* data_sets = nullptr);
  const std::string& cache_folder() const { return options_.cache_folder; }

  struct Opened {
    FileHandle descriptor;  // open for reading
    std::string real;       // absolute, without links; a data set's path as it is
    int64_t begin = 0;      // first byte of the file in the descriptor's
    int64_t bytes = 0;      // its size, when it was opened
    // Of a data set's file: asked before each read. Null: all bytes are there.
    std::shared_ptr<FileRanges> ranges = nullptr;
    std::string sha256 = {};     // in hexadecimal; empty: unknown
    std::string sha256_of = {};  // as DataSets::File has it
  };
  // Opens a regular file.
  absl::StatusOr<Opened> OpenFile(const std::string& path,
                                  DataSets::Reading reading = DataSets::Reading::kAll) const;

  struct Entry {
    enum class Kind : uint8_t { kFolder, kFile, kLink, kOther };
    std::string name;
    Kind kind = Kind::kOther;
    int64_t bytes = 0;  // a file's size
  };
  struct Folder {
    std::string real;            // as of Opened
    std::vector<Entry> entries;  // by name; links are not followed
  };
  absl::StatusOr<Folder> ListFolder(const std::string& path) const;

  // ReadableFiles, for weights.
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status Look(const std::string& path) override;

 private:
  struct Root {
    std::string given, real;         // absolute; `real` had no links at construction
    std::vector<std::string> names;  // of given
    std::vector<std::string> real_names;
  };
  struct Place;
  class Walk;

  const Root* RootOf(const std::vector<std::string>& names, size_t* length) const;
  absl::StatusOr<Place> Find(const std::string& path) const;
  // The data sets, for a path of one.
  absl::StatusOr<DataSets*> Sets() const;
  absl::StatusOr<Place> FindRelative(const std::string& path) const;
  absl::Status CheckIsData(const Place& place) const;
  bool IsNever(int descriptor) const;

  const Options options_;
  const bool everything_;
  std::vector<Root> roots_;

  DataRoots(Options options, bool everything);
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_DATA_ROOTS_H_
