#include "plan/data/bucket_path.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {

std::string BucketPath::PathInSet() const {
  return absl::StrCat(bucket, key.empty() ? "" : "/", key);
}

std::string BucketPath::Text() const { return absl::StrCat(kBucketPrefix, PathInSet()); }

bool IsMisspeltBucketPath(std::string_view path) {
  return !IsBucketPath(path) &&
         absl::StartsWithIgnoreCase(absl::string_view(path.data(), path.size()), kBucketPrefix);
}

bool BucketPath::IsIn(const BucketPath& folder) const {
  if (bucket != folder.bucket) return false;
  return folder.key.empty() || key == folder.key || key.starts_with(folder.key + "/");
}

absl::StatusOr<BucketPath> ParseBucketPath(std::string_view path) {
  const std::string rule =
      absl::StrCat(ShownName(std::string(path.substr(0, 200))), ": want s3://BUCKET/KEY");
  if (!IsBucketPath(path)) return absl::InvalidArgumentError(rule);
  std::string_view rest = path.substr(std::string_view(kBucketPrefix).size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.find('/');
  BucketPath parsed{.bucket = std::string(rest.substr(0, slash))};
  const bool plain =
      parsed.bucket.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == std::string::npos;
  if (!plain || parsed.bucket.size() < 3 || parsed.bucket.size() > 63 ||
      parsed.bucket.find("..") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule, " with a bucket's name of 3 to 63 letters, digits, '.' and '-'"));
  }
  if (slash == std::string_view::npos) return parsed;
  parsed.key = std::string(rest.substr(slash + 1));
  if (const absl::Status sound = CheckPathInSet(parsed.key); !sound.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(rule,
                     " with a KEY of names between slashes, none of them empty, \".\" or "
                     "\"..\", in UTF-8 without control characters, at most 4096 bytes"));
  }
  return parsed;
}

}  // namespace stagecoach
