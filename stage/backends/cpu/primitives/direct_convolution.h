// DirectConvolution: oneDNN's own convolution of some images, one single-threaded primitive.
// DirectConvolutions makes and keeps them by number of images and for parts of one, all with one
// packing of the weight. By Winograd's filtering (operations/images/winograd.h) oneDNN wants
// channels in blocks of 16. Images and places are put in that order, and back, in the primitive's
// scratch.
// Units and shapes: images and places are channels-last and dense, float32. Weights are packed as
//            the primitive wants them. Pack and AddUnpacked go from and to a weight's own order
//            (operations/images/convolution.h).
// Threads:   made on the executor thread under SerialOpenMp; Execute on any compute thread at once,
//            each with its own scratch.
// Determinism: as Matmul's (stage/backends/cpu/primitives/matmul.h). With several threads oneDNN
//            would add a weight's gradient in an order that depends on their number. So callers cut
//            the images into shares by shape alone.
#ifndef STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_DIRECT_CONVOLUTION_H_
#define STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_DIRECT_CONVOLUTION_H_

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "stage/backends/cpu/primitives/convolution_rows.h"
#include "stage/backends/window_shape.h"

namespace stagecoach::cpu {

enum class ConvolutionPart { kForward, kInputGradient, kWeightGradient };
enum class ConvolutionAlgorithm { kDirect, kWinograd };

// The key of a packing.
struct ConvolutionPacking {
  ConvolutionPart part = ConvolutionPart::kForward;
  ConvolutionShape shape = {};
  bool bias = false;
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::kDirect;
  friend auto operator<=>(const ConvolutionPacking& a, const ConvolutionPacking& b) {
    return a.Fields() <=> b.Fields();
  }

 private:
  using Numbers = std::array<int64_t, sizeof(ConvolutionShape) / sizeof(int64_t)>;
  std::tuple<ConvolutionPart, Numbers, bool, ConvolutionAlgorithm> Fields() const {
    return {part, std::bit_cast<Numbers>(shape), bias, algorithm};
  }
};

class DirectConvolution {
 public:
  // packing.shape.window.samples is the number of images. bias: only for kForward. If `like` is not
  // null, it uses the weight's packing of `like`.
  DirectConvolution(const ConvolutionPacking& packing, const DirectConvolution* like);
  ~DirectConvolution();

  // Whether oneDNN has fast code for this shape here. Its general code is slower than products
  // of columns. If oneDNN lacks the algorithm, call only fast(), which is then false.
  bool fast() const;
  int64_t scratch_bytes() const;
  int64_t packed_bytes() const;
  void Pack(const float* weight, void* packed) const;
  void AddUnpacked(const void* packed, float* weight) const;  // weight += packed
  // kForward: image, weight to places. kInputGradient: places, weight to image. kWeightGradient:
  // image and places to weight, which is set. bias: null if there is none.
  void Execute(const float* image, const void* weight, const float* bias, const float* places,
               void* scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class DirectConvolutions {
 public:
  explicit DirectConvolutions(const ConvolutionPacking& packing) : packing_(packing) {}
  // All use the packing of the first one made. So callers that share packed weights first ask for
  // the same number of images.
  const DirectConvolution& Of(int64_t samples);
  const DirectConvolution& Of(const RowPart& part);  // a part of one image
  const ConvolutionPacking& packing() const { return packing_; }

 private:
  const ConvolutionPacking packing_;
  const DirectConvolution& Of(const ConvolutionShape& shape);

  const DirectConvolution* first_ = nullptr;
  std::map<ConvolutionPacking, std::unique_ptr<DirectConvolution>>
      made_;  // by the shape of the call
};

}  // namespace stagecoach::cpu

#endif  // STAGECOACH_STAGE_BACKENDS_CPU_PRIMITIVES_DIRECT_CONVOLUTION_H_
