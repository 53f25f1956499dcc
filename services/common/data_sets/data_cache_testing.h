// FakeDataStore: a data set in the coordinator's store, for tests of the cache. It counts what is
// read, and can break reads, lie, and ask for a grant.
// Threads: thread-safe.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_TESTING_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "base/files/hash.h"
#include "services/common/data_sets/data_cache.h"

namespace stagecoach {

inline std::string RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class FakeDataStore {
 public:
  // files: path to bytes. Those below `packed_below` bytes lie behind each other in one part.
  FakeDataStore(std::string set, const std::map<std::string, std::string>& files,
                size_t packed_below = 0)
      : set_(std::move(set)), folder_("data/sets/" + set_) {
    std::string packed;
    for (const auto& [path, bytes] : files) {
      if (bytes.size() < packed_below) packed += bytes;
    }
    v1::DataManifest manifest;
    const auto add = [&](const std::string& bytes) {
      v1::DataPart& part = *manifest.add_parts();
      part.set_sha256(Sha256Hex(bytes));
      part.set_bytes(std::ssize(bytes));
      objects_[folder_ + "/" + part.sha256()] = bytes;
      return manifest.parts_size() - 1;
    };
    const int pack = packed.empty() ? -1 : add(packed);
    int64_t at = 0;
    for (const auto& [path, bytes] : files) {
      v1::DataSetFile& file = *manifest.add_files();
      file.set_path(path);
      file.set_bytes(std::ssize(bytes));
      if (bytes.empty()) continue;
      if (bytes.size() < packed_below) {
        file.set_part(pack);
        file.set_offset(std::exchange(at, at + file.bytes()));
      } else {
        file.set_part(add(bytes));
      }
    }
    objects_[folder_ + "/" + kDataManifestObject] = manifest.SerializeAsString();
  }

  // Its parts are objects outside the store from now on, named by where they are.
  void LinkParts() {
    std::lock_guard<std::mutex> lock(mutex_);
    v1::DataManifest manifest;
    CHECK(manifest.ParseFromString(objects_.at(folder_ + "/" + kDataManifestObject)));
    for (v1::DataPart& part : *manifest.mutable_parts()) {
      auto object = objects_.extract(folder_ + "/" + part.sha256());
      part.set_source("s3://bucket/" + part.sha256());
      part.set_etag("1");
      part.set_sha256(Sha256Hex(part.source() + "\n" + part.etag() + "\n"));
      object.key() = folder_ + "/" + part.sha256();
      objects_.insert(std::move(object));
    }
    objects_[folder_ + "/" + kDataManifestObject] = manifest.SerializeAsString();
  }

  void LeaveUnproven() { unproven_ = true; }  // before Cache

  // A cache on a folder with the set's grant; it keeps `bytes`.
  std::unique_ptr<DataCache> Cache(const std::string& folder, int64_t bytes = int64_t{1} << 40) {
    auto cache = std::make_unique<DataCache>(DataCache::Options{
        .folder = [folder]() -> absl::StatusOr<std::string> { return folder; },
        .bytes = bytes,
        .size = [this](const StoredObject& object) -> absl::StatusOr<int64_t> {
          const std::string* const bytes_of = Find(object);
          if (bytes_of == nullptr) return absl::NotFoundError(object.name);
          return std::ssize(*bytes_of);
        },
        .read = [this](const StoredObject& object, int64_t offset,
                       std::span<std::byte> into) { return Read(object, offset, into); }});
    cache->Admit(set_, {folder_, grant(), unproven_});
    return cache;
  }
  // Null: there is none of this name.
  const std::string* Find(const StoredObject& object) const {
    const auto found = objects_.find(object.name);
    return found == objects_.end() ? nullptr : &found->second;
  }
  const std::string& set() const { return set_; }
  DataSetPath Path(const std::string& path) const { return {set_, path}; }
  const std::string& folder() const { return folder_; }

  std::string grant() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return grant_;
  }
  void set_grant(const std::string& grant) {
    std::lock_guard<std::mutex> lock(mutex_);
    grant_ = grant;
  }
  // Is asked before each read of a part; an error breaks it.
  using Fault = std::function<absl::Status(int64_t offset, std::span<std::byte> into)>;
  void set_fault(Fault fault) {
    std::lock_guard<std::mutex> lock(mutex_);
    fault_ = std::move(fault);
  }
  void Damage(const std::string& sha256) {
    std::lock_guard<std::mutex> lock(mutex_);
    objects_.at(folder_ + "/" + sha256).front() ^= 1;
  }
  int64_t read_bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return read_bytes_;
  }
  // Offset and bytes of each read of a part.
  std::vector<std::pair<int64_t, int64_t>> reads() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return reads_;
  }

 private:
  absl::Status Read(const StoredObject& object, int64_t offset, std::span<std::byte> into) {
    Fault fault;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (object.grant != grant_) return absl::PermissionDeniedError("the grant is none");
      if (!object.name.ends_with(kDataManifestObject)) fault = fault_;
    }
    if (fault) {
      if (absl::Status broken = fault(offset, into); !broken.ok()) return broken;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    const std::string* const bytes = Find(object);
    CHECK(bytes != nullptr) << object.name;
    CHECK(offset >= 0 && offset + std::ssize(into) <= std::ssize(*bytes)) << object.name;
    std::memcpy(into.data(), bytes->data() + offset, into.size());
    if (object.name.ends_with(kDataManifestObject)) return absl::OkStatus();
    read_bytes_ += std::ssize(into);
    reads_.emplace_back(offset, std::ssize(into));
    return absl::OkStatus();
  }

  const std::string set_, folder_;
  bool unproven_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::string> objects_;
  std::string grant_ = "grant";
  Fault fault_;
  int64_t read_bytes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> reads_;
};

// Bytes of an opened file, as readers of stages take them.
inline absl::StatusOr<std::string> ReadRange(const DataSets::File& file, int64_t offset,
                                             int64_t bytes) {
  if (absl::Status needed = file.ranges->Need(offset, bytes); !needed.ok()) return needed;
  std::string text(static_cast<size_t>(bytes), '\0');
  const ssize_t got = pread(file.descriptor.get(), text.data(), text.size(), file.begin + offset);
  if (got != bytes) return absl::InternalError("a short read");
  return text;
}

inline absl::StatusOr<std::string> ReadWholeFile(DataCache& cache, const DataSetPath& path) {
  auto file = cache.Open(path, DataSets::Reading::kSome);
  if (!file.ok()) return file.status();
  return ReadRange(*file, 0, file->bytes);
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_TESTING_H_
