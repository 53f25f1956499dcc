// BucketPath: an object of an S3 bucket, or a folder there, in the place of a job's path:
// "s3://BUCKET/KEY". The coordinator puts the path of a data set in its place
// (plan/data/data_set_path.h), whose files are those objects.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT with path and rule, without a field.
#ifndef STAGECOACH_PLAN_DATA_BUCKET_PATH_H_
#define STAGECOACH_PLAN_DATA_BUCKET_PATH_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {

inline constexpr char kBucketPrefix[] = "s3://";

struct BucketPath {
  std::string bucket;
  std::string key;  // without '/' behind; empty: the whole bucket

  std::string Text() const;       // "s3://bucket/key"
  std::string PathInSet() const;  // "bucket/key"
  // The key is this one, or lies below it.
  bool IsIn(const BucketPath& folder) const;
  friend bool operator==(const BucketPath&, const BucketPath&) = default;
};

inline bool IsBucketPath(std::string_view path) { return path.starts_with(kBucketPrefix); }
// "S3://BUCKET/KEY": it was meant to be one.
bool IsMisspeltBucketPath(std::string_view path);
// A key has the names of CheckPathInSet: servers and HTTP clients would resolve "..".
absl::StatusOr<BucketPath> ParseBucketPath(std::string_view path);

// The cluster finds the path, not the machine of the job file.
inline bool IsClusterPath(std::string_view path) {
  return IsDataSetPath(path) || IsBucketPath(path);
}

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_BUCKET_PATH_H_
