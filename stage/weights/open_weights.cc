#include "stage/weights/open_weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "checkpoint/names.h"
#include "checkpoint/other_weights.h"

namespace stagecoach {
namespace {

constexpr char kHowToConvert[] =
    "want a safetensors file, or a folder with a model.safetensors as of exported weights, or with "
    "a model.safetensors.index.json and its shards; docs/formats.md says how PyTorch writes one";

absl::Status Refusal(const std::string& path, const absl::Status& status) {
  absl::string_view why = status.message();
  absl::ConsumePrefix(&why, absl::StrCat(path, ": "));
  const std::string text = absl::StrCat(FromText(path), ": ", why, "; ", kHowToConvert);
  // Bytes that are none will be none the next time as well.
  if (absl::IsDataLoss(status)) return absl::InvalidArgumentError(text);
  return absl::Status(status.code(), text);
}

// An error that no retry changes.
absl::Status Misuse(const std::string& from, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(FromText(from), ": ", why));
}

constexpr char kCheckpoint[] =
    "is a checkpoint's, and initialize begins with weights alone: write them with `stagecoach "
    "export JOB` and name that folder; to go on with the optimizer's state set resume.job instead";

// Whether the folder has the file. An unknown answer is an error: a disk that does not answer now may
// do so the next time.
absl::StatusOr<bool> Holds(ReadableFiles& files, const std::string& folder, const char* file) {
  const absl::Status found = files.Look(JoinPath(folder, file));
  if (found.ok() || absl::IsNotFound(found)) return found.ok();
  return Refusal(folder, found);
}

absl::StatusOr<OpenedWeights> OpenFile(ReadableFiles& files, const std::string& path) {
  absl::StatusOr<WeightShards> shards = WeightShards::OpenFile(files, path);
  if (!shards.ok()) return Refusal(path, shards.status());
  return OpenedWeights{path, *std::move(shards)};
}

absl::StatusOr<OpenedWeights> OpenIndex(ReadableFiles& files, const std::string& from,
                                        const std::string& index) {
  absl::StatusOr<WeightShards> shards = WeightShards::OpenIndex(files, index);
  if (shards.ok()) return OpenedWeights{from, *std::move(shards)};
  const std::string why(shards.status().message());
  if (absl::IsDataLoss(shards.status())) return Misuse(from, why);
  return Annotate(shards.status(), FromText(from));
}

// The folder of a checkpoint, or a file in it.
bool NamesACheckpoint(const std::string& from) {
  return ParseStepFolder(NameOf(from)).has_value() ||
         ParseStepFolder(NameOf(FolderOf(from))).has_value();
}

// A folder of exported weights is its file, one of another program often an index with shards.
absl::StatusOr<OpenedWeights> OpenAny(ReadableFiles& files, const std::string& from) {
  if (from.ends_with(".safetensors.index.json")) return OpenIndex(files, from, from);
  ASSIGN_OR_RETURN(const bool whole, Holds(files, from, kExportWeightsFile));
  if (whole) return OpenFile(files, JoinPath(from, kExportWeightsFile));
  ASSIGN_OR_RETURN(const bool sharded, Holds(files, from, kWeightIndexFile));
  if (sharded) return OpenIndex(files, from, JoinPath(from, kWeightIndexFile));
  for (const char* file : {kManifestFile, kLatestFile}) {
    ASSIGN_OR_RETURN(const bool checkpoint, Holds(files, from, file));
    if (checkpoint) return Misuse(from, kCheckpoint);
  }
  const std::string other = OtherWeightsIn(files, from);
  if (!other.empty()) return Misuse(from, other);
  return OpenFile(files, from);
}

}  // namespace

std::string FromText(const std::string& path) {
  return absl::StrCat("initialize.from = \"", ShownName(path), "\"");
}

absl::StatusOr<OpenedWeights> OpenWeights(ReadableFiles& files, const std::string& from) {
  absl::StatusOr<OpenedWeights> opened = OpenAny(files, from);
  // No job may read a server's own checkpoints: its user means something else.
  if (absl::IsPermissionDenied(opened.status()) && NamesACheckpoint(from)) {
    return Misuse(from, kCheckpoint);
  }
  return opened;
}

}  // namespace stagecoach
