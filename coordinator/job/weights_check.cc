#include "coordinator/job/weights_check.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/content_digest.h"

namespace stagecoach {
namespace {

std::string Where(const JobState& state) {
  return absl::StrCat("initialize.from = \"", state.job->spec.initialize.from, "\": ");
}

absl::Status DifferentFiles(const JobState& state, const StageSlot& one, const StageSlot& other,
                            const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat(Where(state), one.stage.name, " and ", other.stage.name,
                   " read different files: ", what, "; use the same file everywhere"));
}

// The headers of one stage's files are those of another's.
absl::Status CheckHeaders(const JobState& state, const StageSlot& one, const StageSlot& other) {
  const WeightsRead &a = one.loaded.weights, &b = other.loaded.weights;
  if (b.header_sha256.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(Where(state), other.stage.name,
                     " has read no weights; give all stages one version of the program"));
  }
  if (a.header_sha256 != b.header_sha256) {
    return DifferentFiles(
        state, one, other,
        absl::StrCat("headers with sha256 ", a.header_sha256, " and ", b.header_sha256));
  }
  if (a.named_sha256 != b.named_sha256) {
    return DifferentFiles(
        state, one, other,
        absl::StrCat("written with sha256 ", a.named_sha256, " and ", b.named_sha256));
  }
  return absl::OkStatus();
}

// FAILED_PRECONDITION if an earlier load, or the checkpoint that the job goes on from, names another
// digest.
absl::Status CheckSameAsBefore(const JobState& state, const WeightsManifest& found) {
  const WeightsManifest& before = state.found.weights;
  if (before.sha256.empty() || found.sha256 == before.sha256) return absl::OkStatus();
  const std::string now =
      absl::StrCat(Where(state), found.bytes, " bytes, sha256 ", found.sha256, "; ");
  if (before.bytes == 0) {  // a manifest names no bytes
    return absl::FailedPreconditionError(
        absl::StrCat(now, "the adapters of the checkpoint were trained with sha256 ", before.sha256,
                     "; set initialize as the job that wrote it had it"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(now, "the job was started with sha256 ", before.sha256,
                   "; put the original file back or submit a new job"));
}

}  // namespace

absl::StatusOr<WeightsManifest> CheckWeights(const JobState& state) {
  const StageSlot& first = state.slots.front();
  struct Reader {
    const WeightsRead::Tensor* tensor;
    const StageSlot* slot;
  };
  std::map<std::string, Reader> readers;  // by tensor
  for (const StageSlot& slot : state.slots) {
    RETURN_IF_ERROR(CheckHeaders(state, first, slot));
    for (const WeightsRead::Tensor& tensor : slot.loaded.weights.read) {
      const auto [known, is_new] = readers.try_emplace(tensor.name, Reader{&tensor, &slot});
      if (is_new || *known->second.tensor == tensor) continue;
      return DifferentFiles(state, *known->second.slot, slot,
                            absl::StrCat("tensor ", tensor.name, " with sha256 ",
                                         known->second.tensor->sha256, " and ", tensor.sha256));
    }
  }
  std::vector<TensorDigest> content;
  for (const auto& [name, reader] : readers) {
    const WeightsRead::Tensor& tensor = *reader.tensor;
    content.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.sha256});
  }
  const WeightsRead& read = first.loaded.weights;
  const bool whole = static_cast<int64_t>(content.size()) == read.tensors;
  WeightsManifest found{.bytes = read.bytes, .sha256 = ContentDigest(std::move(content))};
  if (whole && !read.named_sha256.empty() && read.named_sha256 != found.sha256) {
    const absl::Status damaged = DamagedContent(found.sha256, read.named_sha256);
    return absl::Status(damaged.code(), absl::StrCat(Where(state), damaged.message()));
  }
  RETURN_IF_ERROR(CheckSameAsBefore(state, found));
  return found;
}

}  // namespace stagecoach
