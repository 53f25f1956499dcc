#include "stage/backends/cuda/cudnn/convolution/convolution_choice.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace stagecoach::cudnn {
namespace {

// The same as attention's, as nothing older is tried.
constexpr int kLeastForConvolutions = 91002;
// What the programs' own kernels are compiled for.
constexpr int kLeastCapability = 80;
// Libraries have kept offsets in 32 bits; where cuDNN still does is not known.
constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

// Empty, or why: "the image has 4294967296 elements".
std::string TooMany(const char* what, const TensorLayout& layout) {
  const int64_t elements = ElementsOf(layout);
  if (elements <= kMostElements) return "";
  return absl::StrCat("the ", what, " has ", elements, " elements");
}

// Rows or columns that the window covers.
int64_t Reach(int64_t window, int64_t dilation) { return (window - 1) * dilation + 1; }

}  // namespace

std::string WhyNoConvolutions(const CudnnOffer& offer) {
  if (offer.version < kLeastForConvolutions) {
    return absl::StrCat("cuDNN ", VersionText(offer.version), " is older than ",
                        VersionText(kLeastForConvolutions));
  }
  if (offer.compute_capability < kLeastCapability) {
    return absl::StrCat("the card's compute capability is ", offer.compute_capability / 10, ".",
                        offer.compute_capability % 10, ", 8.0 is needed");
  }
  return "";
}

std::string WhyOwnKernels(const ConvolutionProblem& p, const CudnnOffer& offer,
                          int64_t workspace_bytes) {
  if (std::string why = WhyNoConvolutions(offer); !why.empty()) return why;
  if (p.samples == 0) return "there are no samples";
  // A place that sees nothing of the image: no network needs it, and no library is tried with it.
  if (p.padding_height >= Reach(p.window_height, p.dilation_height) ||
      p.padding_width >= Reach(p.window_width, p.dilation_width)) {
    return absl::StrCat("the padding, ", p.padding_height, "x", p.padding_width,
                        ", is as wide as the window");
  }
  const ConvolutionLayouts layouts = LayoutsOf(p);
  if (std::string why = TooMany("image", layouts.image); !why.empty()) return why;
  if (std::string why = TooMany("result", layouts.places); !why.empty()) return why;
  if (std::string why = TooMany("weight", layouts.weight); !why.empty()) return why;
  if (CutWorkspace(p, workspace_bytes).samples == 0) {
    return absl::StrCat("it needs ", LeastWorkspace(p), " bytes of workspace, there are ",
                        workspace_bytes);
  }
  return "";
}

}  // namespace stagecoach::cudnn
