// DataBucket: data sets as objects of a bucket, P being the store's prefix:
//   P/data/parts/OWNER/SHA256   parts, put by owners' clients (services/coordinator/store/s3_objects.h)
//   P/data/sets/ID/manifest     a set's manifest, which never changes
//   P/data/sets/ID/info         a v1.DataSet as JSON; the set is there when this is
//   P/data/names/OWNER          the owner's named sets
// There are no links: a set's part is its owner's part, if the set's manifest names it. In memory are
// the digests of all sets' parts that were asked for, 32 bytes each.
// Ownership: borrows client and clock.
// Threads:   as DataShelf; what SetParts has is thread-safe, also beside the others.
// Errors:    as DataShelf.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKET_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKET_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/clock.h"
#include "services/common/s3/s3_client.h"
#include "services/coordinator/data/data_shelf.h"
#include "services/coordinator/store/set_parts.h"

namespace stagecoach {

class DataBucket final : public DataShelf, public SetParts {
 public:
  // An upload of a part that was begun so long ago is over.
  static constexpr double kUploadSeconds = 7 * 24 * 3600;

  explicit DataBucket(S3Client* client, const Clock* clock = SystemClock::Get())
      : client_(*client), clock_(*clock) {}

  absl::Status Open() override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<v1::DataSet>> ReadSets() override;
  absl::StatusOr<std::map<std::string, Names>> ReadNames() override;
  absl::Status MakeOwner(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::optional<int64_t>>> PartSizes(
      const std::string& key, std::span<const v1::DataPart> parts) override;
  void TouchPart(const std::string& key, const std::string& sha256) override;
  int64_t UploadedBytes(const std::string&, const std::string&) override { return 0; }
  absl::Status WritePart(const std::string& key, const std::string& sha256,
                         const std::string& bytes) override;
  // Sets have no parts of their own here, but a copy of their manifest. An upload takes the place of
  // an object at once.
  absl::Status DropPart(const std::string&, const std::string&) override {
    return absl::OkStatus();
  }
  absl::Status TakePartsAnew(const std::string& key, const std::string& id,
                             const std::string& manifest_sha256,
                             const std::vector<std::string>& others) override;
  absl::StatusOr<CheckedManifest> UploadedManifest(const std::string& key,
                                                   const std::string& sha256) override;
  absl::StatusOr<CheckedManifest> ManifestOf(const std::string& id) override;
  absl::Status Make(const v1::DataSet& set, const std::string& manifest_sha256,
                    const CheckedManifest& manifest) override;
  absl::Status WriteInfo(const v1::DataSet& set) override;
  absl::Status WriteNames(const std::string& key, const Names& names) override;
  absl::StatusOr<std::vector<std::string>> Remove(const v1::DataSet& set) override;
  void FreeParts(const std::string& key, const std::vector<std::string>& digests) override;
  void LookForSweep(double unchanged_since_seconds) override;
  int64_t SweepParts(double unchanged_since_seconds) override;
  // A bucket has no size.
  absl::StatusOr<int64_t> FreeBytes() override;

  absl::StatusOr<std::string> KeyInSet(const std::string& id, const std::string& name) override;
  std::string KeyOfPart(const std::string& owner, const std::string& sha256) const override;
  void NoteComplete(const std::string& owner, const std::string& sha256) override {
    TouchPart(owner, sha256);
  }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Digests {
    std::vector<Digest> parts;  // sorted; those in the bucket
    Digest manifest{};
    bool Has(const Digest& part) const;
  };
  struct Known {
    std::string owner;                       // its key; empty: not known, so anybody's
    std::shared_ptr<const Digests> digests;  // null: not read yet
  };

  static Digest DigestOf(const std::string& sha256);
  static std::string HexOf(const Digest& digest);
  static std::shared_ptr<const Digests> DigestsOf(const CheckedManifest& manifest,
                                                  const std::string& sha256);
  std::string Key(const std::string& area, const std::string& name) const;  // "P/data/AREA/NAME"
  absl::StatusOr<std::string> ReadText(const std::string& key, size_t most);
  absl::Status CopyManifest(const std::string& key, const std::string& id,
                            const std::string& manifest_sha256);
  absl::StatusOr<std::string> ManifestText(const std::string& id);
  absl::StatusOr<std::shared_ptr<const Digests>> DigestsOfSet(const std::string& id);
  std::vector<std::pair<std::string, Known>> KnownSets() const;
  void Note(const std::string& id, const std::string& owner);
  // The digests that sets of this owner name; of all sets with an empty key.
  absl::StatusOr<std::set<Digest>> Used(const std::string& owner);
  std::optional<std::set<Digest>> UsedOrNothing(const std::string& owner);
  bool IsKnown(const std::string& id) const;  // and whose it is
  absl::StatusOr<int64_t> Sweep(double since);
  absl::Status ListOldParts(double since);
  std::vector<S3Entry> TakeOldParts(double since);
  absl::Status SweepSets(double since);
  absl::Status SweepUploads(double since);

  S3Client& client_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Known> sets_;
  std::map<std::string, double> touched_;  // parts' keys, since when
  std::vector<S3Entry> old_parts_;         // that the last look found
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_BUCKET_H_
