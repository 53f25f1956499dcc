#include "stage/backends/cuda/cudnn/attention_choice.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "stage/backends/cuda/cudnn/attention_rules.h"

namespace stagecoach::cudnn {
namespace {

// 9.10.0 and 9.10.1 have wrong results and are refused by cudnn-frontend; what came before is
// missing fixes of backward passes on Hopper and is not worth a test of its own.
constexpr int kLeastVersion = 91002;
// The first whose backward pass is repeatable on the data-centre cards that came after Hopper.
constexpr int kLeastVersionFor10 = 91801;
// Parts of cuDNN's names of errors that are the machine's: no libnvrtc, a file of cuDNN missing or
// of another version, an old driver, memory, a broken card.
constexpr const char* kOfTheMachine[] = {"PREREQUISITE_MISSING", "SUBLIBRARY",
                                         "INCOMPATIBLE",         "INTERNAL_ERROR",
                                         "EXECUTION_FAILED",     "NOT_INITIALIZED"};

}  // namespace

std::string VersionText(int version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

std::string WhyNotOnThisCard(const CudnnOffer& offer) {
  if (offer.version < kLeastVersion) {
    return absl::StrCat("cuDNN ", VersionText(offer.version), " is older than ",
                        VersionText(kLeastVersion));
  }
  switch (offer.compute_capability / 10) {
    case 8:
    case 9:
      return "";
    case 10:
      if (offer.version >= kLeastVersionFor10) return "";
      return absl::StrCat("cuDNN ", VersionText(offer.version), " is older than ",
                          VersionText(kLeastVersionFor10),
                          ", the first with a repeatable backward pass on this card");
    default:
      return absl::StrCat("cuDNN promises no repeatable backward pass for compute capability ",
                          offer.compute_capability / 10, ".", offer.compute_capability % 10);
  }
}

std::string WhyOwnKernels(const AttentionShape& shape, DType dtype, const CudnnOffer& offer) {
  CHECK_GT(shape.heads, 0) << "attention";
  const int64_t head_width = shape.width / shape.heads;
  if (dtype != DType::kBF16) return absl::StrCat("the tensors are ", DTypeName(dtype));
  if (shape.dropout > 0.0) return "there is dropout";
  if (shape.keys() != shape.heads) return "heads share key heads";
  if (shape.full) return "there is no causal mask";
  if (std::string why = WhyNotOnThisCard(offer); !why.empty()) return why;
  if (shape.sequences == 0) return "there are no sequences";
  if (shape.context == 0 || shape.context % kTile != 0) {
    return absl::StrCat("the context, ", shape.context, ", is no multiple of ", kTile);
  }
  if (head_width > kWidestHead || head_width % kHeadMultiple != 0) {
    return absl::StrCat("heads are ", head_width, " wide: over ", kWidestHead,
                        " or no multiple of ", kHeadMultiple);
  }
  return "";
}

// cuDNN says a status and, behind it, the condition in its source that led there, which may name other
// statuses: "CUDNN_STATUS_NOT_SUPPORTED; Reason: (CUDNN_STATUS_NOT_INITIALIZED == status) || ...".
bool RefusesTheGraph(const std::string& message) {
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    const absl::string_view status = line.substr(0, line.find("Reason:"));
    if (std::any_of(std::begin(kOfTheMachine), std::end(kOfTheMachine),
                    [&](const char* part) { return absl::StrContains(status, part); })) {
      return false;
    }
  }
  return true;
}

bool LacksMemory(const std::string& message) {
  return absl::StrContains(message, "ALLOCATION_FAILED");
}

}  // namespace stagecoach::cudnn
