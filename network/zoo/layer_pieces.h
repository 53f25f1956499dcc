// LayerPieces: writes one layer of a network on images, piece by piece. A piece's parameters have
// its name before theirs: "first.convolution.weight".
// Errors: INVALID_ARGUMENT with the path of the network in the job.
#ifndef STAGECOACH_NETWORK_ZOO_LAYER_PIECES_H_
#define STAGECOACH_NETWORK_ZOO_LAYER_PIECES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/layer_builder.h"
#include "network/layer_spec.h"
#include "network/layers/convolution.h"

namespace stagecoach {

class LayerPieces {
 public:
  // `norm`: behind every convolution; batch_norm or group_norm.
  LayerPieces(std::string path, const LayerSpec& norm, LayerBuilder& builder)
      : path_(std::move(path)), norm_(norm), builder_(builder) {}

  absl::StatusOr<ValueId> Add(const LayerSpec& piece, const std::string& name, ValueId x);
  // Adds it without bias, then the norm: "<name>convolution", "<name>batch_norm".
  absl::StatusOr<ValueId> AddConvolution(ConvolutionSpec convolution, const std::string& name,
                                         ValueId x);
  absl::StatusOr<ValueId> AddNorm(const std::string& name, ValueId x) {
    return Add(norm_, name + norm_.kind, x);
  }
  // Lets the norm that was added last begin with a scale of 0, so that its output is 0 at first.
  void BeginLastNormAtZero();
  // Leaves x out for some samples (operations/pointwise/drop_path.h). At rate 0 it adds no
  // operation, but takes its stream.
  ValueId DropPath(double rate, ValueId x);
  ValueId Relu(ValueId x) { return writer().Emit("relu", {}, {x})[0]; }
  ValueId Sum(ValueId x, ValueId y) { return writer().Emit("add", {}, {x, y})[0]; }
  ValueId Concatenate(const std::vector<ValueId>& parts) {
    return writer().Emit("concatenate", {}, parts)[0];
  }
  const ValueType& type(ValueId id) const { return builder_.writer().type(id); }
  int64_t channels(ValueId id) const { return builder_.WidthOf(id); }
  LayerWriter& writer() { return builder_.writer(); }

 private:
  const std::string path_;
  const LayerSpec norm_;
  LayerBuilder& builder_;
};

// A square kernel that keeps the extents but for its stride.
inline ConvolutionSpec Square(int64_t out, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
  return {.out = out,
          .kernel = {kernel},
          .stride = {stride},
          .padding = {kernel / 2},
          .groups = groups};
}

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_ZOO_LAYER_PIECES_H_
