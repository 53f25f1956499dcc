#include "stage/backends/cuda/cudnn/attention/attention_choice.h"

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "stage/backends/cuda/cudnn/attention/attention_rules.h"

namespace stagecoach::cudnn {
namespace {

// 9.10.0 and 9.10.1 have wrong results and are refused by cudnn-frontend; what came before is
// missing fixes of backward passes on Hopper and is not worth a test of its own.
constexpr int kLeastVersion = 91002;
// The first whose backward pass is repeatable on the data-centre cards that came after Hopper.
constexpr int kLeastVersionFor10 = 91801;

}  // namespace

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

}  // namespace stagecoach::cudnn
