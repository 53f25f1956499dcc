#include "services/common/store/remote_store_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/common/store/ahead_reader.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

// A call's worth of bytes: large enough that the answer's way back costs little.
constexpr size_t kSegmentBytes = size_t{16} << 20;

class ObjectReader final : public ReadableFile {
 public:
  ObjectReader(StoreClient* client, StoredObject object, int64_t size)
      : client_(*client), object_(std::move(object)), size_(size) {}
  int64_t size() const override { return size_; }
  absl::Status Read(int64_t offset, std::span<std::byte> target) override {
    return client_.Read(object_, offset, target);
  }

 private:
  StoreClient& client_;
  const StoredObject object_;
  const int64_t size_;
};

// Collects a segment, then sends it. Sync completes the object.
class ObjectWriter final : public WritableFile {
 public:
  ObjectWriter(StoreClient* client, StoredObject object)
      : client_(*client), object_(std::move(object)) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    RETURN_IF_ERROR(status_);
    if (complete_) {
      return absl::FailedPreconditionError(
          absl::StrCat("store object ", object_.name, " is complete"));
    }
    while (!bytes.empty()) {
      const auto now = bytes.first(std::min(bytes.size(), kSegmentBytes - segment_.size()));
      segment_.insert(segment_.end(), now.begin(), now.end());
      bytes = bytes.subspan(now.size());
      if (segment_.size() == kSegmentBytes) RETURN_IF_ERROR(Send(false));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(status_);
    if (complete_) return absl::OkStatus();
    RETURN_IF_ERROR(Send(true));
    complete_ = true;
    segment_ = {};
    return absl::OkStatus();
  }
  absl::Status Close() override { return Sync(); }

 private:
  absl::Status Send(bool finish) {
    status_ = client_.Append(object_, offset_, segment_, finish);
    offset_ += static_cast<int64_t>(segment_.size());
    segment_.clear();
    return status_;
  }

  StoreClient& client_;
  const StoredObject object_;
  std::vector<std::byte> segment_;
  int64_t offset_ = 0;
  bool complete_ = false;
  absl::Status status_;  // the first failure; every later call answers it
};

absl::Status CoordinatorOnly(const char* what, const std::string& path) {
  return absl::UnimplementedError(
      absl::StrCat(what, " ", path, ": only the coordinator does that in its store"));
}

}  // namespace

void RemoteStoreFiles::Admit(const std::string& folder, const std::string& grant) {
  if (!IsStoreName(folder) || grant.empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!grants_.insert_or_assign(folder, grant).second) std::erase(order_, folder);
  order_.push_back(folder);
  if (order_.size() > kMostGrants) {
    grants_.erase(order_.front());
    order_.pop_front();
  }
}

absl::StatusOr<StoredObject> RemoteStoreFiles::ObjectAt(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = grants_.find(FolderOf(path));
  if (found == grants_.end()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": the coordinator gave this stage no grant for that folder"));
  }
  return StoredObject{ObjectOf(path), found->second};
}

absl::StatusOr<std::unique_ptr<ReadableFile>> RemoteStoreFiles::Open(const std::string& path) {
  if (!IsStoreName(path)) return below_.Open(path);
  ASSIGN_OR_RETURN(StoredObject object, ObjectAt(path));
  ASSIGN_OR_RETURN(const StoreClient::Size size, client_.Find(object));
  if (!size.complete) return absl::NotFoundError(absl::StrCat(path, ": is not complete"));
  ASSIGN_OR_RETURN(const bool direct, client_.IsDirect(object));
  if (!direct) return std::make_unique<ObjectReader>(&client_, std::move(object), size.committed);
  return ReadAhead(path, size.committed,
                   [this, object](int64_t offset, std::span<std::byte> target) {
                     return client_.Read(object, offset, target);
                   });
}

absl::Status RemoteStoreFiles::Look(const std::string& path) {
  if (!IsStoreName(path)) return below_.Look(path);
  ASSIGN_OR_RETURN(const StoredObject object, ObjectAt(path));
  return client_.Find(object).status();
}

absl::StatusOr<std::unique_ptr<WritableFile>> RemoteStoreFiles::Create(const std::string& path) {
  if (!IsStoreName(path)) return below_.Create(path);
  ASSIGN_OR_RETURN(StoredObject object, ObjectAt(path));
  const absl::StatusOr<StoreClient::Size> there = client_.Find(object);
  if (there.ok()) return absl::AlreadyExistsError(absl::StrCat("create ", path, ": is there"));
  if (!absl::IsNotFound(there.status())) return there.status();
  return std::make_unique<ObjectWriter>(&client_, std::move(object));
}

absl::Status RemoteStoreFiles::MakeFolders(const std::string& path) {
  return IsStoreName(path) ? CoordinatorOnly("make folder", path) : below_.MakeFolders(path);
}

absl::StatusOr<std::vector<std::string>> RemoteStoreFiles::List(const std::string& folder) {
  if (IsStoreName(folder)) return CoordinatorOnly("list", folder);
  return below_.List(folder);
}

absl::Status RemoteStoreFiles::Rename(const std::string& from, const std::string& to) {
  if (IsStoreName(from) || IsStoreName(to)) return CoordinatorOnly("rename", from);
  return below_.Rename(from, to);
}

// The coordinator syncs the folder of each object that is complete.
absl::Status RemoteStoreFiles::SyncFolder(const std::string& folder) {
  return IsStoreName(folder) ? absl::OkStatus() : below_.SyncFolder(folder);
}

absl::Status RemoteStoreFiles::RemoveAll(const std::string& path) {
  if (!IsStoreName(path)) return below_.RemoveAll(path);
  ASSIGN_OR_RETURN(const StoredObject object, ObjectAt(path));
  return client_.Remove(object);
}

bool RemoteStoreFiles::IsLink(const std::string& path) {
  return !IsStoreName(path) && below_.IsLink(path);
}

absl::StatusOr<int64_t> RemoteStoreFiles::FreeBytes(const std::string& folder) {
  if (IsStoreName(folder)) return CoordinatorOnly("free bytes of", folder);
  return below_.FreeBytes(folder);
}

}  // namespace stagecoach
