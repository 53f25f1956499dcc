// DataFolder: data sets as files, below one folder of the coordinator.
//   parts/OWNER/SHA256     parts that clients uploaded (services/coordinator/store/object_files.h)
//   sets/ID/               a set: hard links to its parts, `manifest`, and `info`, a v1.DataSet as JSON
//   names/OWNER            the owner's named sets, lines "NAME ID"
// A set appears by the rename of a prepared folder and goes by a rename, a name by that of a file.
// A crash leaves only names that begin with '.', and Open removes those.
// Ownership: borrows the file system.
// Threads:   thread-compatible; calls wait for files.
// Errors:    those of FileSystem, with paths. DATA_LOSS: a file is not what this class wrote.
// See:       docs/formats.md, "Data sets".
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "checkpoint/files/file_system.h"
#include "services/common/data_sets/data_manifest.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

// What the manifest tells of a set; without its times.
v1::DataSet InfoOf(const std::string& id, const std::string& owner,
                   const CheckedManifest& manifest);

class DataFolder {
 public:
  using Names = std::map<std::string, std::string>;  // name to id

  DataFolder(std::string folder, FileSystem* files) : folder_(std::move(folder)), files_(*files) {}
  // Makes what is missing, and removes what a crash left.
  absl::Status Open();

  // A set whose info is damaged has it made anew, but for its times, which are 0. If its manifest is
  // damaged too, the set is left where it is, and logged.
  absl::StatusOr<std::vector<v1::DataSet>> ReadSets();
  // The id of a set: nobody else's content has it.
  static std::string IdOf(const std::string& key, const std::string& manifest_sha256);

  // By OwnerKey. Names that are damaged are logged, and their sets are there without.
  absl::StatusOr<std::map<std::string, Names>> ReadNames();

  // The folder of an owner's parts, made if it is missing.
  absl::Status MakeOwner(const std::string& key);
  std::string PartPath(const std::string& key, const std::string& sha256) const;
  std::string PartsPath() const { return At("parts", ""); }
  // NOT_FOUND: it is not here.
  absl::StatusOr<int64_t> PartBytes(const std::string& key, const std::string& sha256);
  absl::StatusOr<CheckedManifest> UploadedManifest(const std::string& key,
                                                   const std::string& sha256);
  absl::StatusOr<CheckedManifest> ManifestOf(const std::string& id);

  // Puts a set there, of parts that are here; durable.
  absl::Status Make(const v1::DataSet& set, const std::string& manifest_sha256,
                    const CheckedManifest& manifest);
  absl::Status WriteInfo(const v1::DataSet& set);
  // Of a part that will be uploaded anew; sets keep the old one.
  absl::Status DropPart(const std::string& key, const std::string& sha256);
  // Parts of a set that were uploaded anew, the manifest's among them; each with its name in the set.
  std::map<std::string, std::string> AnewIn(const std::string& key, const std::string& id,
                                            const std::string& manifest_sha256);
  // Gives a set those of these parts that it has; durable.
  absl::Status Exchange(const std::string& key, const std::string& id,
                        const std::map<std::string, std::string>& parts);
  absl::Status WriteNames(const std::string& key, const Names& names);
  // The set is gone once this is OK, also after a crash. Its files and the parts that no other set
  // has go if they can be removed.
  absl::Status Remove(const v1::DataSet& set);
  absl::StatusOr<int64_t> FreeBytes() { return files_.FreeBytes(folder_); }

 private:
  std::string At(const std::string& area, const std::string& name) const;
  absl::StatusOr<std::string> ReadText(const std::string& path, size_t most);
  absl::StatusOr<v1::DataSet> ReadInfo(const std::string& id);
  absl::StatusOr<v1::DataSet> InfoAnew(const std::string& id);
  absl::StatusOr<Names> ReadNamesOf(const std::string& key);
  absl::StatusOr<CheckedManifest> ReadManifest(const std::string& path);
  absl::Status Fill(const std::string& folder, const v1::DataSet& set,
                    const std::string& manifest_sha256, const CheckedManifest& manifest);
  absl::Status PutAside(const std::string& id);
  absl::Status WriteFile(const std::string& path, const std::string& text);
  absl::Status Replace(const std::string& folder, const std::string& name, const std::string& text);

  const std::string folder_;
  FileSystem& files_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_DATA_FOLDER_H_
