// DataSetPath: the path of a file or folder in a data set that the cluster keeps. It stands where a
// path of a job is expected: "store:/data/ID/train/a.tar". While a job file is read, the set's name may
// stand in place of its id; the coordinator puts the id in.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT with path and rule, without a field.
#ifndef STAGECOACH_PLAN_DATA_DATA_SET_PATH_H_
#define STAGECOACH_PLAN_DATA_DATA_SET_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

inline constexpr char kDataSetPrefix[] = "store:/data/";

struct DataSetPath {
  std::string set;   // id, or name
  std::string path;  // relative, without "." and ".."; empty: the set's root folder

  std::string Text() const;
  friend bool operator==(const DataSetPath&, const DataSetPath&) = default;
};

inline bool IsDataSetPath(std::string_view path) { return path.starts_with(kDataSetPrefix); }
absl::StatusOr<DataSetPath> ParseDataSetPath(std::string_view path);

// A relative path of a set: at most 64 names between slashes, none of them empty, "." or "..", no
// control character, valid UTF-8, 4096 bytes at most.
absl::Status CheckPathInSet(std::string_view path);
// 64 hexadecimal digits in lower case, as ids of sets and digests of parts are. Names of sets are
// shorter (base/job_name.h).
bool IsDigest(std::string_view text);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_DATA_SET_PATH_H_
