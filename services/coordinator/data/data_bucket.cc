#include "services/coordinator/data/data_bucket.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "services/coordinator/data/set_texts.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

// More parts than these are found by a listing, of 1000 an answer.
constexpr size_t kMostLooks = 16;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

bool DataBucket::Digests::Has(const Digest& part) const {
  return std::binary_search(parts.begin(), parts.end(), part);
}

DataBucket::Digest DataBucket::DigestOf(const std::string& sha256) {
  const std::string bytes = absl::HexStringToBytes(sha256);
  Digest digest{};
  CHECK(bytes.size() == digest.size()) << "names of parts were checked";
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

std::string DataBucket::HexOf(const Digest& digest) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::shared_ptr<const DataBucket::Digests> DataBucket::DigestsOf(const CheckedManifest& manifest,
                                                                 const std::string& sha256) {
  auto digests = std::make_shared<Digests>();
  for (const v1::DataPart& part : manifest.manifest().parts()) {
    if (part.source().empty()) digests->parts.push_back(DigestOf(part.sha256()));
  }
  std::sort(digests->parts.begin(), digests->parts.end());
  digests->manifest = DigestOf(sha256);
  return digests;
}

std::string DataBucket::Key(const std::string& area, const std::string& name) const {
  const std::string& prefix = client_.location().prefix;
  return absl::StrCat(prefix, prefix.empty() ? "" : "/", "data/", area, "/", name);
}

std::string DataBucket::KeyOfPart(const std::string& owner, const std::string& sha256) const {
  return Key("parts", absl::StrCat(owner, "/", sha256));
}

absl::StatusOr<std::string> DataBucket::ReadText(const std::string& key, size_t most) {
  ASSIGN_OR_RETURN(const int64_t size, client_.Size(key));
  if (size > static_cast<int64_t>(most)) {
    return absl::DataLossError(absl::StrCat(key, ": has ", size, " bytes"));
  }
  std::string text(static_cast<size_t>(size), '\0');
  RETURN_IF_ERROR(client_.Read(key, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

void DataBucket::Note(const std::string& id, const std::string& owner) {
  std::lock_guard<std::mutex> lock(mutex_);
  sets_[id].owner = owner;
}

absl::StatusOr<std::vector<v1::DataSet>> DataBucket::ReadSets() {
  const std::string root = Key("sets", "");
  ASSIGN_OR_RETURN(const S3Listing found, client_.List(root, /*flat=*/false));
  std::vector<v1::DataSet> sets;
  for (const S3Entry& object : found.objects) {
    const std::string id = NameOf(FolderOf(object.key));
    if (!IsDigest(id) || object.key != absl::StrCat(root, id, "/", kSetInfo)) continue;
    const absl::StatusOr<std::string> text = ReadText(object.key, kMostInfoBytes);
    if (absl::IsNotFound(text.status())) continue;
    if (!text.ok() && !absl::IsDataLoss(text.status())) return text.status();
    absl::StatusOr<v1::DataSet> set = text.ok() ? ParseInfo(*text, id, object.key) : text.status();
    Note(id, set.ok() ? OwnerKey(set->owner()) : "");
    if (set.ok()) {
      sets.push_back(*std::move(set));
    } else {
      spdlog::error("data set {} is not known: {}", id, std::string(set.status().message()));
    }
  }
  return sets;
}

absl::StatusOr<std::map<std::string, DataBucket::Names>> DataBucket::ReadNames() {
  std::map<std::string, Names> all;
  ASSIGN_OR_RETURN(const S3Listing found, client_.List(Key("names", ""), /*flat=*/true));
  for (const S3Entry& object : found.objects) {
    const std::string key = NameOf(object.key);
    absl::StatusOr<std::string> text = ReadText(object.key, kMostNamesBytes);
    absl::StatusOr<Names> names =
        text.ok() ? ParseNames(*text, object.key) : absl::StatusOr<Names>(text.status());
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

absl::StatusOr<std::vector<std::optional<int64_t>>> DataBucket::PartSizes(
    const std::string& key, std::span<const v1::DataPart> parts) {
  std::vector<std::optional<int64_t>> sizes(parts.size());
  if (parts.size() <= kMostLooks) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].source().empty()) continue;
      const absl::StatusOr<int64_t> size = client_.Size(KeyOfPart(key, parts[i].sha256()));
      if (absl::IsNotFound(size.status())) continue;
      RETURN_IF_ERROR(size.status());
      sizes[i] = *size;
    }
    return sizes;
  }
  ASSIGN_OR_RETURN(const S3Listing found, client_.List(KeyOfPart(key, ""), /*flat=*/true));
  std::map<std::string, int64_t> here;
  for (const S3Entry& object : found.objects) here[NameOf(object.key)] = object.bytes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = here.find(parts[i].sha256());
    if (parts[i].source().empty() && part != here.end()) sizes[i] = part->second;
  }
  return sizes;
}

void DataBucket::TouchPart(const std::string& key, const std::string& sha256) {
  std::lock_guard<std::mutex> lock(mutex_);
  touched_[KeyOfPart(key, sha256)] = clock_.UnixSeconds();
}

absl::Status DataBucket::WritePart(const std::string& key, const std::string& sha256,
                                   const std::string& bytes) {
  return client_.Put(KeyOfPart(key, sha256), BytesOf(bytes));
}

absl::StatusOr<CheckedManifest> DataBucket::UploadedManifest(const std::string& key,
                                                             const std::string& sha256) {
  const std::string object = KeyOfPart(key, sha256);
  ASSIGN_OR_RETURN(const std::string text, ReadText(object, kMostManifestBytes));
  // The manifest decides which parts a grant opens, so its own digest is compared.
  if (Sha256Hex(text) != sha256) {
    return absl::InvalidArgumentError(
        absl::StrCat("manifest_sha256=", sha256, ": the bytes of ", object, " have another one"));
  }
  return CheckedManifest::Parse(text);
}

absl::StatusOr<std::string> DataBucket::ManifestText(const std::string& id) {
  return ReadText(Key("sets", absl::StrCat(id, "/", kDataManifestObject)), kMostManifestBytes);
}

absl::StatusOr<CheckedManifest> DataBucket::ManifestOf(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string text, ManifestText(id));
  return CheckedManifest::Parse(text);
}

absl::Status DataBucket::CopyManifest(const std::string& key, const std::string& id,
                                      const std::string& manifest_sha256) {
  const std::string uploaded = KeyOfPart(key, manifest_sha256);
  ASSIGN_OR_RETURN(const std::string text, ReadText(uploaded, kMostManifestBytes));
  if (Sha256Hex(text) != manifest_sha256) {
    return absl::DataLossError(absl::StrCat(uploaded, ": was changed meanwhile"));
  }
  return client_.Put(Key("sets", absl::StrCat(id, "/", kDataManifestObject)), BytesOf(text));
}

absl::Status DataBucket::TakePartsAnew(const std::string& key, const std::string& id,
                                       const std::string& manifest_sha256,
                                       const std::vector<std::string>& /*others*/) {
  const absl::Status copy =
      client_.Size(Key("sets", absl::StrCat(id, "/", kDataManifestObject))).status();
  return absl::IsNotFound(copy) ? CopyManifest(key, id, manifest_sha256) : copy;
}

absl::Status DataBucket::Make(const v1::DataSet& set, const std::string& manifest_sha256,
                              const CheckedManifest& manifest) {
  const std::string owner = OwnerKey(set.owner());
  RETURN_IF_ERROR(CopyManifest(owner, set.id(), manifest_sha256));
  RETURN_IF_ERROR(WriteInfo(set));
  std::lock_guard<std::mutex> lock(mutex_);
  sets_[set.id()] = {owner, DigestsOf(manifest, manifest_sha256)};
  return absl::OkStatus();
}

absl::Status DataBucket::WriteInfo(const v1::DataSet& set) {
  return client_.Put(Key("sets", absl::StrCat(set.id(), "/", kSetInfo)), BytesOf(InfoText(set)));
}

absl::Status DataBucket::WriteNames(const std::string& key, const Names& names) {
  return client_.Put(Key("names", key), BytesOf(NamesText(names)));
}

absl::StatusOr<std::shared_ptr<const DataBucket::Digests>> DataBucket::DigestsOfSet(
    const std::string& id) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end()) {
      return absl::NotFoundError(absl::StrCat("data set ", id, " is not here"));
    }
    if (found->second.digests != nullptr) return found->second.digests;
  }
  ASSIGN_OR_RETURN(const std::string text, ManifestText(id));
  ASSIGN_OR_RETURN(const CheckedManifest manifest, CheckedManifest::Parse(text));
  std::shared_ptr<const Digests> digests = DigestsOf(manifest, Sha256Hex(text));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(id);
  if (found != sets_.end()) found->second.digests = digests;
  return digests;
}

absl::StatusOr<std::string> DataBucket::KeyInSet(const std::string& id, const std::string& name) {
  std::string owner;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end() || found->second.owner.empty()) {
      return absl::NotFoundError(absl::StrCat("data set ", id, " is not here"));
    }
    owner = found->second.owner;
  }
  if (name == kDataManifestObject) return Key("sets", absl::StrCat(id, "/", name));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Digests> digests, DigestsOfSet(id));
  if (digests->Has(DigestOf(name))) return KeyOfPart(owner, name);
  return absl::NotFoundError(absl::StrCat("data set ", id, " has no part ", name));
}

std::vector<std::pair<std::string, DataBucket::Known>> DataBucket::KnownSets() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {sets_.begin(), sets_.end()};
}

absl::StatusOr<std::set<DataBucket::Digest>> DataBucket::Used(const std::string& owner) {
  std::set<Digest> used;
  for (const auto& [id, known] : KnownSets()) {
    if (!known.owner.empty() && known.owner != owner) continue;
    const absl::StatusOr<std::shared_ptr<const Digests>> digests = DigestsOfSet(id);
    if (absl::IsNotFound(digests.status()))
      continue;  // its manifest is gone: it is no set any more
    RETURN_IF_ERROR(Annotate(digests.status(), absl::StrCat("data set ", id)));
    used.insert((*digests)->parts.begin(), (*digests)->parts.end());
    used.insert((*digests)->manifest);
  }
  return used;
}

// A damaged manifest keeps the parts of its owner, and nobody else's.
std::optional<std::set<DataBucket::Digest>> DataBucket::UsedOrNothing(const std::string& owner) {
  absl::StatusOr<std::set<Digest>> used = Used(owner);
  if (used.ok()) return *std::move(used);
  spdlog::warn("the parts of {} stay: {}", owner, std::string(used.status().message()));
  return std::nullopt;
}

bool DataBucket::IsKnown(const std::string& id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(id);
  return found != sets_.end() && !found->second.owner.empty();
}

absl::StatusOr<std::vector<std::string>> DataBucket::Remove(const v1::DataSet& set) {
  std::vector<std::string> parts;  // the manifest among them, which was uploaded as one
  if (const auto digests = DigestsOfSet(set.id()); digests.ok()) {
    for (const Digest& part : (*digests)->parts) parts.push_back(HexOf(part));
    parts.push_back(HexOf((*digests)->manifest));
  }
  RETURN_IF_ERROR(client_.Delete(Key("sets", absl::StrCat(set.id(), "/", kSetInfo))));
  const absl::Status rest =
      client_.Delete(Key("sets", absl::StrCat(set.id(), "/", kDataManifestObject)));
  if (!rest.ok()) {
    spdlog::warn("data set {} is gone, its manifest goes with a sweep: {}", set.id(),
                 std::string(rest.message()));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  sets_.erase(set.id());
  return parts;
}

void DataBucket::FreeParts(const std::string& key, const std::vector<std::string>& digests) {
  const absl::StatusOr<std::set<Digest>> used = Used(key);
  absl::Status status = used.status();
  for (const std::string& part : digests) {
    if (!status.ok()) break;
    if (!used->contains(DigestOf(part))) status = client_.Delete(KeyOfPart(key, part));
  }
  if (!status.ok()) {
    spdlog::warn("parts of a data set that was removed go with a sweep: {}",
                 std::string(status.message()));
  }
}

absl::Status DataBucket::ListOldParts(double since) {
  ASSIGN_OR_RETURN(S3Listing found, client_.List(Key("parts", ""), /*flat=*/false));
  std::erase_if(found.objects, [&](const S3Entry& part) {
    return part.modified_seconds == 0 || part.modified_seconds >= since ||
           !IsDigest(NameOf(part.key));
  });
  std::lock_guard<std::mutex> lock(mutex_);
  old_parts_ = std::move(found.objects);
  return absl::OkStatus();
}

// Without those that somebody was told of.
std::vector<S3Entry> DataBucket::TakeOldParts(double since) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(touched_, [since](const auto& part) { return part.second < since; });
  std::erase_if(old_parts_, [&](const S3Entry& part) { return touched_.contains(part.key); });
  return std::exchange(old_parts_, {});
}

void DataBucket::LookForSweep(double unchanged_since_seconds) {
  absl::Status looked = SweepUploads(clock_.UnixSeconds() - kUploadSeconds);
  if (looked.ok()) looked = ListOldParts(unchanged_since_seconds);
  if (looked.ok()) return;
  spdlog::warn("parts of no data set stay for the next sweep: {}", std::string(looked.message()));
}

// Removes what a set that was not finished left, or one whose removal was not. A set that is not
// known is another process's, and its parts stay.
absl::Status DataBucket::SweepSets(double since) {
  ASSIGN_OR_RETURN(const S3Listing found, client_.List(Key("sets", ""), /*flat=*/false));
  std::set<std::string> with_info;
  for (const S3Entry& object : found.objects) {
    if (NameOf(object.key) == kSetInfo) with_info.insert(NameOf(FolderOf(object.key)));
  }
  for (const S3Entry& object : found.objects) {
    const std::string id = NameOf(FolderOf(object.key));
    if (NameOf(object.key) != kDataManifestObject || !IsDigest(id)) continue;
    // A set that is known is whole for who was told of it: its removal may have failed in between.
    const bool half = !with_info.contains(id) && !IsKnown(id);
    if (half && object.modified_seconds > 0 && object.modified_seconds < since) {
      RETURN_IF_ERROR(client_.Delete(object.key));
      std::lock_guard<std::mutex> lock(mutex_);
      sets_.erase(id);
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex_);
    sets_.try_emplace(id);
  }
  return absl::OkStatus();
}

absl::Status DataBucket::SweepUploads(double since) {
  ASSIGN_OR_RETURN(const std::vector<S3Upload> uploads, client_.ListUploads(Key("parts", "")));
  for (const S3Upload& upload : uploads) {
    if (upload.begun_seconds > 0 && upload.begun_seconds < since) {
      RETURN_IF_ERROR(client_.DropUpload(upload.key, upload.id));
    }
  }
  return absl::OkStatus();
}

// A set that is made after the look is among those that are asked here.
absl::StatusOr<int64_t> DataBucket::Sweep(double since) {
  RETURN_IF_ERROR(SweepSets(since));
  std::map<std::string, std::optional<std::set<Digest>>> used;  // by owner
  int64_t freed = 0;
  for (const S3Entry& part : TakeOldParts(since)) {
    const std::string owner = NameOf(FolderOf(part.key));
    auto found = used.find(owner);
    if (found == used.end()) found = used.emplace(owner, UsedOrNothing(owner)).first;
    if (!found->second.has_value() || found->second->contains(DigestOf(NameOf(part.key)))) continue;
    RETURN_IF_ERROR(client_.Delete(part.key));
    freed += part.bytes;
  }
  return freed;
}

int64_t DataBucket::SweepParts(double unchanged_since_seconds) {
  const absl::StatusOr<int64_t> freed = Sweep(unchanged_since_seconds);
  if (freed.ok()) return *freed;
  spdlog::warn("parts of no data set stay for the next sweep: {}",
               std::string(freed.status().message()));
  return 0;
}

absl::StatusOr<int64_t> DataBucket::FreeBytes() { return std::numeric_limits<int64_t>::max() / 2; }

}  // namespace stagecoach
