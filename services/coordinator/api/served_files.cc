#include "services/coordinator/api/served_files.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "base/errors/status.h"
#include "checkpoint/names.h"
#include "services/records/record_names.h"

namespace stagecoach {
namespace {

constexpr int64_t kTailBytes = 1 << 16;

// Bytes up to the last whole line. A line may be on its way to the file, and one that a full disk
// cut short is cut off later: what a client was promised would then be missing.
absl::StatusOr<int64_t> WholeLines(ReadableFile& file) {
  std::string piece;
  for (int64_t end = file.size(); end > 0; end -= std::ssize(piece)) {
    piece.resize(static_cast<size_t>(std::min(kTailBytes, end)));
    RETURN_IF_ERROR(file.Read(end - std::ssize(piece), std::as_writable_bytes(std::span(piece))));
    const size_t line_end = piece.rfind('\n');
    if (line_end == piece.npos) continue;
    return end - std::ssize(piece) + static_cast<int64_t>(line_end) + 1;
  }
  return 0;
}

v1::ExportedFile Listed(const std::string& name, int64_t bytes) {
  v1::ExportedFile listed;
  listed.set_name(name);
  listed.set_bytes(bytes);
  return listed;
}

}  // namespace

absl::StatusOr<std::vector<v1::ExportedFile>> ExportFilesIn(FileSystem& files,
                                                            const std::string& folder) {
  std::vector<v1::ExportedFile> found;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  for (const std::string& name : names) {
    if (name != kExportWeightsFile && name != kExportSpecFile && name != kExportFactsFile) continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(JoinPath(folder, name)));
    found.push_back(Listed(name, file->size()));
  }
  return found;
}

absl::StatusOr<std::vector<v1::ExportedFile>> RecordFilesIn(FileSystem& files,
                                                            const std::string& folder) {
  std::vector<v1::ExportedFile> found;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (absl::IsNotFound(names.status())) return found;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const bool lines = name == kMetricsRecords;
    // Of a machine with an odd name the store cannot name the file.
    if (!lines && (!name.starts_with(kEventsPrefix) || !CheckShardFile(name).ok())) continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.Open(JoinPath(folder, name)));
    int64_t bytes = file->size();
    if (lines) {
      ASSIGN_OR_RETURN(bytes, WholeLines(*file));
    }
    found.push_back(Listed(name, bytes));
  }
  return found;
}

}  // namespace stagecoach
