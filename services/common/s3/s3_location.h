// S3Location: the bucket, prefix and server of --store=s3://BUCKET/PREFIX, or of one of
// --data-buckets.
// Threads: any; a value.
// Errors:  INVALID_ARGUMENT naming flag or variable, value and remedy.
#ifndef STAGECOACH_SERVICES_COMMON_S3_S3_LOCATION_H_
#define STAGECOACH_SERVICES_COMMON_S3_S3_LOCATION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

inline constexpr char kS3Scheme[] = "s3://";
inline bool IsS3Store(std::string_view store) { return store.starts_with(kS3Scheme); }

struct S3Location {
  std::string bucket;
  std::string prefix;  // "a/b", or empty
  std::string region;
  std::string base;        // "https://bucket.s3.eu-central-1.amazonaws.com", without a '/' behind
  std::string host;        // of base, with its port
  bool path_style = true;  // the bucket is the first part of a request's path
  std::string flag = "--store";  // that named it; for errors

  // As the flag has it: "s3://bucket/prefix".
  std::string ToString() const;
  // "/bucket/key" or "/key", decoded. An empty key: the bucket itself.
  std::string PathOf(const std::string& key) const;
};

// endpoint: "http://127.0.0.1:8333", of another server than AWS; empty: AWS. region: empty:
// us-east-1. flag: that has `store`.
absl::StatusOr<S3Location> ParseS3Location(const std::string& store, const std::string& endpoint,
                                           const std::string& region,
                                           const std::string& flag = "--store");

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_S3_LOCATION_H_
