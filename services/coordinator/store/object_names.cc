#include "services/coordinator/store/object_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/files/hash.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "plan/data/data_set_path.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

constexpr size_t kMostKey = 200;  // a file's name has 255

absl::Status NoName(const std::string& name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "name=", ShownName(name.substr(0, 300)),
      ": want checkpoints/JOB/FOLDER/FILE, exports/FOLDER/FILE, records/JOB/FILE, "
      "data/parts/OWNER/SHA256 or data/sets/ID/FILE, of letters, digits, '.', '-' and '_'"));
}

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
}

bool IsPart(std::string_view part) {
  // With ".part" behind it, it is still a file's name.
  return !part.empty() && part.size() <= 250 && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), IsPlain);
}

bool IsOwnerKey(std::string_view key) {
  std::string plain(key);
  std::erase(plain, '%');
  return IsPart(plain);
}

bool StartsWithArea(std::string_view name, std::string_view area) {
  return name.size() > area.size() && name.starts_with(area) && name[area.size()] == '/';
}

}  // namespace

ObjectArea AreaOf(std::string_view name) {
  if (StartsWithArea(name, kExportsArea)) return ObjectArea::kExport;
  if (StartsWithArea(name, kRecordsArea)) return ObjectArea::kRecord;
  if (StartsWithArea(name, kPartsArea)) return ObjectArea::kDataPart;
  if (StartsWithArea(name, kSetsArea)) return ObjectArea::kDataSet;
  return ObjectArea::kCheckpoint;
}

absl::StatusOr<ObjectPlace> PlaceOf(const ObjectFolders& folders, const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  const ObjectArea area = AreaOf(name);
  if (area == ObjectArea::kDataPart || area == ObjectArea::kDataSet) {
    const bool ok =
        parts.size() == 4 &&
        (area == ObjectArea::kDataPart
             ? IsOwnerKey(parts[2]) && IsDigest(parts[3])
             : IsDigest(parts[2]) && (IsDigest(parts[3]) || parts[3] == kDataManifestObject));
    if (!ok) return NoName(name);
    return ObjectPlace{area,
                       absl::StrCat(folders.data, "/", parts[1], "/", parts[2], "/", parts[3])};
  }
  if (!std::all_of(parts.begin(), parts.end(), IsPart)) return NoName(name);
  if (area == ObjectArea::kExport && parts.size() == 3) {
    return ObjectPlace{area, absl::StrCat(folders.exports, "/", parts[1], "/", parts[2])};
  }
  if (area == ObjectArea::kRecord && parts.size() == 3 && CheckJobName(parts[1]).ok()) {
    return ObjectPlace{area, absl::StrCat(folders.records, "/", parts[1], "/", parts[2])};
  }
  if (parts.size() == 4 && parts[0] == kCheckpointsArea && CheckJobName(parts[1]).ok()) {
    return ObjectPlace{
        area, absl::StrCat(folders.checkpoints, "/", parts[1], "/", parts[2], "/", parts[3])};
  }
  return NoName(name);
}

absl::Status CheckWritable(const std::string& name, const ObjectPlace& place) {
  if (place.area == ObjectArea::kDataPart) return absl::OkStatus();
  const std::string file = NameOf(place.path);
  if (place.area != ObjectArea::kCheckpoint ||
      !ParseTemporaryFolder(NameOf(FolderOf(place.path))) || !CheckShardFile(file).ok() ||
      file.ends_with(kPartSuffix)) {
    return absl::PermissionDeniedError(
        absl::StrCat("store object ", name,
                     ": only shards of a checkpoint that is begun and parts of data sets are "
                     "written"));
  }
  return absl::OkStatus();
}

std::string OwnerKey(const std::string& owner) {
  if (owner.empty()) return "_";
  std::string key;
  for (const char c : owner) {
    if (IsPlain(c)) {
      key += c;
    } else {
      absl::StrAppendFormat(&key, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return key.size() <= kMostKey ? key : absl::StrCat("_", Sha256Hex(owner));
}

std::optional<std::string> OwnerOfKey(const std::string& key) {
  if (key == OwnerKey("")) return "";
  if (key.starts_with('_')) return std::nullopt;  // a digest: roles begin otherwise
  std::string owner;
  for (size_t at = 0; at < key.size(); ++at) {
    int code = key[at];
    if (code == '%') {
      if (!absl::SimpleHexAtoi(key.substr(at + 1, 2), &code)) return std::nullopt;
      at += 2;
    }
    owner += static_cast<char>(code);
  }
  if (OwnerKey(owner) != key) return std::nullopt;
  return owner;
}

std::string PartsObject(const std::string& owner) {
  return absl::StrCat(kPartsArea, "/", OwnerKey(owner));
}

std::string SetObject(const std::string& id) { return absl::StrCat(kSetsArea, "/", id); }

}  // namespace stagecoach
