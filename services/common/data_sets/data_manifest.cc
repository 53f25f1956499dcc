#include "services/common/data_sets/data_manifest.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"

namespace stagecoach {
namespace {

absl::Status RefusedManifest(const std::string& what, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("a data set's manifest: ", what, ": ", why));
}

constexpr size_t kMostEtagBytes = 256;

// It goes into a header, between quotes.
bool IsEtag(std::string_view etag) {
  return !etag.empty() && etag.size() <= kMostEtagBytes &&
         std::all_of(etag.begin(), etag.end(),
                     [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
}

absl::Status CheckSource(const v1::DataManifest& manifest, const v1::DataPart& part) {
  if (part.source().empty() != manifest.parts(0).source().empty()) {
    return RefusedManifest("as a whole", "some of its parts were uploaded and some were not");
  }
  if (part.source().empty()) return absl::OkStatus();
  const std::string what = absl::StrCat("part ", ShownName(part.source()));
  if (!ParseBucketPath(part.source()).ok()) return RefusedManifest(what, "is no s3://BUCKET/KEY");
  if (!IsEtag(part.etag())) return RefusedManifest(what, "its ETag is none");
  return absl::OkStatus();
}

// The longest common folder of two paths that begin with s3://BUCKET.
std::string CommonFolder(const std::string& folder, const std::string& path) {
  std::string common = folder;
  while (path != common && !path.starts_with(common + "/")) {
    const size_t slash = common.rfind('/');
    if (slash < std::string_view(kBucketPrefix).size()) return kBucketPrefix;  // two buckets
    common.resize(slash);
  }
  return common;
}

std::string CommonSource(const v1::DataManifest& manifest) {
  std::string common = manifest.parts().empty() ? "" : manifest.parts(0).source();
  for (const v1::DataPart& part : manifest.parts()) {
    if (common == kBucketPrefix || common.empty()) break;
    common = CommonFolder(common, part.source());
  }
  return common;
}

absl::Status CheckParts(const v1::DataManifest& manifest) {
  std::unordered_set<std::string> seen;
  int64_t left = std::numeric_limits<int64_t>::max();
  for (const v1::DataPart& part : manifest.parts()) {
    const std::string what = absl::StrCat("part ", ShownName(part.sha256()));
    if (!IsDigest(part.sha256())) return RefusedManifest(what, "want 64 hexadecimal digits");
    if (!seen.insert(part.sha256()).second) return RefusedManifest(what, "is there twice");
    if (part.bytes() < 1 || part.bytes() > left)
      return RefusedManifest(what, "its size is out of range");
    left -= part.bytes();
    RETURN_IF_ERROR(CheckSource(manifest, part));
  }
  return absl::OkStatus();
}

absl::Status CheckFile(const v1::DataManifest& manifest, const v1::DataSetFile& file) {
  RETURN_IF_ERROR(CheckPathInSet(file.path()));
  if (file.bytes() == 0) return absl::OkStatus();
  const std::string what = absl::StrCat("file ", ShownName(file.path()));
  if (file.part() < 0 || file.part() >= manifest.parts_size())
    return RefusedManifest(what, "has no part");
  const int64_t size = manifest.parts(static_cast<int>(file.part())).bytes();
  if (file.offset() < 0 || file.offset() > size || file.bytes() < 0 ||
      file.bytes() > size - file.offset()) {
    return RefusedManifest(what, "does not lie within its part");
  }
  return absl::OkStatus();
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

absl::StatusOr<CheckedManifest> CheckedManifest::Parse(std::string_view bytes) {
  CheckedManifest checked;
  if (bytes.size() > kMostManifestBytes) {
    return RefusedManifest("as a whole", "is larger than 256 MiB; pack small files into tar files");
  }
  if (!checked.manifest_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return RefusedManifest("as a whole", "cannot be read");
  }
  RETURN_IF_ERROR(checked.Check());
  return checked;
}

absl::Status CheckedManifest::Check() {
  if (manifest_.files().empty()) return RefusedManifest("as a whole", "has no file");
  RETURN_IF_ERROR(CheckParts(manifest_));
  const std::string* before = nullptr;
  for (const v1::DataSetFile& file : manifest_.files()) {
    RETURN_IF_ERROR(CheckFile(manifest_, file));
    if (before != nullptr && *before >= file.path()) {
      return RefusedManifest(absl::StrCat("file ", ShownName(file.path())),
                             "is not behind the one before");
    }
    if (file.bytes() > std::numeric_limits<int64_t>::max() - bytes_) {
      return RefusedManifest(absl::StrCat("file ", ShownName(file.path())),
                             "its size is out of range");
    }
    bytes_ += file.bytes();
    before = &file.path();
  }
  // A file is no folder as well. "a-b" may stand between "a" and "a/b", so neighbours do not tell.
  for (const v1::DataSetFile& file : manifest_.files()) {
    for (size_t slash = file.path().find('/'); slash != std::string::npos;
         slash = file.path().find('/', slash + 1)) {
      if (Find(std::string_view(file.path()).substr(0, slash)) == nullptr) continue;
      return RefusedManifest(absl::StrCat("file ", ShownName(file.path())), "lies in a file");
    }
  }
  source_ = CommonSource(manifest_);
  return absl::OkStatus();
}

const v1::DataSetFile* CheckedManifest::Find(std::string_view path) const {
  const auto& files = manifest_.files();
  const auto found = std::lower_bound(
      files.begin(), files.end(), path,
      [](const v1::DataSetFile& file, std::string_view wanted) { return file.path() < wanted; });
  return found != files.end() && found->path() == path ? &*found : nullptr;
}

std::vector<CheckedManifest::Entry> CheckedManifest::List(std::string_view folder) const {
  const std::string prefix(folder);
  std::vector<Entry> entries;
  const auto& files = manifest_.files();
  auto file = files.begin();
  if (!prefix.empty()) {  // '/' + 1: behind all that lies below
    file = std::lower_bound(
        files.begin(), files.end(), prefix + '/',
        [](const v1::DataSetFile& f, const std::string& wanted) { return f.path() < wanted; });
  }
  for (; file != files.end(); ++file) {
    if (!prefix.empty() && !IsBelow(file->path(), prefix)) break;
    const std::string below = file->path().substr(prefix.empty() ? 0 : prefix.size() + 1);
    const size_t slash = below.find('/');
    Entry entry{.name = below.substr(0, slash), .folder = slash != std::string::npos};
    if (!entry.folder) entry.bytes = file->bytes();
    if (entries.empty() || entries.back().name != entry.name) entries.push_back(std::move(entry));
  }
  // Paths compare with their slashes, so a folder's name may stand behind a longer one.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

}  // namespace stagecoach
