#include "tests/simulation/store/coordinator_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/store/store_names.h"
#include "services/common/store/store_parts.h"
#include "services/coordinator/store/object_names.h"
#include "services/coordinator/store/s3_store.h"

namespace stagecoach {
namespace {

std::string Secrets(const std::string& name) {
  if (name == "AWS_ACCESS_KEY_ID") return FakeS3::kAccessKey;
  return name == "AWS_SECRET_ACCESS_KEY" ? "secret" : "";
}

S3Location Location() {
  // Nobody listens there: BucketTransfer serves it.
  return *ParseS3Location(absl::StrCat("s3://", FakeS3::kBucket, "/p"), "http://127.0.0.1:9", "");
}

absl::StatusOr<std::string> ContentOf(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(path));
  std::string content(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(content))));
  return content;
}

std::string PartOf(const std::string& path) { return absl::StrCat(path, kPartSuffix); }

}  // namespace

CoordinatorStore::Bucket::Bucket(const Parts& parts)
    : credentials(parts.transfer, parts.clock, &Secrets),
      client({.location = Location()}, parts.transfer, &credentials, parts.clock),
      files(parts.files, &client),
      quick({.location = Location(), .give_up_seconds = S3Store::kQuickSeconds}, parts.transfer,
            &credentials, parts.clock),
      quick_files(parts.files, &quick),
      objects(&quick_files, &quick) {}

CoordinatorStore::CoordinatorStore(const Parts& parts) : parts_(parts), grants_(parts.clock) {
  if (parts.form == StoreForm::kEmbedded) names_.emplace(parts.files, kCheckpointFolder);
  if (parts.form == StoreForm::kBucket) bucket_ = std::make_unique<Bucket>(parts);
  const bool shared = parts.form == StoreForm::kFolder;
  checkpoints_.emplace(&files(), shared ? kCheckpointFolder : LocalStoreFiles::Root());
}

std::string CoordinatorStore::GrantFor(const std::string& folder, ObjectGrants::Use use) const {
  return IsStoreName(folder) ? grants_.Make(ObjectOf(folder), use) : "";
}

absl::Status CoordinatorStore::Check(const std::string& name, const std::string& grant,
                                     ObjectGrants::Use use) const {
  return grants_.Check(grant, FolderOf(name), use);
}

absl::StatusOr<std::string> CoordinatorStore::PathOf(const std::string& name, bool writes) const {
  ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf({.checkpoints = kCheckpointFolder}, name));
  if (writes) RETURN_IF_ERROR(CheckWritable(name, place));
  return place.path;
}

// As ObjectFiles::Find: what is not complete has another name.
absl::StatusOr<ObjectSize> CoordinatorStore::SizeOf(const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, PathOf(name, false));
  for (const bool complete : {true, false}) {
    const absl::StatusOr<std::string> content =
        ContentOf(*parts_.files, complete ? path : PartOf(path));
    if (content.ok()) return ObjectSize{static_cast<int64_t>(content->size()), complete};
    if (!absl::IsNotFound(content.status())) return content.status();
  }
  return absl::NotFoundError(absl::StrCat("store object ", name, " is not there"));
}

absl::Status CoordinatorStore::Find(const v1::FindObjectRequest& request,
                                    v1::FindObjectResponse* response) {
  RETURN_IF_ERROR(Check(request.name(), request.grant(), ObjectGrants::Use::kRead));
  if (bucket_) return bucket_->objects.Find(request.name(), response);
  ASSIGN_OR_RETURN(const ObjectSize size, SizeOf(request.name()));
  response->set_committed_size(size.committed);
  response->set_complete(size.complete);
  return absl::OkStatus();
}

absl::Status CoordinatorStore::Remove(const v1::RemoveObjectRequest& request,
                                      v1::RemoveObjectResponse*) {
  RETURN_IF_ERROR(Check(request.name(), request.grant(), ObjectGrants::Use::kWrite));
  if (bucket_) return bucket_->objects.Remove(request.name());
  ASSIGN_OR_RETURN(const std::string path, PathOf(request.name(), true));
  uploads_.erase(request.name());
  RETURN_IF_ERROR(parts_.files->RemoveAll(PartOf(path)));
  return parts_.files->RemoveAll(path);
}

absl::Status CoordinatorStore::Locate(const v1::LocateObjectRequest& request,
                                      v1::LocateObjectResponse* response) {
  const bool reads = request.use() == v1::OBJECT_USE_READ;
  RETURN_IF_ERROR(Check(request.name(), request.grant(),
                        reads ? ObjectGrants::Use::kRead : ObjectGrants::Use::kWrite));
  if (!bucket_) return absl::UnimplementedError("its bytes go through the coordinator");
  return bucket_->objects.Locate(request, grants_.SecondsLeft(request.grant()), response);
}

absl::Status CoordinatorStore::Complete(const v1::CompleteObjectRequest& request,
                                        v1::CompleteObjectResponse*) {
  RETURN_IF_ERROR(Check(request.name(), request.grant(), ObjectGrants::Use::kWrite));
  if (!bucket_) return absl::UnimplementedError("its bytes go through the coordinator");
  return bucket_->objects.Complete(request);
}

absl::StatusOr<std::string> CoordinatorStore::Read(const v1::ReadObjectRequest& request) {
  RETURN_IF_ERROR(Check(request.name(), request.grant(), ObjectGrants::Use::kRead));
  if (bucket_) return absl::UnimplementedError("is in a bucket; ask LocateObject");
  ASSIGN_OR_RETURN(const std::string path, PathOf(request.name(), false));
  ASSIGN_OR_RETURN(std::string content, ContentOf(*parts_.files, path));
  const int64_t size = static_cast<int64_t>(content.size());
  if (request.offset() < 0 || request.bytes() < 0 || request.offset() > size ||
      request.bytes() > size - request.offset()) {
    return absl::OutOfRangeError(absl::StrCat("store object ", request.name(), " has ", size));
  }
  const int64_t bytes = request.bytes() > 0 ? request.bytes() : size - request.offset();
  return content.substr(static_cast<size_t>(request.offset()), static_cast<size_t>(bytes));
}

// The upload under way, or what an earlier process, or one that failed, has left of it.
absl::Status CoordinatorStore::GoOn(const std::string& name, const std::string& part) {
  if (uploads_.contains(name)) return absl::OkStatus();
  absl::StatusOr<std::string> before = ContentOf(*parts_.files, part);
  if (absl::IsNotFound(before.status())) before = "";
  RETURN_IF_ERROR(before.status());
  // These files cannot be opened for more: a copy takes the place, whole or not at all.
  const std::string copy = absl::StrCat(part, ".copy");
  RETURN_IF_ERROR(parts_.files->RemoveAll(copy));
  Upload upload{.bytes = static_cast<int64_t>(before->size())};
  ASSIGN_OR_RETURN(upload.file, parts_.files->Create(copy));
  RETURN_IF_ERROR(upload.file->Append(std::as_bytes(std::span(*before))));
  RETURN_IF_ERROR(parts_.files->Rename(copy, part));
  uploads_[name] = std::move(upload);
  return absl::OkStatus();
}

absl::Status CoordinatorStore::Finish(const std::string& name, const std::string& path) {
  const auto found = uploads_.find(name);
  if (found != uploads_.end()) {
    const Upload upload = std::move(found->second);
    uploads_.erase(found);
    const absl::Status synced = parts_.forgets ? absl::OkStatus() : upload.file->Sync();
    if (!synced.ok()) {
      parts_.files->RemoveAll(PartOf(path)).IgnoreError();
      return synced;
    }
    RETURN_IF_ERROR(upload.file->Close());
    RETURN_IF_ERROR(parts_.files->Rename(PartOf(path), path));
  }
  return parts_.files->SyncFolder(FolderOf(path));
}

absl::StatusOr<int64_t> CoordinatorStore::Write(const std::vector<v1::WriteObjectRequest>& parts) {
  CHECK(!parts.empty());
  const std::string name = parts.front().name();
  RETURN_IF_ERROR(CheckCrc(parts.front()));
  RETURN_IF_ERROR(Check(name, parts.front().grant(), ObjectGrants::Use::kWrite));
  if (bucket_) return absl::UnimplementedError("is in a bucket; ask LocateObject");
  ASSIGN_OR_RETURN(const std::string path, PathOf(name, true));
  absl::StatusOr<ObjectSize> size = SizeOf(name);
  if (absl::IsNotFound(size.status())) size = ObjectSize{};
  RETURN_IF_ERROR(size.status());
  int64_t committed = size->committed;
  for (const v1::WriteObjectRequest& part : parts) {
    RETURN_IF_ERROR(CheckCrc(part));
    if (part.write_offset() != committed) {
      return absl::OutOfRangeError(absl::StrCat("write_offset=", part.write_offset(), ": it has ",
                                                committed, " bytes; go on from there"));
    }
    if (size->complete) {
      if (!part.data().empty()) return absl::AlreadyExistsError("the object is complete");
    } else {
      RETURN_IF_ERROR(GoOn(name, PartOf(path)));
      Upload& upload = uploads_[name];
      const absl::Status written = upload.file->Append(std::as_bytes(std::span(part.data())));
      if (!written.ok()) uploads_.erase(name);
      RETURN_IF_ERROR(written);
      committed = upload.bytes += static_cast<int64_t>(part.data().size());
    }
    if (part.finish_write()) RETURN_IF_ERROR(Finish(name, path));
  }
  return committed;
}

}  // namespace stagecoach
