#include "services/coordinator/store/s3_objects.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/common/store/store_names.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

std::string PathOfObject(const std::string& name) { return absl::StrCat(kStorePrefix, name); }
std::string Object(const std::string& name) { return absl::StrCat("store object ", name); }

bool IsData(const std::string& name) {
  const ObjectArea area = AreaOf(name);
  return area == ObjectArea::kDataPart || area == ObjectArea::kDataSet;
}

}  // namespace

bool S3Objects::Has(const std::string& name) const {
  if (sets_ != nullptr && IsData(name)) return true;
  return absl::StartsWith(name, absl::StrCat(kCheckpointsArea, "/"));
}

absl::StatusOr<std::string> S3Objects::KeyOf(const std::string& name) {
  if (sets_ == nullptr || !IsData(name)) {
    return Annotate(files_.KeyOf(PathOfObject(name)), Object(name));
  }
  ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(ObjectFolders(), name));
  const std::string folder = NameOf(FolderOf(name));  // an owner or a set
  if (place.area == ObjectArea::kDataPart) return sets_->KeyOfPart(folder, NameOf(name));
  return Annotate(sets_->KeyInSet(folder, NameOf(name)), Object(name));
}

absl::Status S3Objects::FindUpload(const std::string& name, const std::string& key,
                                   v1::FindObjectResponse* response) {
  const absl::Status none = absl::NotFoundError(absl::StrCat(Object(name), " is not there"));
  ASSIGN_OR_RETURN(const std::vector<S3Upload> uploads,
                   Annotate(client_.ListUploads(key), Object(name)));
  const S3Upload* newest = nullptr;
  for (const S3Upload& upload : uploads) {
    if (upload.key != key) continue;
    if (newest == nullptr || upload.begun_seconds >= newest->begun_seconds) newest = &upload;
  }
  if (newest == nullptr) return none;
  const absl::StatusOr<std::vector<S3Part>> parts = client_.ListParts(key, newest->id);
  if (absl::IsNotFound(parts.status())) return none;  // completed or dropped meanwhile
  RETURN_IF_ERROR(Annotate(parts.status(), Object(name)));
  int64_t bytes = 0;
  for (const S3Part& part : *parts) {
    v1::UploadedPart& uploaded = *response->add_uploaded();
    uploaded.set_bytes(part.bytes);
    uploaded.set_etag(part.etag);
    bytes += part.bytes;
  }
  response->set_upload_id(newest->id);
  response->set_committed_size(bytes);
  return absl::OkStatus();
}

absl::Status S3Objects::Find(const std::string& name, v1::FindObjectResponse* response) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  // Twice: the upload may have been completed between the first two looks.
  for (const bool last : {false, true}) {
    const absl::StatusOr<int64_t> bytes = client_.Size(key);
    if (bytes.ok()) {
      response->set_committed_size(*bytes);
      response->set_complete(true);
      return absl::OkStatus();
    }
    const bool is_part = sets_ != nullptr && AreaOf(name) == ObjectArea::kDataPart;
    if (last || !is_part || !absl::IsNotFound(bytes.status())) {
      return Annotate(bytes.status(), Object(name));
    }
    const absl::Status found = FindUpload(name, key, response);
    if (!absl::IsNotFound(found)) return found;
  }
  return absl::OkStatus();
}

// As ObjectFiles does: shards of a checkpoint that is begun, and parts of data sets.
absl::StatusOr<std::string> S3Objects::WritableKey(const std::string& name) {
  ASSIGN_OR_RETURN(std::string key, KeyOf(name));
  if (IsData(name)) {
    if (AreaOf(name) == ObjectArea::kDataPart) return key;
  } else if (ParseTemporaryFolder(NameOf(FolderOf(name))) && CheckShardFile(NameOf(name)).ok()) {
    return key;
  }
  return absl::PermissionDeniedError(absl::StrCat(
      Object(name),
      ": only shards of a checkpoint that is begun and parts of data sets are written"));
}

absl::Status S3Objects::Remove(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string key, WritableKey(name));
  if (IsData(name)) {
    return absl::PermissionDeniedError(absl::StrCat(
        Object(name), ": parts go with their data sets; `stagecoach data remove` does that"));
  }
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
  ASSIGN_OR_RETURN(const std::string key, reads ? KeyOf(name) : WritableKey(name));
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
  RETURN_IF_ERROR(Annotate(client_.CompleteParts(key, request.upload_id(), etags, request.bytes()),
                           Object(request.name())));
  if (!IsData(request.name())) return absl::OkStatus();
  sets_->NoteComplete(NameOf(FolderOf(request.name())), NameOf(request.name()));
  client_.DropParts(key).IgnoreError();  // of clients that began the same part; a sweep does it else
  return absl::OkStatus();
}

}  // namespace stagecoach
