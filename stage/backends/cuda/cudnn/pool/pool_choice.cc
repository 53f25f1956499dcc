#include "stage/backends/cuda/cudnn/pool/pool_choice.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace stagecoach::cudnn {
namespace {

// The same as convolutions', as nothing older is tried.
constexpr int kLeastForPools = 91002;
constexpr int kLeastCapabilityForPools = 80;
// Libraries have kept offsets in 32 bits; where cuDNN still does is not known.
constexpr int64_t kMostPoolElements = std::numeric_limits<int32_t>::max();
// A grid of blocks has no more in its second and third extents, and plans are made for more.
constexpr int64_t kMostSamples = 65535;

}  // namespace

std::string WhyNoPools(const CudnnOffer& offer) {
  if (offer.version < kLeastForPools) {
    return absl::StrCat("cuDNN ", VersionText(offer.version), " is older than ",
                        VersionText(kLeastForPools));
  }
  if (offer.compute_capability < kLeastCapabilityForPools) {
    return absl::StrCat("the card's compute capability is ", offer.compute_capability / 10, ".",
                        offer.compute_capability % 10, ", 8.0 is needed");
  }
  return "";
}

std::string WhyOwnKernels(const PoolProblem& p, const CudnnOffer& offer) {
  if (std::string why = WhyNoPools(offer); !why.empty()) return why;
  if (p.samples == 0) return "there are no samples";
  if (p.samples > kMostSamples) {
    return absl::StrCat("there are ", p.samples, " samples, over ", kMostSamples);
  }
  const PoolLayouts layouts = LayoutsOf(p);
  if (layouts.image.elements() > kMostPoolElements) {
    return absl::StrCat("the image has ", layouts.image.elements(), " elements");
  }
  if (layouts.places.elements() > kMostPoolElements) {  // padding may make them more
    return absl::StrCat("the result has ", layouts.places.elements(), " elements");
  }
  if (p.pass == PoolPass::kGradient && !Tiles(p)) {
    return "windows do not tile the image, and the order of a gradient's sums is promised";
  }
  return "";
}

}  // namespace stagecoach::cudnn
