#include "services/coordinator/data/data_catalog.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "plan/data/data_set_path.h"
#include "services/coordinator/data/data_folder.h"
#include "services/coordinator/data/set_texts.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

constexpr double kSecondsOfDay = 24 * 3600;

std::string Named(const std::string& name_or_id) {
  return absl::StrCat("data set ", ShownName(name_or_id.substr(0, 64)));
}

absl::Status NotHere(const std::string& name_or_id) {
  return absl::NotFoundError(
      absl::StrCat(Named(name_or_id), " is not here; `stagecoach data list` shows what is"));
}

absl::Status CheckPart(const v1::DataPart& part, int index) {
  if (!IsDigest(part.sha256())) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts[", index, "].sha256=", ShownName(part.sha256().substr(0, 80)),
                     ": want 64 hexadecimal digits"));
  }
  if (part.bytes() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parts[", index, "].bytes=", part.bytes(), ": want >= 1"));
}

}  // namespace

DataCatalog::DataCatalog(const Options& options)
    : options_(options),
      own_shelf_(options.shelf != nullptr
                     ? nullptr
                     : std::make_unique<DataFolder>(options.folder, options.files)),
      shelf_(options.shelf != nullptr ? *options.shelf : *own_shelf_) {}

absl::StatusOr<std::unique_ptr<DataCatalog>> DataCatalog::Open(const Options& options) {
  std::unique_ptr<DataCatalog> catalog(new DataCatalog(options));
  RETURN_IF_ERROR(catalog->Read());
  return catalog;
}

absl::Status DataCatalog::Read() {
  RETURN_IF_ERROR(shelf_.Open());
  ASSIGN_OR_RETURN(std::vector<v1::DataSet> sets, shelf_.ReadSets());
  for (v1::DataSet& set : sets) {
    const std::string id = set.id();
    if (set.created_seconds() == 0) {  // nobody knows; no sweep takes it at once
      set.set_created_seconds(options_.clock->UnixSeconds());
      set.set_used_seconds(set.created_seconds());
      RETURN_IF_ERROR(shelf_.WriteInfo(set));
    }
    NoteLinked(set);
    sets_[id] = Entry{.set = std::move(set)};
    sets_[id].written_seconds = sets_[id].set.used_seconds();
  }
  ASSIGN_OR_RETURN(names_, shelf_.ReadNames());
  for (auto& [key, names] : names_) {
    // A crash may have taken the set and left its name.
    std::erase_if(names, [this, of = key](const auto& name) {
      const auto set = sets_.find(name.second);
      return set == sets_.end() || OwnerKey(set->second.set.owner()) != of;
    });
  }
  return absl::OkStatus();
}

absl::Status DataCatalog::CheckRoom(int64_t bytes) {
  ASSIGN_OR_RETURN(const int64_t free, shelf_.FreeBytes());
  if (free - options_.reserve_bytes >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the data has ", bytes, " bytes that are not here, and the coordinator's disk has ", free,
      " free, ", options_.reserve_bytes,
      " of them not for data sets; make room with `stagecoach data remove`"));
}

absl::StatusOr<std::vector<int>> DataCatalog::Prepare(const std::string& owner,
                                                      const std::vector<v1::DataPart>& parts,
                                                      bool again) {
  if (parts.size() > static_cast<size_t>(kMostParts)) {
    return absl::InvalidArgumentError(absl::StrCat("parts: ", parts.size(), " of them; at most ",
                                                   kMostParts, ", ask again for the others"));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = OwnerKey(owner);
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    RETURN_IF_ERROR(CheckPart(parts[static_cast<size_t>(i)], i));
  }
  RETURN_IF_ERROR(shelf_.MakeOwner(key));
  for (const v1::DataPart& part : parts) {
    if (again) RETURN_IF_ERROR(shelf_.DropPart(key, part.sha256()));
  }
  ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> sizes, shelf_.PartSizes(key, parts));
  std::vector<int> missing;
  int64_t wanted = 0;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    const v1::DataPart& part = parts[static_cast<size_t>(i)];
    if (const std::optional<int64_t>& here = sizes[static_cast<size_t>(i)];
        here.has_value() && !again) {
      if (*here != part.bytes()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "parts[", i, "].bytes=", part.bytes(), ": the part that is here has ", *here,
            " bytes and is damaged; upload the data anew with `stagecoach submit "
            "--data-again`, or `stagecoach data put --again`"));
      }
      shelf_.TouchPart(key, part.sha256());
      continue;
    }
    missing.push_back(i);
    const int64_t rest =
        std::max<int64_t>(part.bytes() - shelf_.UploadedBytes(key, part.sha256()), 0);
    wanted = rest > std::numeric_limits<int64_t>::max() - wanted
                 ? std::numeric_limits<int64_t>::max()
                 : wanted + rest;
  }
  if (!missing.empty()) RETURN_IF_ERROR(CheckRoom(wanted));
  return missing;
}

std::string DataCatalog::NameOf(const v1::DataSet& set) const {
  const auto names = names_.find(OwnerKey(set.owner()));
  if (names == names_.end()) return "";
  for (const auto& [name, id] : names->second) {
    if (id == set.id()) return name;
  }
  return "";
}

v1::DataSet DataCatalog::Shown(const Entry& entry) const {
  v1::DataSet set = entry.set;
  set.set_name(NameOf(set));
  return set;
}

absl::Status DataCatalog::CheckName(const std::string& owner, const std::string& id,
                                    const v1::PutDataSetRequest& request) const {
  const std::string& name = request.name();
  if (name.empty()) return absl::OkStatus();
  if (!IsJobName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name=", ShownName(name.substr(0, 80)), ": want ", kJobNameRule));
  }
  const auto names = names_.find(OwnerKey(owner));
  if (request.replace() || names == names_.end()) return absl::OkStatus();
  for (const auto& [other, its] : names->second) {
    if (other == name && its != id) {
      return absl::AlreadyExistsError(absl::StrCat(
          "name=", name, ": another data set is called so; replace it, or choose another name"));
    }
    if (other != name && its == id) {
      return absl::AlreadyExistsError(absl::StrCat(
          "name=", name, ": data set ", other, " has this content; use that name, or replace it"));
    }
  }
  return absl::OkStatus();
}

absl::Status DataCatalog::CheckParts(const std::string& key, const CheckedManifest& manifest) {
  const auto& parts = manifest.manifest().parts();
  const std::vector<v1::DataPart> all(parts.begin(), parts.end());
  const bool linked = std::all_of(all.begin(), all.end(),
                                  [](const v1::DataPart& part) { return !part.source().empty(); });
  if (linked) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> sizes, shelf_.PartSizes(key, all));
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].source().empty()) continue;
    if (!sizes[i].has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("part ", all[i].sha256(), " is not here; upload it"));
    }
    if (*sizes[i] != all[i].bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("part ", all[i].sha256(), " has ", *sizes[i],
                                                     " bytes, and in the manifest ",
                                                     all[i].bytes()));
    }
  }
  return absl::OkStatus();
}

void DataCatalog::NoteLinked(const v1::DataSet& set) {
  if (set.source().empty()) return;
  std::lock_guard<std::mutex> lock(linked_mutex_);
  linked_.insert(set.id());
}

bool DataCatalog::IsLinked(const std::string& id) const {
  std::lock_guard<std::mutex> lock(linked_mutex_);
  return linked_.contains(id);
}

absl::Status DataCatalog::Make(const std::string& owner, const std::string& id,
                               const std::string& manifest_sha256, Parts parts) {
  const std::string key = OwnerKey(owner);
  const absl::StatusOr<CheckedManifest> manifest = shelf_.UploadedManifest(key, manifest_sha256);
  if (absl::IsNotFound(manifest.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("manifest ", manifest_sha256, " is not here; upload it"));
  }
  RETURN_IF_ERROR(manifest.status());
  if (parts == Parts::kUploaded && !manifest->source().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "manifest ", manifest_sha256, ": its parts have a source, ", ShownName(manifest->source()),
        ": only the coordinator makes such sets; name the object in a job"));
  }
  RETURN_IF_ERROR(CheckParts(key, *manifest));
  Entry entry;
  entry.set = InfoOf(id, owner, *manifest);
  entry.set.set_created_seconds(options_.clock->UnixSeconds());
  entry.set.set_used_seconds(entry.set.created_seconds());
  entry.written_seconds = entry.set.used_seconds();
  RETURN_IF_ERROR(shelf_.Make(entry.set, manifest_sha256, *manifest));
  NoteLinked(entry.set);
  sets_[id] = std::move(entry);
  return absl::OkStatus();
}

absl::Status DataCatalog::TakePartsAnew(const std::string& owner, const std::string& id,
                                        const std::string& manifest_sha256) {
  std::vector<std::string> others;
  for (const auto& [other, entry] : sets_) {
    if (other != id && entry.set.owner() == owner) others.push_back(other);
  }
  return shelf_.TakePartsAnew(OwnerKey(owner), id, manifest_sha256, others);
}

absl::Status DataCatalog::GiveName(const std::string& owner, const std::string& id,
                                   const std::string& name) {
  DataShelf::Names names = names_[OwnerKey(owner)];
  const auto found = names.find(name);
  if (found != names.end() && found->second == id) return absl::OkStatus();
  std::erase_if(names, [&id](const auto& other) { return other.second == id; });
  names[name] = id;
  RETURN_IF_ERROR(shelf_.WriteNames(OwnerKey(owner), names));
  names_[OwnerKey(owner)] = std::move(names);
  return absl::OkStatus();
}

absl::StatusOr<v1::DataSet> DataCatalog::Put(const std::string& owner,
                                             const v1::PutDataSetRequest& request) {
  if (!IsDigest(request.manifest_sha256())) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest_sha256=", ShownName(request.manifest_sha256().substr(0, 80)),
                     ": want 64 hexadecimal digits"));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string id = SetId(OwnerKey(owner), request.manifest_sha256());
  RETURN_IF_ERROR(CheckName(owner, id, request));
  const auto found = sets_.find(id);
  if (found == sets_.end()) {
    RETURN_IF_ERROR(Make(owner, id, request.manifest_sha256(), Parts::kUploaded));
  } else if (found->second.taken_out) {
    return absl::UnavailableError(absl::StrCat(Named(id), " is being removed; try again"));
  } else {
    RETURN_IF_ERROR(TakePartsAnew(owner, id, request.manifest_sha256()));
  }
  Entry& entry = sets_.at(id);
  NoteUsed(&entry);
  if (!request.name().empty()) RETURN_IF_ERROR(GiveName(owner, id, request.name()));
  return Shown(entry);
}

absl::StatusOr<DataCatalog::Held> DataCatalog::PutLinked(const std::string& owner,
                                                         const v1::DataManifest& manifest) {
  const std::string bytes = manifest.SerializeAsString();
  const std::string sha256 = Sha256Hex(bytes), id = SetId(OwnerKey(owner), sha256);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(id);
  if (found != sets_.end() && found->second.taken_out) {
    return absl::UnavailableError(absl::StrCat(Named(id), " is being removed; try again"));
  }
  if (found == sets_.end()) {
    RETURN_IF_ERROR(CheckRoom(std::ssize(bytes)));
    RETURN_IF_ERROR(shelf_.MakeOwner(OwnerKey(owner)));
    RETURN_IF_ERROR(shelf_.WritePart(OwnerKey(owner), sha256, bytes));
    RETURN_IF_ERROR(Make(owner, id, sha256, Parts::kLinked));
  }
  Entry& entry = sets_.at(id);
  NoteUsed(&entry);
  return Held{Shown(entry), entry.token};
}

std::vector<v1::DataSet> DataCatalog::List(const JobCaller& caller) const {
  std::vector<v1::DataSet> shown;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, entry] : sets_) {
      if (!entry.taken_out && caller.May(entry.set.owner())) shown.push_back(Shown(entry));
    }
  }
  std::stable_sort(shown.begin(), shown.end(), [](const v1::DataSet& a, const v1::DataSet& b) {
    if (a.name().empty() != b.name().empty()) return b.name().empty();
    if (a.name() != b.name()) return a.name() < b.name();
    return a.used_seconds() > b.used_seconds();
  });
  return shown;
}

absl::StatusOr<std::string> DataCatalog::IdOfName(const JobCaller& caller,
                                                  const std::string& name) const {
  const auto own = names_.find(OwnerKey(caller.name));
  if (own != names_.end() && own->second.contains(name)) return own->second.at(name);
  std::vector<std::string> ids;
  for (const auto& [key, names] : names_) {
    if (!caller.own_only && names.contains(name)) ids.push_back(names.at(name));
  }
  if (ids.empty()) return NotHere(name);
  if (ids.size() == 1) return ids.front();
  return absl::FailedPreconditionError(
      absl::StrCat(Named(name), ": ", ids.size(),
                   " owners have one; give its id, which `stagecoach data list` shows"));
}

absl::StatusOr<DataCatalog::Entry*> DataCatalog::Get(const JobCaller& caller,
                                                     const std::string& name_or_id) {
  std::string id = name_or_id;
  if (!IsDigest(id)) {
    ASSIGN_OR_RETURN(id, IdOfName(caller, name_or_id));
  }
  const auto found = sets_.find(id);
  if (found == sets_.end() || found->second.taken_out || !caller.May(found->second.set.owner())) {
    return NotHere(name_or_id);
  }
  return &found->second;
}

absl::StatusOr<v1::DataSet> DataCatalog::Find(const JobCaller& caller,
                                              const std::string& name_or_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(const Entry* const entry, Get(caller, name_or_id));
  return Shown(*entry);
}

absl::StatusOr<CheckedManifest> DataCatalog::Manifest(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  return shelf_.ManifestOf(id);
}

void DataCatalog::NoteUsed(Entry* entry) {
  entry->set.set_used_seconds(options_.clock->UnixSeconds());
  if (entry->set.used_seconds() - entry->written_seconds < kUsedSeconds) return;
  const absl::Status written = shelf_.WriteInfo(entry->set);
  if (written.ok()) {
    entry->written_seconds = entry->set.used_seconds();
  } else {
    spdlog::warn("{}: that it was used is not written: {}", Named(entry->set.id()),
                 std::string(written.message()));
  }
}

absl::StatusOr<DataCatalog::Held> DataCatalog::Hold(const JobCaller& caller,
                                                    const std::string& name_or_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(Entry* const entry, Get(caller, name_or_id));
  NoteUsed(entry);
  return Held{Shown(*entry), entry->token};
}

absl::StatusOr<v1::DataSet> DataCatalog::TakeOut(const JobCaller& caller,
                                                 const std::string& name_or_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(Entry* const entry, Get(caller, name_or_id));
  if (entry->held()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Named(name_or_id), ": a job that reads it is being submitted; try again"));
  }
  entry->taken_out = true;
  return Shown(*entry);
}

void DataCatalog::PutBack(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(id);
  if (found != sets_.end()) found->second.taken_out = false;
}

absl::Status DataCatalog::Delete(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end()) return absl::OkStatus();
  const std::string key = OwnerKey(found->second.set.owner());
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, DeleteLocked(id));
  shelf_.FreeParts(key, parts);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> DataCatalog::DeleteLocked(const std::string& id) {
  const auto found = sets_.find(id);
  const v1::DataSet set = Shown(found->second);
  absl::StatusOr<std::vector<std::string>> removed = shelf_.Remove(set);
  if (!removed.ok()) {
    found->second.taken_out = false;
    found->second.written_seconds = 0;  // half of it may be gone: whoever uses it writes it anew
    return removed.status();
  }
  sets_.erase(found);
  {
    std::lock_guard<std::mutex> lock(linked_mutex_);
    linked_.erase(id);
  }
  if (set.name().empty()) return removed;
  DataShelf::Names& names = names_[OwnerKey(set.owner())];
  names.erase(set.name());
  // A name without its set counts for nothing, so this may fail.
  const absl::Status written = shelf_.WriteNames(OwnerKey(set.owner()), names);
  if (!written.ok()) spdlog::warn("names of data sets: {}", std::string(written.message()));
  return removed;
}

void DataCatalog::Sweep(const std::function<bool(const std::string& id)>& is_read) {
  const double now = options_.clock->UnixSeconds();
  shelf_.LookForSweep(now - kPartSeconds);
  std::lock_guard<std::mutex> lock(mutex_);
  const double age = std::max(options_.keep_days * kSecondsOfDay, kUsedSeconds);
  std::vector<std::string> old;
  for (auto& [id, entry] : sets_) {
    // A job uses its sets to its end, so that the days count from there.
    const bool read = is_read(id);
    if (read) NoteUsed(&entry);
    const bool used =
        read || now - entry.set.used_seconds() < age || entry.held() || entry.taken_out;
    if (options_.keep_days == 0 || used || !NameOf(entry.set).empty()) continue;
    old.push_back(id);
  }
  std::map<std::string, std::vector<std::string>> left;  // parts by owner
  for (const std::string& id : old) {
    const std::string owner = sets_.at(id).set.owner();
    const auto parts = DeleteLocked(id);
    const absl::Status& removed = parts.status();
    if (parts.ok()) {
      std::vector<std::string>& its = left[OwnerKey(owner)];
      its.insert(its.end(), parts->begin(), parts->end());
    }
    if (removed.ok()) {
      spdlog::info("data set {} of {} was removed: nobody used it for {} days", id, owner,
                   options_.keep_days);
    } else {
      spdlog::warn("data set {} cannot be removed: {}", id, std::string(removed.message()));
    }
  }
  for (const auto& [key, parts] : left) shelf_.FreeParts(key, parts);
  const int64_t freed = shelf_.SweepParts(now - kPartSeconds);
  if (freed > 0) spdlog::info("parts of no data set were removed, {} bytes", freed);
}

}  // namespace stagecoach
