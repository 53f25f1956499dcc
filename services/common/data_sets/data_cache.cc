#include "services/common/data_sets/data_cache.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/clock.h"
#include "base/threads/work_words.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

constexpr char kPartsFolder[] = "/data";
constexpr size_t kManifestPieceBytes = size_t{4} << 20;

std::string NameIn(const std::string& path) { return ShownName(path.substr(path.rfind('/') + 1)); }

absl::Status NoSuchPath(const DataSetPath& path) {
  return absl::NotFoundError(
      absl::StrCat("the data set has nothing of this name; `stagecoach data show ", path.set,
                   "` lists its files"));
}

// Of an empty file nothing is ever needed.
class NoRanges final : public FileRanges {
 public:
  absl::Status Need(int64_t, int64_t) override { return absl::OkStatus(); }
};

absl::StatusOr<DataSets::File> EmptyFile() {
  DataSets::File file{.descriptor = FileHandle(open("/dev/null", O_RDONLY | O_CLOEXEC)),
                      .ranges = std::make_shared<NoRanges>(),
                      .sha256 = Sha256Hex("")};
  if (!file.descriptor.open()) return absl::ErrnoToStatus(errno, "open /dev/null");
  return file;
}

}  // namespace

// A file within its part.
class DataCache::Ranges final : public FileRanges {
 public:
  Ranges(DataCache* cache, std::shared_ptr<CachedPart> part, const DataSetPath& path, int64_t begin,
         int64_t bytes)
      : cache_(*cache),
        part_(std::move(part)),
        set_(path.set),
        fetches_(absl::StrCat("fetches ", NameIn(path.path))),
        begin_(begin),
        bytes_(bytes) {}

  absl::Status Need(int64_t offset, int64_t bytes) override {
    return part_->Need(begin_ + offset, bytes, [this](int64_t at, std::span<std::byte> into) {
      TellWork(ShareText(fetches_, std::clamp<int64_t>(at - begin_, 0, bytes_), bytes_));
      return cache_.Fetch(set_, part_->file().key(), at, into);
    });
  }

 private:
  DataCache& cache_;
  const std::shared_ptr<CachedPart> part_;
  const std::string set_, fetches_;
  const int64_t begin_, bytes_;
};

DataCache::DataCache(Options options)
    : options_(std::move(options)),
      sets_since_(SystemClock::Get()->UnixSeconds()),
      ahead_({.fetch = [this](const PartAhead::Wish& wish) { FetchAhead(wish); },
              .tidy = [this] { Tidy(); }}) {}

void DataCache::Admit(const std::string& set, Grant grant) {
  if (!IsDigest(set) || grant.grant.empty()) return;
  if (IsStoreName(grant.folder)) grant.folder = ObjectOf(grant.folder);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!grants_.insert_or_assign(set, std::move(grant)).second) std::erase(order_, set);
  order_.push_back(set);
  if (order_.size() > kMostGrants) {
    grants_.erase(order_.front());
    order_.pop_front();
  }
}

absl::StatusOr<StoredObject> DataCache::GrantedObject(const std::string& set,
                                                      const std::string& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = grants_.find(set);
  if (found == grants_.end()) {
    return absl::PermissionDeniedError(
        "the coordinator gave this stage no grant for the data set; name one of your own");
  }
  return StoredObject{absl::StrCat(found->second.folder, "/", name), found->second.grant};
}

bool DataCache::IsUnproven(const std::string& set) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = grants_.find(set);
  return found != grants_.end() && found->second.unproven;
}

absl::StatusOr<std::shared_ptr<const CheckedManifest>> DataCache::ManifestOf(
    const std::string& set) {
  ASSIGN_OR_RETURN(const StoredObject object, GrantedObject(set, kDataManifestObject));
  std::shared_ptr<ManifestSlot> slot;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<ManifestSlot>& kept = manifests_[set];
    if (kept == nullptr) kept = std::make_shared<ManifestSlot>();
    slot = kept;
  }
  std::lock_guard<std::mutex> lock(slot->mutex);
  if (slot->manifest != nullptr) return slot->manifest;
  ASSIGN_OR_RETURN(const int64_t size, options_.size(object));
  if (size < 0 || size > static_cast<int64_t>(kMostManifestBytes)) {
    return absl::DataLossError(absl::StrCat("the data set's manifest has ", size,
                                            " bytes; upload it again with `stagecoach submit "
                                            "--data-again`, or `stagecoach data put --again`"));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
  for (size_t at = 0; at < all.size(); at += kManifestPieceBytes) {
    TellWork(ShareText("fetches the list of files", static_cast<int64_t>(at), size));
    const auto piece = all.subspan(at, std::min(all.size() - at, kManifestPieceBytes));
    RETURN_IF_ERROR(options_.read(object, static_cast<int64_t>(at), piece));
  }
  ASSIGN_OR_RETURN(CheckedManifest checked, CheckedManifest::Parse(bytes));
  slot->manifest = std::make_shared<const CheckedManifest>(std::move(checked));
  return slot->manifest;
}

absl::StatusOr<PartTable*> DataCache::Table() {
  std::lock_guard<std::mutex> lock(table_mutex_);
  if (table_ != nullptr) return table_.get();
  ASSIGN_OR_RETURN(const std::string folder, options_.folder());
  const std::string parts = folder + kPartsFolder;
  if (const absl::Status made = PosixFileSystem()->MakeFolders(parts); !made.ok()) {
    return absl::Status(made.code(), absl::StrCat("--cache-dir: ", made.message(), kCacheRemedy));
  }
  table_ = std::make_unique<PartTable>(parts, options_.bytes, &arrivals_);
  spdlog::info("the data cache {} has {} bytes and may have {}", parts, table_->room().used(),
               table_->room().limit());
  return table_.get();
}

absl::Status DataCache::Fetch(const std::string& set, const PartKey& key, int64_t offset,
                              std::span<std::byte> into) {
  ASSIGN_OR_RETURN(const StoredObject object, GrantedObject(set, key.sha256));
  const absl::Status read = options_.read(object, offset, into);
  if (absl::IsPermissionDenied(read)) {
    return Annotate(read, "the coordinator's grant for the data set has ended");
  }
  RETURN_IF_ERROR(read);
  fetched_bytes_ += std::ssize(into);
  arrivals_.Tick();
  return absl::OkStatus();
}

absl::StatusOr<DataSets::File> DataCache::Open(const DataSetPath& path, Reading reading) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const CheckedManifest> manifest, ManifestOf(path.set));
  const v1::DataSetFile* const file = manifest->Find(path.path);
  if (file == nullptr) {
    if (manifest->List(path.path).empty()) return NoSuchPath(path);
    return absl::InvalidArgumentError("is a folder; give the path of a file");
  }
  if (file->bytes() == 0) return EmptyFile();
  const v1::DataPart& stored = manifest->manifest().parts(static_cast<int>(file->part()));
  PartKey key{
      .sha256 = stored.sha256(), .bytes = stored.bytes(), .linked = !stored.source().empty()};
  if (!key.linked && IsUnproven(path.set)) key.set = path.set;
  ASSIGN_OR_RETURN(PartTable* const table, Table());
  ASSIGN_OR_RETURN(std::shared_ptr<CachedPart> part, table->Open(key));
  File opened{.begin = file->offset(), .bytes = file->bytes()};
  ASSIGN_OR_RETURN(opened.descriptor, part->file().Descriptor());
  if (file->bytes() == key.bytes && !key.linked) {
    opened.sha256 = key.sha256;
    opened.sha256_of = key.set;
  }
  opened.ranges =
      std::make_shared<Ranges>(this, std::move(part), path, file->offset(), file->bytes());
  if (reading == Reading::kAll) ahead_.Ask({path.set, key});
  return opened;
}

absl::StatusOr<std::vector<DataSets::Entry>> DataCache::List(const DataSetPath& folder) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const CheckedManifest> manifest, ManifestOf(folder.set));
  std::vector<Entry> entries;
  for (CheckedManifest::Entry& entry : manifest->List(folder.path)) {
    entries.push_back({std::move(entry.name), entry.folder, entry.bytes});
    TickProgress();
  }
  if (!entries.empty()) return entries;
  if (manifest->Find(folder.path) == nullptr) return NoSuchPath(folder);
  return absl::InvalidArgumentError("is a file; give the path of a folder");
}

absl::Status DataCache::Look(const DataSetPath& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const CheckedManifest> manifest, ManifestOf(path.set));
  if (manifest->Find(path.path) != nullptr || !manifest->List(path.path).empty()) {
    return absl::OkStatus();
  }
  return NoSuchPath(path);
}

int64_t DataCache::cached_bytes() const {
  std::lock_guard<std::mutex> lock(table_mutex_);
  return table_ == nullptr ? 0 : table_->room().used();
}

absl::Status DataCache::FetchAll(const PartAhead::Wish& wish, CachedPart& part, CacheRoom& room) {
  const auto fetch = [&](int64_t at, std::span<std::byte> into) {
    return Fetch(wish.set, wish.key, at, into);
  };
  const auto wanted = [&] { return ahead_.Wanted(wish); };
  while (wanted()) {
    const int64_t bytes = part.NextMissing();
    if (bytes == 0) return part.CheckWhole(fetch, wanted);
    if (!room.Fits(bytes, sets_since_)) {
      spdlog::info(
          "the data cache, of {} bytes, has no room to read ahead: data is fetched as it "
          "is read{}; --cache-bytes gives it more",
          room.limit(),
          wish.key.set.empty() ? "" : ", and its SHA-256, which nobody compared, is not compared");
      ahead_.GiveUp();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(part.FetchMissing(fetch));
  }
  return absl::OkStatus();
}

void DataCache::FetchAhead(const PartAhead::Wish& wish) {
  const ProgressScope scope(&arrivals_);
  const absl::StatusOr<PartTable*> table = Table();
  if (!table.ok()) return;  // its opener was told
  const absl::StatusOr<std::shared_ptr<CachedPart>> part = (*table)->Open(wish.key);
  if (!part.ok()) return;  // whoever reads it is told
  const absl::Status fetched = FetchAll(wish, **part, (*table)->room());
  if (absl::IsDataLoss(fetched)) (*table)->Forget(*part);
  if (fetched.ok() || absl::IsCancelled(fetched)) return;
  spdlog::warn("data set {}: part {} is not read ahead: {}", wish.set, wish.key.sha256,
               std::string(fetched.message()));
}

void DataCache::Tidy() {
  sets_since_ = SystemClock::Get()->UnixSeconds();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(manifests_, [this](const auto& slot) {
      return !ahead_.Wanted({slot.first, {}});
    });
  }
  std::lock_guard<std::mutex> lock(table_mutex_);
  if (table_ != nullptr) table_->CloseIdle();
}

}  // namespace stagecoach
