#include "services/coordinator/data/data_folder.h"

#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/job_name.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "services/coordinator/data/part_sweep.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

constexpr char kInfo[] = "info";
constexpr size_t kMostInfoBytes = size_t{1} << 20, kMostNamesBytes = size_t{64} << 20;

std::string InfoText(const v1::DataSet& set) {
  v1::DataSet kept = set;
  kept.clear_name();
  kept.clear_jobs();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(kept, &text, options);
  CHECK(status.ok()) << "a data set of checked texts can be printed: " << status.ToString();
  return text;
}

}  // namespace

v1::DataSet InfoOf(const std::string& id, const std::string& owner,
                   const CheckedManifest& manifest) {
  v1::DataSet set;
  set.set_id(id);
  set.set_owner(owner);
  set.set_title(manifest.manifest().files(0).path());
  set.set_files(manifest.manifest().files_size());
  set.set_bytes(manifest.bytes());
  return set;
}

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
  const std::string path = absl::StrCat(At("sets", id), "/", kInfo);
  ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMostInfoBytes));
  v1::DataSet set;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of a newer version
  if (!google::protobuf::util::JsonStringToMessage(text, &set, options).ok() || set.id() != id) {
    return absl::DataLossError(absl::StrCat(path, ": is not the set's info"));
  }
  return set;
}

std::string DataFolder::IdOf(const std::string& key, const std::string& manifest_sha256) {
  return Sha256Hex(absl::StrCat(key, "\n", manifest_sha256));
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
    if (!owner.has_value() || IdOf(key, sha256) != id) continue;
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
  Names names;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!IsJobName(words.first) || !IsDigest(words.second)) {
      return absl::DataLossError(absl::StrCat(At("names", key), ": want lines \"NAME ID\""));
    }
    names.insert(words);
  }
  return names;
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

absl::StatusOr<int64_t> DataFolder::PartBytes(const std::string& key, const std::string& sha256) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files_.Open(PartPath(key, sha256)));
  return file->size();
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
    RETURN_IF_ERROR(
        files_.Link(PartPath(key, part.sha256()), absl::StrCat(folder, "/", part.sha256())));
  }
  RETURN_IF_ERROR(WriteFile(absl::StrCat(folder, "/", kInfo), InfoText(set)));
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
  return Replace(At("sets", set.id()), kInfo, InfoText(set));
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

absl::Status DataFolder::WriteNames(const std::string& key, const Names& names) {
  std::string text;
  for (const auto& [name, id] : names) absl::StrAppend(&text, name, " ", id, "\n");
  return Replace(At("names", ""), key, text);
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

absl::Status DataFolder::Remove(const v1::DataSet& set) {
  std::vector<std::string> digests;
  if (const auto names = files_.List(At("sets", set.id())); names.ok()) {
    for (const std::string& name : *names) {
      if (IsDigest(name)) digests.push_back(name);
    }
  }
  RETURN_IF_ERROR(PutAside(set.id()));
  FreeParts(At("parts", OwnerKey(set.owner())), digests);
  return absl::OkStatus();
}

}  // namespace stagecoach
