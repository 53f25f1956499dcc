#include "services/cli/client/fetch_export.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "services/common/store/store_names.h"

namespace stagecoach {
namespace {

constexpr int64_t kPieceBytes = 8 << 20;  // between two looks at the progress

// Answer: ExportWeightsResponse, GetRecordFilesResponse.
template <typename Answer>
absl::Status FetchFiles(StoreClient& store, const Answer& answer, FileSystem& files,
                        const std::string& folder, const OnFetched& on_fetched) {
  int64_t total = 0, done = 0;
  for (const v1::ExportedFile& file : answer.files()) {
    if (!CheckShardFile(file.name()).ok() || file.bytes() < 0) {
      return absl::DataLossError(absl::StrCat("the coordinator names a file ",
                                              ShownName(file.name()), " of ", file.bytes(),
                                              " bytes, which cannot be one"));
    }
    total += file.bytes();
  }
  std::vector<std::byte> piece;
  for (const v1::ExportedFile& file : answer.files()) {
    const StoredObject object{absl::StrCat(answer.store_folder(), "/", file.name()),
                              answer.grant()};
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> target,
                     files.Create(JoinPath(folder, file.name())));
    for (int64_t at = 0; at < file.bytes(); at += static_cast<int64_t>(piece.size())) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, file.bytes() - at)));
      RETURN_IF_ERROR(Annotate(store.Read(object, at, piece), "coordinator"));
      RETURN_IF_ERROR(target->Append(piece));
      done += static_cast<int64_t>(piece.size());
      on_fetched(done, total);
    }
    RETURN_IF_ERROR(target->Sync());
    RETURN_IF_ERROR(target->Close());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FetchExport(StoreClient& store, const v1::ExportWeightsResponse& exported,
                         FileSystem& files, const std::string& folder,
                         const OnFetched& on_fetched) {
  if (exported.files().empty()) {
    return absl::UnimplementedError(
        absl::StrCat("this coordinator is older and serves no files; copy ", exported.folder(),
                     " from its machine"));
  }
  return FetchFiles(store, exported, files, folder, on_fetched);
}

absl::Status FetchRecords(StoreClient& store, const v1::GetRecordFilesResponse& records,
                          FileSystem& files, const std::string& folder,
                          const OnFetched& on_fetched) {
  return FetchFiles(store, records, files, folder, on_fetched);
}

}  // namespace stagecoach
