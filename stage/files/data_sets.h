// DataSets: the data sets of the cluster, as a stage reads them. Their paths are DataSetPath
// (plan/data/data_set_path.h) with an id. A file is a range of a local file whose bytes may still be
// on their way, so a reader asks for each range before it reads it.
// Ownership: a File owns its descriptor and its ranges, and must not outlive the DataSets.
// Threads:   any; Need waits, and ticks progress (base/threads/progress.h) as bytes arrive.
// Units:     bytes; offsets of Need are within the data set's file.
// Errors:    without field and path, which the caller puts in front; each with its remedy.
//            NOT_FOUND: the set has no such path. INVALID_ARGUMENT: a folder in the place of a file,
//            or the other way round. PERMISSION_DENIED: the coordinator gave no grant, or it ended.
//            UNAVAILABLE: nothing has come for a minute. DATA_LOSS: the bytes are not the set's.
//            RESOURCE_EXHAUSTED: no room for them.
#ifndef STAGECOACH_STAGE_FILES_DATA_SETS_H_
#define STAGECOACH_STAGE_FILES_DATA_SETS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_handle.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {

class FileRanges {
 public:
  virtual ~FileRanges() = default;
  // Once it answers OK, these bytes of the file can be read for as long as it lives.
  virtual absl::Status Need(int64_t offset, int64_t bytes) = 0;
};

class DataSets {
 public:
  struct File {
    FileHandle descriptor;  // open for reading
    int64_t begin = 0;      // first byte of the file in it
    int64_t bytes = 0;      // size of the file
    std::shared_ptr<FileRanges> ranges;
    std::string sha256;  // of the file, in hexadecimal; empty: unknown
    // The set that says so, where nobody compared it: no word for the file of another one.
    std::string sha256_of;
  };
  struct Entry {
    std::string name;
    bool folder = false;
    int64_t bytes = 0;  // a file's
  };

  enum class Reading : uint8_t {
    kAll,   // in the end the whole file: the rest may be fetched ahead
    kSome,  // ranges alone, as a stage's own tensors
  };

  virtual ~DataSets() = default;
  virtual absl::StatusOr<File> Open(const DataSetPath& path, Reading reading) = 0;
  // By name, as bytes.
  virtual absl::StatusOr<std::vector<Entry>> List(const DataSetPath& folder) = 0;
  // OK: a file or a folder.
  virtual absl::Status Look(const DataSetPath& path) = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_FILES_DATA_SETS_H_
