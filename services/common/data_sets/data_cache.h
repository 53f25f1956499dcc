// DataCache: the data sets of the cluster on a stage's disk (docs/formats.md, "Cached data sets").
// What a reader asks for is fetched from the coordinator's store once, kept below the cache folder,
// and shared by the jobs and stages of this machine.
// Ownership: owns its thread and the open parts. Files must not outlive it.
// Threads:   thread-safe; Open, List, Look and Need wait for the store. Admit and KeepOnly do not.
// Errors:    as stage/files/data_sets.h.
#ifndef STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_H_
#define STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/progress.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/common/data_sets/part_ahead.h"
#include "services/common/data_sets/part_table.h"
#include "services/common/store/store_client.h"
#include "stage/files/data_sets.h"

namespace stagecoach {

class DataCache final : public DataSets {
 public:
  static constexpr size_t kMostGrants = 256;  // the oldest goes

  struct Options {
    // The folder of the cache; asked at the first use, and again after an error.
    std::function<absl::StatusOr<std::string>()> folder;
    int64_t bytes = 0;  // as CacheRoom's limit
    // The store: size of an object, and its bytes (services/common/store/store_client.h).
    std::function<absl::StatusOr<int64_t>(const StoredObject&)> size;
    std::function<absl::Status(const StoredObject&, int64_t offset, std::span<std::byte>)> read;
  };
  explicit DataCache(Options options);
  ~DataCache() override { Shutdown(); }

  struct Grant {
    std::string folder, grant;  // the set's in the store, and what opens it
    bool unproven = false;      // as of v1.DataGrant
  };
  // From now on this grant opens the set.
  void Admit(const std::string& set, Grant grant);
  // The sets of the cell that is loaded now; of others nothing is read ahead or kept open.
  void KeepOnly(const std::set<std::string>& sets) { ahead_.KeepOnly(sets); }
  // Ends the thread. The store's calls must end soon: shut it down before.
  void Shutdown() { ahead_.Shutdown(); }

  absl::StatusOr<File> Open(const DataSetPath& path, Reading reading) override;
  absl::StatusOr<std::vector<Entry>> List(const DataSetPath& folder) override;
  absl::Status Look(const DataSetPath& path) override;

  int64_t fetched_bytes() const { return fetched_bytes_; }  // by this process
  int64_t cached_bytes() const;  // of all parts on the disk; 0 before the first use

 private:
  struct ManifestSlot {
    std::mutex mutex;  // guards manifest; held while it is fetched
    std::shared_ptr<const CheckedManifest> manifest;
  };
  class Ranges;

  bool IsUnproven(const std::string& set) const;
  absl::StatusOr<StoredObject> GrantedObject(const std::string& set, const std::string& name) const;
  absl::StatusOr<std::shared_ptr<const CheckedManifest>> ManifestOf(const std::string& set);
  absl::StatusOr<PartTable*> Table();
  absl::Status Fetch(const std::string& set, const PartKey& key, int64_t offset,
                     std::span<std::byte> into);
  void FetchAhead(const PartAhead::Wish& wish);
  absl::Status FetchAll(const PartAhead::Wish& wish, CachedPart& part, CacheRoom& room);
  void Tidy();

  const Options options_;
  ProgressCounter arrivals_;
  std::atomic<int64_t> fetched_bytes_{0};
  mutable std::mutex mutex_;             // guards what follows
  std::map<std::string, Grant> grants_;  // by set
  std::deque<std::string> order_;        // sets, the oldest grant first
  std::map<std::string, std::shared_ptr<ManifestSlot>> manifests_;
  mutable std::mutex table_mutex_;  // guards table_ while it is made
  std::unique_ptr<PartTable> table_;
  std::atomic<double> sets_since_;  // Unix seconds; the sets of the cell are in use since then
  PartAhead ahead_;                 // last: its thread uses all of the above
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_DATA_SETS_DATA_CACHE_H_
