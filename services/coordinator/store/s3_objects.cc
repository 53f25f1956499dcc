#include "services/coordinator/store/s3_objects.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

std::string PathOfObject(const std::string& name) { return absl::StrCat(kStorePrefix, name); }
std::string Object(const std::string& name) { return absl::StrCat("store object ", name); }

}  // namespace

bool S3Objects::Has(const std::string& name) {
  return absl::StartsWith(name, absl::StrCat(kCheckpointsArea, "/"));
}

absl::StatusOr<ObjectSize> S3Objects::Find(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string key, Annotate(files_.KeyOf(PathOfObject(name)), Object(name)));
  ASSIGN_OR_RETURN(const int64_t bytes, Annotate(client_.Size(key), Object(name)));
  return ObjectSize{bytes, /*complete=*/true};
}

// As ObjectFiles does: shards of a checkpoint that is begun.
absl::StatusOr<std::string> S3Objects::WritableKey(const std::string& name) {
  ASSIGN_OR_RETURN(std::string key, Annotate(files_.KeyOf(PathOfObject(name)), Object(name)));
  if (ParseTemporaryFolder(NameOf(FolderOf(name))) && CheckShardFile(NameOf(name)).ok()) return key;
  return absl::PermissionDeniedError(
      absl::StrCat(Object(name), ": only shards of a checkpoint that is begun are written"));
}

absl::Status S3Objects::Remove(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string key, WritableKey(name));
  RETURN_IF_ERROR(Annotate(client_.Delete(key), Object(name)));
  return Annotate(client_.DropParts(key), Object(name));
}

absl::Status S3Objects::LocateParts(const v1::LocateObjectRequest& request, const std::string& key,
                                    int64_t seconds, v1::LocateObjectResponse* response) {
  const int64_t first = request.first_part(), count = request.parts();
  if (first < 1 || count < 1 || count > kMostUrls || first + count - 1 > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_part=", first, ", parts=", count, ": want 1 to ", kMostUrls,
                     " parts of 1 to ", kMostParts, "; cut the object into larger ones"));
  }
  std::string upload = request.upload_id();
  if (upload.empty()) {
    ASSIGN_OR_RETURN(upload, client_.BeginParts(key));
  }
  for (int64_t part = first; part < first + count; ++part) {
    ASSIGN_OR_RETURN(
        std::string url,
        client_.Presign("PUT", key, {{"partNumber", absl::StrCat(part)}, {"uploadId", upload}},
                        seconds));
    response->add_urls(std::move(url));
  }
  response->set_upload_id(std::move(upload));
  return absl::OkStatus();
}

absl::Status S3Objects::Locate(const v1::LocateObjectRequest& request, int64_t seconds,
                               v1::LocateObjectResponse* response) {
  const std::string& name = request.name();
  const bool reads = request.use() == v1::OBJECT_USE_READ;
  if (!reads && request.use() != v1::OBJECT_USE_WRITE &&
      request.use() != v1::OBJECT_USE_WRITE_PARTS) {
    return absl::InvalidArgumentError(absl::StrCat("use=", request.use(),
                                                   ": want OBJECT_USE_READ, OBJECT_USE_WRITE or "
                                                   "OBJECT_USE_WRITE_PARTS"));
  }
  ASSIGN_OR_RETURN(
      const std::string key,
      reads ? Annotate(files_.KeyOf(PathOfObject(name)), Object(name)) : WritableKey(name));
  if (request.use() == v1::OBJECT_USE_WRITE_PARTS) {
    return Annotate(LocateParts(request, key, seconds, response), Object(name));
  }
  ASSIGN_OR_RETURN(std::string url, client_.Presign(reads ? "GET" : "PUT", key, {}, seconds));
  response->add_urls(std::move(url));
  return absl::OkStatus();
}

absl::Status S3Objects::Complete(const v1::CompleteObjectRequest& request) {
  ASSIGN_OR_RETURN(const std::string key, WritableKey(request.name()));
  const std::vector<std::string> etags(request.etags().begin(), request.etags().end());
  return Annotate(client_.CompleteParts(key, request.upload_id(), etags, request.bytes()),
                  Object(request.name()));
}

}  // namespace stagecoach
