// DataShelf: where the cluster's data sets lie: files of the coordinator (data_folder.h) or objects of
// a bucket (data_bucket.h). An owner has parts; a set is a manifest and the parts that it names. Parts
// with a source lie elsewhere, and no shelf has them.
// Threads:   thread-compatible; calls wait for files or the bucket's server.
// Units:     bytes; seconds since 1970.
// Errors:    those of FileSystem, or of S3Client, with paths. DATA_LOSS: a text is not what a shelf
//            wrote.
// See:       docs/formats.md, "Data sets".
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SHELF_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SHELF_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/data_sets/data_manifest.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

class DataShelf {
 public:
  using Names = std::map<std::string, std::string>;  // name to id

  virtual ~DataShelf() = default;
  // Makes what is missing, and removes what a crash left.
  virtual absl::Status Open() = 0;

  // A set whose info is damaged has it made anew where that is possible, but for its times, which are
  // 0. Otherwise the set is left where it is, and logged.
  virtual absl::StatusOr<std::vector<v1::DataSet>> ReadSets() = 0;
  // By OwnerKey, as `key` below. Names that are damaged are logged, and their sets are there without.
  virtual absl::StatusOr<std::map<std::string, Names>> ReadNames() = 0;

  // An owner may upload parts from now on.
  virtual absl::Status MakeOwner(const std::string& key) = 0;
  // Of the complete parts; nullopt: it is not here, or has a source.
  virtual absl::StatusOr<std::vector<std::optional<int64_t>>> PartSizes(
      const std::string& key, std::span<const v1::DataPart> parts) = 0;
  // A client was told that this part is here: for sweeps it has changed now.
  virtual void TouchPart(const std::string& key, const std::string& sha256) = 0;
  // Of a part that is not complete, as far as FreeBytes counts them.
  virtual int64_t UploadedBytes(const std::string& key, const std::string& sha256) = 0;
  // Puts a part there that the coordinator itself made; durable.
  virtual absl::Status WritePart(const std::string& key, const std::string& sha256,
                                 const std::string& bytes) = 0;
  // Of a part that will be uploaded anew: sets go on with the old one until then.
  virtual absl::Status DropPart(const std::string& key, const std::string& sha256) = 0;
  // The set takes the parts that were uploaded anew, and so do the owner's other sets.
  virtual absl::Status TakePartsAnew(const std::string& key, const std::string& id,
                                     const std::string& manifest_sha256,
                                     const std::vector<std::string>& others) = 0;
  // NOT_FOUND: it is not here.
  virtual absl::StatusOr<CheckedManifest> UploadedManifest(const std::string& key,
                                                           const std::string& sha256) = 0;
  virtual absl::StatusOr<CheckedManifest> ManifestOf(const std::string& id) = 0;

  // Puts a set there, of parts that are here; durable.
  virtual absl::Status Make(const v1::DataSet& set, const std::string& manifest_sha256,
                            const CheckedManifest& manifest) = 0;
  virtual absl::Status WriteInfo(const v1::DataSet& set) = 0;
  virtual absl::Status WriteNames(const std::string& key, const Names& names) = 0;
  // The set is gone once this is OK, also after a crash. Returns its parts, for FreeParts.
  virtual absl::StatusOr<std::vector<std::string>> Remove(const v1::DataSet& set) = 0;
  // Removes those of these parts that no set has. One that cannot be removed stays for a sweep.
  virtual void FreeParts(const std::string& key, const std::vector<std::string>& digests) = 0;
  // Reads what SweepParts(since) asks the store for, which may take long. Another thread may use the
  // shelf meanwhile.
  virtual void LookForSweep(double /*unchanged_since_seconds*/) {}
  // Removes the parts of all owners that no set has, or that are being uploaded, and that did not
  // change since then; returns their bytes. Failures are logged.
  virtual int64_t SweepParts(double unchanged_since_seconds) = 0;
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_SHELF_H_
