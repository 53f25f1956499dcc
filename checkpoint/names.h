// Names: checks every name from outside before it becomes part of a path.
// Errors: INVALID_ARGUMENT with the rule. Parsers of our own folder names answer nothing unless
//         the name is exactly what the matching Format function writes.
#ifndef STAGECOACH_CHECKPOINT_NAMES_H_
#define STAGECOACH_CHECKPOINT_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stagecoach {

inline constexpr char kManifestFile[] = "MANIFEST.json";
inline constexpr char kLatestFile[] = "LATEST";
// An export's files. The second is the job spec. It is not named config.json: other programs take
// such a file for theirs, and then begin with random weights.
inline constexpr char kExportWeightsFile[] = "model.safetensors";
inline constexpr char kExportSpecFile[] = "stagecoach.json";
// Facts of the data set; only if it has some.
inline constexpr char kExportFactsFile[] = "data.json";
inline constexpr uint64_t kMaxCheckpointStep = 999'999'999'999;  // 12 digits

struct TemporaryName {
  uint64_t term = 0;
  uint64_t step = 0;
};

absl::Status CheckJobName(const std::string& name);  // base/job_name.h
absl::Status CheckShardFile(
    const std::string& name);  // [A-Za-z0-9._-]{1,255}, no "..", not the manifest

std::string FormatStepFolder(uint64_t step);  // "step-000000000050"
std::optional<uint64_t> ParseStepFolder(const std::string& name);
std::string FormatTemporaryFolder(const TemporaryName& name, const std::string& nonce);
std::optional<TemporaryName> ParseTemporaryFolder(const std::string& name);

// Names of the coordinator's store stand where a path is expected: "store:/checkpoints/JOB/FOLDER".
// They mean the same at the coordinator, which has the files, and at a stage, which asks it for
// them (services/common/store).
inline constexpr char kStorePrefix[] = "store:/";
inline bool IsStoreName(std::string_view path) { return path.starts_with(kStorePrefix); }

std::string JoinPath(const std::string& folder, const std::string& name);
std::string FolderOf(const std::string& path);  // without the last component
std::string NameOf(const std::string& path);    // the last component

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_NAMES_H_
