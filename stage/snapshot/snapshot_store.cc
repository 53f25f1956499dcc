#include "stage/snapshot/snapshot_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "stage/snapshot/available_memory.h"

namespace stagecoach {

SnapshotStore::SnapshotStore(std::function<int64_t()> free_bytes)
    : free_bytes_(std::move(free_bytes)) {}

void SnapshotStore::Begin(const std::string& job, const std::string& key, bool keeps) {
  std::vector<StoredShard> own, copies;  // gone once the mutex is let go: that takes a while
  std::optional<Arriving> arriving;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!keeps || job != job_ || key != key_) {
    own.swap(own_);
    copies.swap(copies_);
  }
  arriving.swap(arriving_);
  job_ = job;
  key_ = key;
  neighbour_.reset();
}

void SnapshotStore::TakeCopies(Neighbour neighbour) {
  std::lock_guard<std::mutex> lock(mutex_);
  neighbour_ = std::move(neighbour);
}

void SnapshotStore::Clear(const std::string& job) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (job != job_) return;
  }
  Clear();
}

void SnapshotStore::Clear() { Begin("", "", false); }

void SnapshotStore::MakeRoom(uint64_t kept) {
  std::vector<StoredShard> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto rest = std::partition(own_.begin(), own_.end(), [kept](const StoredShard& shard) {
    return shard.held.step == kept;
  });
  dropped.assign(std::make_move_iterator(rest), std::make_move_iterator(own_.end()));
  own_.erase(rest, own_.end());
}

void SnapshotStore::Add(const std::string& key, StoredShard shard) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (key == key_) AddLocked(&own_, std::move(shard));
}

void SnapshotStore::AddLocked(std::vector<StoredShard>* shards, StoredShard shard) {
  std::erase_if(*shards, [&shard](const StoredShard& other) {
    return other.held.step == shard.held.step && other.held.info.file == shard.held.info.file;
  });
  shards->push_back(std::move(shard));
}

absl::StatusOr<bool> SnapshotStore::Put(const SnapshotPart& part) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!neighbour_.has_value() || part.fence.job != neighbour_->cell.job ||
      CompareIncarnation(part.fence, neighbour_->cell) != 0 || part.key != key_) {
    return absl::AbortedError(
        absl::StrCat("a snapshot of ", part.fence.ToString(), ": no neighbour of it is here"));
  }
  if (part.offset == 0) RETURN_IF_ERROR(BeginCopyLocked(part));
  const bool next = arriving_.has_value() && arriving_->held.step == part.fence.step &&
                    arriving_->held.info.file == part.shard.info.file &&
                    arriving_->received == part.offset;
  if (!next) {
    return absl::FailedPreconditionError(absl::StrCat("a part of a snapshot at byte ", part.offset,
                                                      " (", part.fence.ToString(),
                                                      "): another one is the next"));
  }
  Arriving& arriving = *arriving_;
  const auto size = static_cast<int64_t>(part.bytes.size());
  if (size == 0 || size > arriving.held.info.bytes - arriving.received) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part of ", size, " bytes at byte ", part.offset, " of a shard of ",
                     arriving.held.info.bytes, " (", part.fence.ToString(), ")"));
  }
  std::memcpy(arriving.bytes.get() + arriving.received, part.bytes.data(), part.bytes.size());
  arriving.received += size;
  if (arriving.received < arriving.held.info.bytes) return false;
  const auto bytes = static_cast<size_t>(arriving.held.info.bytes);
  AddLocked(&copies_, {std::move(arriving.held), {arriving.bytes.get(), bytes}, arriving.bytes});
  arriving_.reset();
  return true;
}

absl::Status SnapshotStore::BeginCopyLocked(const SnapshotPart& part) {
  arriving_.reset();
  const ShardInfo& info = part.shard.info;
  if (info.file != neighbour_->file || part.shard.step != part.fence.step || info.bytes <= 0 ||
      info.bytes > neighbour_->most_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a shard ", info.file, " of ", info.bytes, " bytes, step ", part.shard.step, "; expected ",
        neighbour_->file, " of at most ", neighbour_->most_bytes, ", step ", part.fence.step));
  }
  std::erase_if(copies_,
                [&part](const StoredShard& shard) { return shard.held.step != part.kept; });
  RETURN_IF_ERROR(CheckMemory(info.bytes, free_bytes_()));
  ASSIGN_OR_RETURN(std::unique_ptr<std::byte[]> bytes, TakeBytes(info.bytes));
  arriving_ = Arriving{part.shard, std::move(bytes)};
  return absl::OkStatus();
}

std::vector<HeldShard> SnapshotStore::List(const std::string& job, const std::string& key) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<HeldShard> held;
  if (job != job_ || key != key_) return held;
  for (const auto* shards : {&own_, &copies_}) {
    for (const StoredShard& shard : *shards) held.push_back(shard.held);
  }
  return held;
}

std::optional<StoredShard> SnapshotStore::Find(const std::string& job, const std::string& key,
                                               uint64_t step, const std::string& file) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (job != job_ || key != key_) return std::nullopt;
  for (const auto* shards : {&own_, &copies_}) {
    for (const StoredShard& shard : *shards) {
      if (shard.held.step == step && shard.held.info.file == file) return shard;
    }
  }
  return std::nullopt;
}

absl::Status SnapshotStore::Read(const SnapshotRange& range, std::span<std::byte> target) const {
  const std::optional<StoredShard> shard = Find(range.job, range.key, range.step, range.file);
  const std::string what = absl::StrCat("shard ", range.file, " of a snapshot of job ", range.job,
                                        ", step ", range.step);
  if (!shard.has_value()) return absl::NotFoundError(absl::StrCat(what, " is not here"));
  if (range.offset < 0 || range.offset > static_cast<int64_t>(shard->file.size()) ||
      target.size() > shard->file.size() - static_cast<size_t>(range.offset)) {
    return absl::OutOfRangeError(absl::StrCat(what, ": ", target.size(), " bytes at ", range.offset,
                                              " of ", shard->file.size()));
  }
  if (!target.empty()) std::memcpy(target.data(), shard->file.data() + range.offset, target.size());
  return absl::OkStatus();
}

int64_t SnapshotStore::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t bytes = arriving_.has_value() ? arriving_->held.info.bytes : 0;
  for (const auto* shards : {&own_, &copies_}) {
    for (const StoredShard& shard : *shards) bytes += static_cast<int64_t>(shard.file.size());
  }
  return bytes;
}

}  // namespace stagecoach
