#include "stage/snapshot/snapshot_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/snapshot/available_memory.h"

namespace stagecoach {
namespace {

// Moves what is not kept behind the mutex, where it may take its time to go.
template <typename T, typename Keeps>
std::vector<T> TakeOut(std::vector<T>* all, Keeps keeps) {
  const auto rest = std::stable_partition(all->begin(), all->end(), keeps);
  std::vector<T> out(std::make_move_iterator(rest), std::make_move_iterator(all->end()));
  all->erase(rest, all->end());
  return out;
}

bool IsKept(const StoredShard& shard, uint64_t kept, bool of_load) {
  return shard.held.step == kept && shard.of_load == of_load;
}

}  // namespace

SnapshotStore::SnapshotStore(std::function<int64_t()> free_bytes)
    : free_bytes_(std::move(free_bytes)) {}

void SnapshotStore::Begin(const std::string& job, const std::string& key,
                          const std::optional<LoadedFrom>& from) {
  std::set<std::string>
      unused;  // each file once: taken again at the same step it has the same bytes
  if (from.has_value()) unused = from->files;
  const auto use = [&](StoredShard& shard) {
    shard.of_load = shard.held.step == from->step && unused.erase(shard.held.info.file) > 0;
    return shard.of_load;
  };
  std::vector<StoredShard> own;  // gone once the mutex is let go: that may take a while
  std::vector<Copy> copies;
  std::optional<Arriving> arriving;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool uses = from.has_value() && job == job_ && key == key_;
  own = TakeOut(&own_, [&](StoredShard& shard) { return uses && use(shard); });
  copies = TakeOut(&copies_, [&](Copy& copy) { return uses && use(copy.shard); });
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

void SnapshotStore::Clear() { Begin("", "", std::nullopt); }

void SnapshotStore::MakeRoom(uint64_t kept, bool of_load) {
  std::vector<StoredShard> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  dropped = TakeOut(&own_, [=](const StoredShard& shard) { return IsKept(shard, kept, of_load); });
}

void SnapshotStore::Add(const std::string& key, StoredShard shard) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (key == key_) own_.push_back(std::move(shard));
}

absl::StatusOr<bool> SnapshotStore::Put(const SnapshotPart& part) {
  const bool looks = part.offset % kLookBytes == 0;
  const int64_t free_bytes = looks ? free_bytes_() : 0;
  std::vector<Copy> dropped;
  std::optional<Arriving> given_up;
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(CheckPartLocked(part));
  if (part.offset == 0) {
    given_up.swap(arriving_);
    RETURN_IF_ERROR(BeginCopyLocked(part, free_bytes, &dropped));
  }
  const bool next = arriving_.has_value() && arriving_->held.step == part.fence.step &&
                    arriving_->held.info.file == part.shard.info.file &&
                    arriving_->received == part.offset;
  if (!next) {
    return absl::FailedPreconditionError(absl::StrCat("a part of a snapshot at byte ", part.offset,
                                                      " (", part.fence.ToString(),
                                                      "): another one is the next"));
  }
  Arriving& arriving = *arriving_;
  const int64_t rest = arriving.held.info.bytes - arriving.received;
  const auto size = static_cast<int64_t>(part.bytes.size());
  if (size == 0 || size > rest) {
    return absl::InvalidArgumentError(absl::StrCat("a part of ", size, " bytes at byte ",
                                                   part.offset, ", and ", rest, " are missing (",
                                                   part.fence.ToString(), ")"));
  }
  if (looks && part.offset > 0 && arriving.fresh) {
    if (absl::Status short_of = CheckMemory(rest, free_bytes); !short_of.ok()) {
      given_up.swap(arriving_);
      return short_of;
    }
  }
  std::memcpy(arriving.buffer.bytes.get() + arriving.received, part.bytes.data(),
              part.bytes.size());
  arriving.received += size;
  if (size < rest) return false;
  StoredShard shard{.held = std::move(arriving.held), .file = {}, .keeps = arriving.buffer.bytes};
  shard.file = {arriving.buffer.bytes.get(), static_cast<size_t>(shard.held.info.bytes)};
  copies_.push_back({std::move(shard), std::move(arriving.buffer)});
  arriving_.reset();
  return true;
}

absl::Status SnapshotStore::CheckPartLocked(const SnapshotPart& part) const {
  if (!neighbour_.has_value() || part.fence.job != neighbour_->cell.job ||
      CompareIncarnation(part.fence, neighbour_->cell) != 0 || part.key != key_) {
    return absl::AbortedError(
        absl::StrCat("a snapshot of ", part.fence.ToString(), ": no neighbour of it is here"));
  }
  const ShardInfo& info = part.shard.info;
  if (part.offset > 0 || (info.file == neighbour_->file && part.shard.step == part.fence.step &&
                          info.bytes > 0 && info.bytes <= neighbour_->most_bytes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a shard ", info.file, " of ", info.bytes, " bytes, step ", part.shard.step, "; expected ",
      neighbour_->file, " of at most ", neighbour_->most_bytes, ", step ", part.fence.step));
}

// The memory of a copy that goes is taken for the one that comes: as a rule they alternate, and
// nothing is given back to the machine or asked of it.
absl::Status SnapshotStore::BeginCopyLocked(const SnapshotPart& part, int64_t free_bytes,
                                            std::vector<Copy>* dropped) {
  const int64_t bytes = part.shard.info.bytes;
  *dropped = TakeOut(&copies_, [&part](const Copy& copy) {
    return IsKept(copy.shard, part.kept, part.kept_of_load);
  });
  for (Copy& copy : *dropped) {
    copy.shard.keeps.reset();
    if (copy.buffer.size != bytes || copy.buffer.bytes.use_count() != 1) continue;
    arriving_ = Arriving{part.shard, std::move(copy.buffer)};
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckMemory(bytes, free_bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<std::byte[]> taken, TakeBytes(bytes));
  arriving_ = Arriving{part.shard, {std::move(taken), bytes}, /*fresh=*/true};
  return absl::OkStatus();
}

std::vector<HeldShard> SnapshotStore::List(const std::string& job, const std::string& key) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<HeldShard> held;
  if (job != job_ || key != key_) return held;
  for (const StoredShard& shard : own_) held.push_back(shard.held);
  for (const Copy& copy : copies_) held.push_back(copy.shard.held);
  return held;
}

std::optional<StoredShard> SnapshotStore::Find(const std::string& job, const std::string& key,
                                               uint64_t step, const std::string& file) const {
  const auto matches = [&](const StoredShard& shard) {
    return shard.held.step == step && shard.held.info.file == file;
  };
  std::lock_guard<std::mutex> lock(mutex_);
  if (job != job_ || key != key_) return std::nullopt;
  for (const StoredShard& shard : own_) {
    if (matches(shard)) return shard;
  }
  for (const Copy& copy : copies_) {
    if (matches(copy.shard)) return copy.shard;
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
  int64_t bytes = arriving_.has_value() ? arriving_->buffer.size : 0;
  for (const StoredShard& shard : own_) bytes += static_cast<int64_t>(shard.file.size());
  for (const Copy& copy : copies_) bytes += copy.buffer.size;
  return bytes;
}

}  // namespace stagecoach
