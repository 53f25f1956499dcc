#include "services/coordinator/data/data_folder.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "services/coordinator/data/part_sweep.h"
#include "services/coordinator/data/set_texts.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
std::string DataFolder::At(const std::string& area, const std::string& name) const {
  return absl::StrCat(folder_, "/", area, name.empty() ? "" : "/", name);
}

std::string DataFolder::PartPath(const std::string& key, const std::string& sha256) const {
  return absl::StrCat(folder_, "/parts/", key, "/", sha256);
}

absl::Status DataFolder::Open() {
  for (const char* const area : {"parts", "sets", "names"}) {
    RETURN_IF_ERROR(files_.MakeFolders(At(area, "")));
  }
  RETURN_IF_ERROR(files_.SyncFolder(folder_));
  for (const char* const area : {"sets", "names"}) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(At(area, "")));
    for (const std::string& name : names) {
      if (name.starts_with('.')) RETURN_IF_ERROR(files_.RemoveAll(At(area, name)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DataFolder::ReadText(const std::string& path, size_t most) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_.Open(path));
  if (file->size() > static_cast<int64_t>(most)) {
    return absl::DataLossError(absl::StrCat(path, ": has ", file->size(), " bytes"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

absl::StatusOr<v1::DataSet> DataFolder::ReadInfo(const std::string& id) {
  const std::string path = absl::StrCat(At("sets", id), "/", kSetInfo);
  ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMostInfoBytes));
  return ParseInfo(text, id, path);
}

// The id proves manifest and owner: it is of both.
absl::StatusOr<v1::DataSet> DataFolder::InfoAnew(const std::string& id) {
  const std::string path = absl::StrCat(At("sets", id), "/", kDataManifestObject);
  ASSIGN_OR_RETURN(const std::string bytes, ReadText(path, kMostManifestBytes));
  ASSIGN_OR_RETURN(const CheckedManifest manifest, CheckedManifest::Parse(bytes));
  const std::string sha256 = Sha256Hex(bytes);
  ASSIGN_OR_RETURN(const std::vector<std::string> keys, files_.List(At("parts", "")));
  for (const std::string& key : keys) {
    const std::optional<std::string> owner = OwnerOfKey(key);
    if (!owner.has_value() || SetId(key, sha256) != id) continue;
    return InfoOf(id, *owner, manifest);
  }
  return absl::DataLossError(absl::StrCat(path, ": is of none of the owners that are known"));
}

absl::StatusOr<std::vector<v1::DataSet>> DataFolder::ReadSets() {
  std::vector<v1::DataSet> sets;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(At("sets", "")));
  for (const std::string& name : names) {
    if (!IsDigest(name)) continue;
    absl::StatusOr<v1::DataSet> set = ReadInfo(name);
    if (absl::IsDataLoss(set.status()) || absl::IsNotFound(set.status())) {
      const absl::StatusOr<v1::DataSet> anew = InfoAnew(name);
      if (anew.ok()) {
        spdlog::warn("data set {} has its info anew: {}", name,
                     std::string(set.status().message()));
        set = anew;
      }
    }
    if (set.ok()) {
      sets.push_back(*std::move(set));
    } else {
      spdlog::error("data set {} is not known: {}", name, std::string(set.status().message()));
    }
  }
  return sets;
}

absl::StatusOr<DataFolder::Names> DataFolder::ReadNamesOf(const std::string& key) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(At("names", key), kMostNamesBytes));
  return ParseNames(text, At("names", key));
}

absl::StatusOr<std::map<std::string, DataFolder::Names>> DataFolder::ReadNames() {
  std::map<std::string, Names> all;
  ASSIGN_OR_RETURN(const std::vector<std::string> keys, files_.List(At("names", "")));
  for (const std::string& key : keys) {
    absl::StatusOr<Names> names = ReadNamesOf(key);
    if (absl::IsDataLoss(names.status())) {
      spdlog::error("the names of {}'s data sets are lost: {}", key,
                    std::string(names.status().message()));
      continue;
    }
    RETURN_IF_ERROR(names.status());
    all[key] = *std::move(names);
  }
  return all;
}

absl::Status DataFolder::MakeOwner(const std::string& key) {
  const std::string folder = At("parts", key);
  if (files_.Exists(folder)) return absl::OkStatus();
  RETURN_IF_ERROR(files_.MakeFolders(folder));
  return files_.SyncFolder(At("parts", ""));
}

absl::StatusOr<std::vector<std::optional<int64_t>>> DataFolder::PartSizes(
    const std::string& key, std::span<const v1::DataPart> parts) {
  std::vector<std::optional<int64_t>> sizes(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].source().empty()) continue;
    const absl::StatusOr<std::unique_ptr<ReadableFile>> file =
        files_.Open(PartPath(key, parts[i].sha256()));
    if (absl::IsNotFound(file.status())) continue;
    RETURN_IF_ERROR(file.status());
    sizes[i] = (*file)->size();
  }
  return sizes;
}

void DataFolder::TouchPart(const std::string& key, const std::string& sha256) {
  TouchPartFile(PartPath(key, sha256));
}

int64_t DataFolder::UploadedBytes(const std::string& key, const std::string& sha256) {
  return UploadedPartBytes(PartPath(key, sha256));
}

absl::Status DataFolder::WritePart(const std::string& key, const std::string& sha256,
                                   const std::string& bytes) {
  RETURN_IF_ERROR(MakeOwner(key));
  return Replace(At("parts", key), sha256, bytes);
}

absl::StatusOr<CheckedManifest> DataFolder::ReadManifest(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadText(path, kMostManifestBytes));
  return CheckedManifest::Parse(bytes);
}

absl::StatusOr<CheckedManifest> DataFolder::UploadedManifest(const std::string& key,
                                                             const std::string& sha256) {
  return ReadManifest(PartPath(key, sha256));
}

absl::StatusOr<CheckedManifest> DataFolder::ManifestOf(const std::string& id) {
  return ReadManifest(absl::StrCat(At("sets", id), "/", kDataManifestObject));
}

absl::Status DataFolder::WriteFile(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_.Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::Status DataFolder::Replace(const std::string& folder, const std::string& name,
                                 const std::string& text) {
  const std::string prepared = absl::StrCat(folder, "/.new-", name);
  RETURN_IF_ERROR(files_.RemoveAll(prepared));  // of a try that failed
  RETURN_IF_ERROR(WriteFile(prepared, text));
  RETURN_IF_ERROR(files_.Rename(prepared, absl::StrCat(folder, "/", name)));
  return files_.SyncFolder(folder);
}

absl::Status DataFolder::Fill(const std::string& folder, const v1::DataSet& set,
                              const std::string& manifest_sha256, const CheckedManifest& manifest) {
  const std::string key = OwnerKey(set.owner());
  RETURN_IF_ERROR(files_.MakeFolders(folder));
  RETURN_IF_ERROR(
      files_.Link(PartPath(key, manifest_sha256), absl::StrCat(folder, "/", kDataManifestObject)));
  for (const v1::DataPart& part : manifest.manifest().parts()) {
    if (!part.source().empty()) continue;
    RETURN_IF_ERROR(
        files_.Link(PartPath(key, part.sha256()), absl::StrCat(folder, "/", part.sha256())));
  }
  RETURN_IF_ERROR(WriteFile(absl::StrCat(folder, "/", kSetInfo), InfoText(set)));
  return files_.SyncFolder(folder);
}

absl::Status DataFolder::Make(const v1::DataSet& set, const std::string& manifest_sha256,
                              const CheckedManifest& manifest) {
  // Of one whose info could not be read; the new one has the same content.
  if (files_.Exists(At("sets", set.id()))) RETURN_IF_ERROR(PutAside(set.id()));
  const std::string prepared = At("sets", absl::StrCat(".new-", files_.Nonce()));
  absl::Status status = Fill(prepared, set, manifest_sha256, manifest);
  if (status.ok()) status = files_.Rename(prepared, At("sets", set.id()));
  if (!status.ok()) {
    files_.RemoveAll(prepared).IgnoreError();  // else the next start does it
    return status;
  }
  return files_.SyncFolder(At("sets", ""));
}

absl::Status DataFolder::WriteInfo(const v1::DataSet& set) {
  return Replace(At("sets", set.id()), kSetInfo, InfoText(set));
}

absl::Status DataFolder::DropPart(const std::string& key, const std::string& sha256) {
  return files_.RemoveAll(PartPath(key, sha256));
}

std::map<std::string, std::string> DataFolder::AnewIn(const std::string& key, const std::string& id,
                                                      const std::string& manifest_sha256) {
  std::map<std::string, std::string> anew;
  const auto look = [&](const std::string& sha256, const std::string& name) {
    const std::string in_set = JoinPath(At("sets", id), name);
    if (AreTwoFiles(PartPath(key, sha256), in_set)) anew[sha256] = name;
  };
  look(manifest_sha256, kDataManifestObject);
  const absl::StatusOr<std::vector<std::string>> names = files_.List(At("sets", id));
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (IsDigest(name)) look(name, name);
  }
  return anew;
}

absl::Status DataFolder::Exchange(const std::string& key, const std::string& id,
                                  const std::map<std::string, std::string>& parts) {
  const std::string folder = At("sets", id);
  for (const auto& [sha256, name] : parts) {
    const std::string in_set = JoinPath(folder, name), prepared = JoinPath(folder, ".new-" + name);
    if (!AreTwoFiles(PartPath(key, sha256), in_set)) continue;
    RETURN_IF_ERROR(files_.RemoveAll(prepared));  // of a try that failed
    RETURN_IF_ERROR(files_.Link(PartPath(key, sha256), prepared));
    RETURN_IF_ERROR(files_.Rename(prepared, in_set));
  }
  return files_.SyncFolder(folder);
}

// This set comes last: a call that fails is repeated whole.
absl::Status DataFolder::TakePartsAnew(const std::string& key, const std::string& id,
                                       const std::string& manifest_sha256,
                                       const std::vector<std::string>& others) {
  const std::map<std::string, std::string> anew = AnewIn(key, id, manifest_sha256);
  if (anew.empty()) return absl::OkStatus();
  spdlog::info("data set {} takes {} parts that were uploaded anew", id, anew.size());
  std::map<std::string, std::string> shared = anew;
  shared.erase(manifest_sha256);
  for (const std::string& other : others) RETURN_IF_ERROR(Exchange(key, other, shared));
  return Exchange(key, id, anew);
}

absl::Status DataFolder::WriteNames(const std::string& key, const Names& names) {
  return Replace(At("names", ""), key, NamesText(names));
}

absl::Status DataFolder::PutAside(const std::string& id) {
  const std::string gone = At("sets", absl::StrCat(".gone-", files_.Nonce()));
  RETURN_IF_ERROR(files_.Rename(At("sets", id), gone));
  // First the new name is durable: half a set must not come back with the old one.
  const absl::Status synced = files_.SyncFolder(At("sets", ""));
  if (!synced.ok()) {
    files_.Rename(gone, At("sets", id)).IgnoreError();
    return synced;
  }
  const absl::Status removed = files_.RemoveAll(gone);
  if (!removed.ok()) {
    spdlog::warn("data set {} is gone, its files go at the next start: {}", id,
                 std::string(removed.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DataFolder::Remove(const v1::DataSet& set) {
  std::vector<std::string> digests;
  if (const auto names = files_.List(At("sets", set.id())); names.ok()) {
    for (const std::string& name : *names) {
      if (IsDigest(name)) digests.push_back(name);
    }
  }
  RETURN_IF_ERROR(PutAside(set.id()));
  return digests;
}

void DataFolder::FreeParts(const std::string& key, const std::vector<std::string>& digests) {
  FreePartFiles(At("parts", key), digests);
}

int64_t DataFolder::SweepParts(double unchanged_since_seconds) {
  return SweepPartFiles(At("parts", ""), unchanged_since_seconds);
}

}  // namespace stagecoach
