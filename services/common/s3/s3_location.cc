#include "services/common/s3/s3_location.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

bool IsOf(const std::string& text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           others.find(c) != std::string_view::npos;
  });
}

absl::Status CheckPrefix(const std::string& given, const std::string& prefix) {
  if (prefix.empty()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(prefix, '/');
  const bool plain = prefix.size() <= 512 && IsOf(prefix, "._-/") &&
                     std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
                       return part.empty() || part == "." || part == "..";
                     });
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(given,
                   ": want s3://BUCKET/PREFIX with a prefix of letters, digits, '.', '-', "
                   "'_' and single '/'"));
}

// "http://host:port".
absl::Status CheckEndpoint(const std::string& endpoint, std::string* host) {
  absl::string_view rest = endpoint;
  const bool scheme =
      absl::ConsumePrefix(&rest, "http://") || absl::ConsumePrefix(&rest, "https://");
  *host = std::string(rest);
  if (scheme && !host->empty() && host->size() <= 300 && IsOf(*host, ".-_:[]")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--s3-endpoint=", endpoint,
                   ": want http://HOST:PORT or https://HOST:PORT, with nothing behind it"));
}

}  // namespace

std::string S3Location::ToString() const {
  return absl::StrCat(kS3Scheme, bucket, prefix.empty() ? "" : "/", prefix);
}

std::string S3Location::PathOf(const std::string& key) const {
  if (!path_style) return absl::StrCat("/", key);
  return absl::StrCat("/", bucket, key.empty() ? "" : "/", key);
}

absl::StatusOr<S3Location> ParseS3Location(const std::string& store, const std::string& endpoint,
                                           const std::string& region, const std::string& flag) {
  S3Location location{.flag = flag};
  const std::string given = absl::StrCat(flag, "=", store);
  absl::string_view rest = store;
  if (!absl::ConsumePrefix(&rest, kS3Scheme)) {
    return absl::InvalidArgumentError(absl::StrCat(
        given, ": want ", flag == "--store" ? "embedded, folder or " : "", "s3://BUCKET/PREFIX"));
  }
  absl::ConsumeSuffix(&rest, "/");
  const std::vector<std::string> parts = absl::StrSplit(rest, absl::MaxSplits('/', 1));
  location.bucket = parts[0];
  if (parts.size() > 1) location.prefix = parts[1];
  if (location.bucket.size() < 3 || location.bucket.size() > 63 || !IsOf(location.bucket, ".-")) {
    return absl::InvalidArgumentError(
        absl::StrCat(given,
                     ": want s3://BUCKET/PREFIX with a bucket's name of 3 to 63 letters, "
                     "digits, '.' and '-'"));
  }
  RETURN_IF_ERROR(CheckPrefix(given, location.prefix));
  location.region = region.empty() ? "us-east-1" : region;
  if (!IsOf(location.region, "-") || location.region.size() > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("AWS_REGION=", location.region, ": want a region's name, as eu-central-1"));
  }
  if (!endpoint.empty()) {
    std::string base = endpoint;
    if (base.ends_with("/")) base.pop_back();
    RETURN_IF_ERROR(CheckEndpoint(base, &location.host));
    location.base = base;
    return location;
  }
  // A certificate of *.s3.REGION.amazonaws.com is of no name with further dots.
  location.path_style = absl::StrContains(location.bucket, '.');
  location.host = absl::StrCat(location.path_style ? "" : absl::StrCat(location.bucket, "."), "s3.",
                               location.region, ".amazonaws.com");
  location.base = absl::StrCat("https://", location.host);
  return location;
}

}  // namespace stagecoach
