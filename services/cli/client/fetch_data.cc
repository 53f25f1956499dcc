#include "services/cli/client/fetch_data.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/utf8.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr int64_t kFetchedPieceBytes = 8 << 20;

}  // namespace

absl::StatusOr<FetchedSet> FetchedSet::Open(DataClient& client, const std::string& data_set) {
  ASSIGN_OR_RETURN(v1::OpenDataSetResponse opened, client.Open(data_set));
  const StoredObject object{absl::StrCat(opened.folder(), "/", kDataManifestObject),
                            opened.grant()};
  ASSIGN_OR_RETURN(const StoreClient::Size size, client.Find(object));
  if (size.committed > static_cast<int64_t>(kMostManifestBytes)) {
    return absl::DataLossError(absl::StrCat("data set ", ShownName(data_set), ": its manifest has ",
                                            size.committed, " bytes, which none has"));
  }
  std::string bytes(static_cast<size_t>(size.committed), '\0');
  RETURN_IF_ERROR(client.Read(object, 0, std::as_writable_bytes(std::span(bytes))));
  absl::StatusOr<CheckedManifest> manifest = CheckedManifest::Parse(bytes);
  if (!manifest.ok()) return absl::DataLossError(manifest.status().message());
  return FetchedSet(client, std::move(opened), *std::move(manifest), Sha256Hex(bytes));
}

absl::Status FetchedSet::FetchFile(const v1::DataSetFile& file, const std::string& to) {
  FileSystem& files = *PosixFileSystem();
  RETURN_IF_ERROR(files.MakeFolders(FolderOf(to)));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> target, files.Create(to));
  std::vector<std::byte> piece;
  for (int64_t at = 0; at < file.bytes(); at += std::ssize(piece)) {
    const std::string& part = manifest_.manifest().parts(static_cast<int>(file.part())).sha256();
    piece.resize(static_cast<size_t>(std::min(kFetchedPieceBytes, file.bytes() - at)));
    RETURN_IF_ERROR(client_->Read({absl::StrCat(opened_.folder(), "/", part), opened_.grant()},
                                  file.offset() + at, piece));
    RETURN_IF_ERROR(target->Append(piece));
  }
  RETURN_IF_ERROR(target->Sync());
  return target->Close();
}

absl::StatusOr<std::string> FetchedSet::Fetch(
    const std::string& path, const std::string& to,
    const std::function<bool(const std::string&)>& takes) {
  const std::string target = path.empty() ? to : JoinPath(to, NameOf(path));
  if (const v1::DataSetFile* const file = manifest_.Find(path); file != nullptr) {
    RETURN_IF_ERROR(FetchFile(*file, target));
    return target;
  }
  const std::string below = path.empty() ? "" : absl::StrCat(path, "/");
  bool found = false;
  for (const v1::DataSetFile& file : manifest_.manifest().files()) {
    if (!file.path().starts_with(below)) continue;
    found = true;
    if (takes && !takes(NameOf(file.path()))) continue;
    RETURN_IF_ERROR(FetchFile(file, JoinPath(target, file.path().substr(below.size()))));
  }
  if (found) return target;
  return absl::NotFoundError(
      absl::StrCat("data set ", ShownName(info().id()), ": has no ", ShownName(path)));
}

}  // namespace stagecoach
