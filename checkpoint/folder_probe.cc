#include "checkpoint/folder_probe.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/names.h"

namespace stagecoach {
namespace {

constexpr int64_t kLargestBytes = 100;  // of what is read here

std::string ProbePath(const std::string& folder) { return JoinPath(folder, "probe"); }

std::string AnswerPath(const std::string& folder, int stage) {
  return JoinPath(folder, absl::StrCat("answer-", stage));
}

std::string AnswerTo(const std::string& secret, int stage) {
  return absl::StrCat(secret, " ", stage);
}

// Not synced: it is to be seen, not to last.
absl::Status WriteProbe(FileSystem& file_system, const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system.Create(path));
  RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  return file->Close();
}

absl::StatusOr<std::string> ReadText(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, file_system.Open(path));
  if (file->size() < 1 || file->size() > kLargestBytes) {
    return absl::DataLossError(
        absl::StrCat(path, ": ", file->size(), " bytes, expected 1 to ", kLargestBytes));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

absl::StatusOr<FolderProbe> WriteFolderProbe(FileSystem& file_system, const std::string& folder) {
  FolderProbe probe{folder, file_system.Nonce()};
  RETURN_IF_ERROR(WriteProbe(file_system, ProbePath(folder), probe.secret));
  return probe;
}

absl::Status AnswerFolderProbe(FileSystem& file_system, const std::string& folder, int stage) {
  ASSIGN_OR_RETURN(const std::string secret, ReadText(file_system, ProbePath(folder)));
  const std::string path = AnswerPath(folder, stage);
  RETURN_IF_ERROR(file_system.RemoveAll(path));  // of the same command, whose answer got lost
  return WriteProbe(file_system, path, AnswerTo(secret, stage));
}

absl::Status CheckFolderAnswer(FileSystem& file_system, const FolderProbe& probe, int stage) {
  const std::string path = AnswerPath(probe.folder, stage);
  ASSIGN_OR_RETURN(const std::string answer, ReadText(file_system, path));
  if (answer == AnswerTo(probe.secret, stage)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": not what the coordinator asked for"));
}

}  // namespace stagecoach
