// DataFolder: data sets as files, below one folder of the coordinator.
//   parts/OWNER/SHA256     parts that clients uploaded (services/coordinator/store/object_files.h)
//   sets/ID/               a set: hard links to its parts, `manifest`, and `info`, a v1.DataSet as JSON
//   names/OWNER            the owner's named sets, lines "NAME ID"
// A set appears by the rename of a prepared folder and goes by a rename, a name by that of a file.
// A crash leaves only names that begin with '.', and Open removes those.
// Ownership: borrows the file system.
// Threads:   thread-compatible; calls wait for files.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/coordinator/data/data_shelf.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

class DataFolder final : public DataShelf {
 public:
  DataFolder(std::string folder, FileSystem* files) : folder_(std::move(folder)), files_(*files) {}

  absl::Status Open() override;
  absl::StatusOr<std::vector<v1::DataSet>> ReadSets() override;
  absl::StatusOr<std::map<std::string, Names>> ReadNames() override;
  absl::Status MakeOwner(const std::string& key) override;
  absl::StatusOr<std::vector<std::optional<int64_t>>> PartSizes(
      const std::string& key, std::span<const v1::DataPart> parts) override;
  void TouchPart(const std::string& key, const std::string& sha256) override;
  int64_t UploadedBytes(const std::string& key, const std::string& sha256) override;
  absl::Status WritePart(const std::string& key, const std::string& sha256,
                         const std::string& bytes) override;
  absl::StatusOr<CheckedManifest> UploadedManifest(const std::string& key,
                                                   const std::string& sha256) override;
  absl::StatusOr<CheckedManifest> ManifestOf(const std::string& id) override;
  absl::Status Make(const v1::DataSet& set, const std::string& manifest_sha256,
                    const CheckedManifest& manifest) override;
  absl::Status WriteInfo(const v1::DataSet& set) override;
  absl::Status DropPart(const std::string& key, const std::string& sha256) override;
  absl::Status TakePartsAnew(const std::string& key, const std::string& id,
                             const std::string& manifest_sha256,
                             const std::vector<std::string>& others) override;
  absl::Status WriteNames(const std::string& key, const Names& names) override;
  absl::StatusOr<std::vector<std::string>> Remove(const v1::DataSet& set) override;
  void FreeParts(const std::string& key, const std::vector<std::string>& digests) override;
  int64_t SweepParts(double unchanged_since_seconds) override;
  absl::StatusOr<int64_t> FreeBytes() override { return files_.FreeBytes(folder_); }

 private:
  std::string At(const std::string& area, const std::string& name) const;
  std::string PartPath(const std::string& key, const std::string& sha256) const;
  absl::StatusOr<std::string> ReadText(const std::string& path, size_t most);
  absl::StatusOr<v1::DataSet> ReadInfo(const std::string& id);
  absl::StatusOr<v1::DataSet> InfoAnew(const std::string& id);
  absl::StatusOr<Names> ReadNamesOf(const std::string& key);
  absl::StatusOr<CheckedManifest> ReadManifest(const std::string& path);
  absl::Status Fill(const std::string& folder, const v1::DataSet& set,
                    const std::string& manifest_sha256, const CheckedManifest& manifest);
  // Parts of a set that were uploaded anew, the manifest's among them; each with its name in the set.
  std::map<std::string, std::string> AnewIn(const std::string& key, const std::string& id,
                                            const std::string& manifest_sha256);
  // Gives a set those of these parts that it has; durable.
  absl::Status Exchange(const std::string& key, const std::string& id,
                        const std::map<std::string, std::string>& parts);
  absl::Status PutAside(const std::string& id);
  absl::Status WriteFile(const std::string& path, const std::string& text);
  absl::Status Replace(const std::string& folder, const std::string& name, const std::string& text);

  const std::string folder_;
  FileSystem& files_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_
