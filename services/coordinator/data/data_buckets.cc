#include "services/coordinator/data/data_buckets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr char kFlag[] = "--data-buckets";

// Of a listing or an answer's header.
std::string WithoutQuotes(std::string etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

bool IsHidden(std::string_view below) {
  return below.starts_with('.') || below.find("/.") != std::string_view::npos;
}

std::string FolderKey(const BucketPath& folder) {
  return absl::StrCat(folder.key, folder.key.empty() ? "" : "/");
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataBuckets>> DataBuckets::Open(const Options& options) {
  std::unique_ptr<DataBuckets> buckets(new DataBuckets(options));
  const std::string all = absl::StrJoin(options.prefixes, ",");
  for (const absl::string_view part : absl::StrSplit(all, ',', absl::SkipEmpty())) {
    const std::string prefix(part);
    ASSIGN_OR_RETURN(
        S3Location location,
        ParseS3Location(prefix, EndpointOfProcess(options.endpoint), RegionOfProcess(), kFlag));
    buckets->prefixes_.push_back({location.bucket, location.prefix});
    location.prefix.clear();
    const std::string bucket = location.bucket;
    buckets->clients_[bucket] = std::make_unique<S3Client>(
        S3Client::Options{.location = std::move(location), .give_up_seconds = kGiveUpSeconds},
        &buckets->transfer_, &buckets->credentials_);
  }
  return buckets;
}

absl::Status DataBuckets::CheckAllowed(const BucketPath& path) const {
  if (prefixes_.empty()) {
    return absl::FailedPreconditionError(
        "this coordinator reads no data from buckets: name a file of your machine, or have its "
        "operator add --data-buckets=s3://BUCKET/PREFIX");
  }
  const bool allowed = std::any_of(prefixes_.begin(), prefixes_.end(),
                                   [&](const BucketPath& prefix) { return path.IsIn(prefix); });
  if (allowed) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path.Text(), " is not beneath the coordinator's ", kFlag, "=",
                   absl::StrJoin(prefixes_, ",",
                                 [](std::string* text, const BucketPath& prefix) {
                                   absl::StrAppend(text, prefix.Text());
                                 }),
                   ": name an object there, or have its operator add the prefix"));
}

absl::StatusOr<S3Client*> DataBuckets::ClientOf(const BucketPath& path) {
  RETURN_IF_ERROR(CheckAllowed(path));
  return clients_.at(path.bucket).get();
}

absl::StatusOr<DataBuckets::Object> DataBuckets::Look(const BucketPath& path) {
  ASSIGN_OR_RETURN(S3Client* const client, ClientOf(path));
  ASSIGN_OR_RETURN(S3Entry entry, client->Look(path.key));
  return Object{path, entry.bytes, WithoutQuotes(std::move(entry.etag))};
}

absl::StatusOr<std::vector<DataBuckets::Object>> DataBuckets::List(const BucketPath& folder,
                                                                   bool flat, size_t most) {
  ASSIGN_OR_RETURN(S3Client* const client, ClientOf(folder));
  const std::string front = FolderKey(folder);
  ASSIGN_OR_RETURN(S3Listing listing, client->List(front, flat, most + 1));
  // Hidden names count: the listing may have ended before others.
  if (listing.objects.size() + listing.prefixes.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.Text(), ": has more than ", most,
                     " objects: name a folder with fewer, or pack small files into tar files "
                     "(data.webdataset)"));
  }
  std::vector<Object> objects;
  for (S3Entry& entry : listing.objects) {
    const std::string below = entry.key.substr(front.size());
    if (below.empty() || below.ends_with('/') || IsHidden(below)) continue;
    BucketPath path{folder.bucket, std::move(entry.key)};
    if (!CheckPathInSet(path.key).ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ShownName(path.Text()),
                       ": is no file's path: want names between slashes, none of them empty, in "
                       "UTF-8 without control characters; rename the object"));
    }
    objects.push_back({std::move(path), entry.bytes, WithoutQuotes(std::move(entry.etag))});
  }
  return objects;
}

absl::StatusOr<bool> DataBuckets::IsFolder(const BucketPath& path) {
  ASSIGN_OR_RETURN(S3Client* const client, ClientOf(path));
  ASSIGN_OR_RETURN(const S3Listing listing,
                   client->List(FolderKey(path), /*flat=*/true, /*most=*/1));
  return !listing.objects.empty() || !listing.prefixes.empty();
}

absl::StatusOr<std::string> DataBuckets::PresignRead(const BucketPath& path, int64_t seconds) {
  ASSIGN_OR_RETURN(S3Client* const client, ClientOf(path));
  return client->Presign("GET", path.key, {}, seconds);
}

}  // namespace stagecoach
