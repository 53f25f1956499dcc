// DataCatalog: the data sets of the cluster: whose they are, their names, their use.
// The id of a set is of its owner and its manifest: a digest that somebody learned opens nothing.
// Ownership: borrows shelf, file system and clock.
// Threads:   thread-safe; calls wait for files, one at a time. A hold is released on any thread, and
//            waits for nothing.
// Errors:    NOT_FOUND: no such set, or another owner's. ALREADY_EXISTS: the name is taken.
//            FAILED_PRECONDITION: a part is not here, or a set is in use. RESOURCE_EXHAUSTED: the disk
//            is full. INVALID_ARGUMENT naming the field. Errors of the shelf have its paths.
// See:       data_shelf.h; docs/formats.md, "Data sets".
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_CATALOG_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_CATALOG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "checkpoint/files/file_system.h"
#include "coordinator/job/job_caller.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/coordinator/data/data_shelf.h"
#include "services/coordinator/store/object_files.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

class DataCatalog {
 public:
  static constexpr double kUsedSeconds = 3600;       // used so lately, no sweep takes a set
  static constexpr double kPartSeconds = 24 * 3600;  // a part without a set stays so long
  static constexpr int kMostParts = 4096;            // of a PrepareUpload

  struct Options {
    DataShelf* shelf = nullptr;  // null: files in this folder
    std::string folder;          // absolute
    FileSystem* files = PosixFileSystem();
    const Clock* clock = SystemClock::Get();
    double keep_days = 30;  // of a set without a name that nobody uses; 0: for ever
    int64_t reserve_bytes = ObjectFiles::kDataReserveBytes;
  };
  static absl::StatusOr<std::unique_ptr<DataCatalog>> Open(const Options& options);

  // Empty with a shelf.
  const std::string& folder() const { return options_.folder; }

  // Indices of the parts that are not here, of which there are at most kMostParts. The owner's folder
  // is there afterwards. again: none is here, so that a damaged one is uploaded anew.
  absl::StatusOr<std::vector<int>> Prepare(const std::string& owner,
                                           const std::vector<v1::DataPart>& parts,
                                           bool again = false);
  // Of a set that is here: it and the owner's other sets take the parts that were uploaded anew.
  absl::StatusOr<v1::DataSet> Put(const std::string& owner, const v1::PutDataSetRequest& request);

  // Named ones by name, then the others, the last used one first.
  std::vector<v1::DataSet> List(const JobCaller& caller) const;
  // By name or id. An operator has a name of its own first, then the only other owner's.
  absl::StatusOr<v1::DataSet> Find(const JobCaller& caller, const std::string& name_or_id);
  absl::StatusOr<CheckedManifest> Manifest(const std::string& id);

  // As Find; the set was used now, and is not removed while the hold is there.
  struct Held {
    v1::DataSet set;
    std::shared_ptr<const void> hold;
  };
  absl::StatusOr<Held> Hold(const JobCaller& caller, const std::string& name_or_id);
  // Makes a set whose parts are objects outside the store, or takes the one that is here.
  absl::StatusOr<Held> PutLinked(const std::string& owner, const v1::DataManifest& manifest);
  // Whether the parts of the set that is here are such. Waits for no file.
  bool IsLinked(const std::string& id) const;

  // Removal has two steps, with a look at all jobs in between: from the first one on nobody finds the
  // set. FAILED_PRECONDITION: it is held.
  absl::StatusOr<v1::DataSet> TakeOut(const JobCaller& caller, const std::string& name_or_id);
  void PutBack(const std::string& id);
  absl::Status Delete(const std::string& id);

  // Removes the sets without a name that were not used for keep_days and that `is_read` does not
  // know, and the parts of no set. Failures are logged. is_read is called under the lock.
  void Sweep(const std::function<bool(const std::string& id)>& is_read);

 private:
  struct Entry {
    v1::DataSet set;             // without name and jobs
    double written_seconds = 0;  // set.used_seconds in its file
    bool taken_out = false;
    std::shared_ptr<const int> token = std::make_shared<const int>(0);  // holds are its copies
    bool held() const { return token.use_count() > 1; }
  };

  explicit DataCatalog(const Options& options);
  absl::Status Read();
  absl::StatusOr<Entry*> Get(const JobCaller& caller, const std::string& name_or_id);
  absl::StatusOr<std::string> IdOfName(const JobCaller& caller, const std::string& name) const;
  v1::DataSet Shown(const Entry& entry) const;
  std::string NameOf(const v1::DataSet& set) const;  // empty: it has none
  absl::Status CheckName(const std::string& owner, const std::string& id,
                         const v1::PutDataSetRequest& request) const;
  absl::Status CheckParts(const std::string& key, const CheckedManifest& manifest);
  absl::Status CheckRoom(int64_t bytes);
  enum class Parts { kUploaded, kLinked };
  absl::Status Make(const std::string& owner, const std::string& id,
                    const std::string& manifest_sha256, Parts parts);
  absl::Status TakePartsAnew(const std::string& owner, const std::string& id,
                             const std::string& manifest_sha256);
  void NoteLinked(const v1::DataSet& set);
  absl::Status GiveName(const std::string& owner, const std::string& id, const std::string& name);
  void NoteUsed(Entry* entry);
  // The parts that the set had.
  absl::StatusOr<std::vector<std::string>> DeleteLocked(const std::string& id);

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows
  const std::unique_ptr<DataShelf> own_shelf_;
  DataShelf& shelf_;
  std::map<std::string, Entry> sets_;
  std::map<std::string, DataShelf::Names> names_;  // by OwnerKey
  mutable std::mutex linked_mutex_;                // guards linked_; held for a moment
  std::set<std::string> linked_;                   // ids
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_CATALOG_H_
