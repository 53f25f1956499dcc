// LayerBuilder: what the kinds of network/layers are written with: the calls of a layer, and its
// parameters with their names and initial values.
// Errors: INVALID_ARGUMENT with the field's path in the job, its value and the remedy.
#ifndef STAGECOACH_NETWORK_LAYER_BUILDER_H_
#define STAGECOACH_NETWORK_LAYER_BUILDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "network/layer.h"
#include "network/layer_kinds.h"
#include "network/parameter.h"

namespace stagecoach {

inline constexpr double kInitStddev = 0.02;

// Where a layer stands.
struct LayerPlace {
  std::string path;    // in the job, for errors: "model.sequence.layers[3]"
  std::string prefix;  // of parameter names: "", "mlp.", "residual.linear2."
  int depth = 0;       // residuals around it
};

struct BuiltLayer {
  std::vector<ParameterSpec> parameters;
  LayerGraph graph;
};

class LayerBuilder {
 public:
  // branch_stddev: of the projections back into the residual stream, which start smaller, as GPT-2's do.
  LayerBuilder(int layer_index, double branch_stddev)
      : layer_index_(layer_index), branch_stddev_(branch_stddev) {}

  LayerWriter& writer() { return writer_; }
  int64_t WidthOf(ValueId id) const { return writer_.type(id).shape.back(); }
  double BranchStddev(const LayerPlace& place) const {
    return place.depth > 0 ? branch_stddev_ : kInitStddev;
  }

  // Products read a weight in the type that the job computes in, statistics as it is stored.
  ValueId Weight(const LayerPlace& place, const char* name, Shape shape, double stddev);
  ValueId Bias(const LayerPlace& place, const char* name, Shape shape);  // zeros
  ValueId Float32(const LayerPlace& place, const char* name, Shape shape, ParameterSpec::Init init);

  absl::StatusOr<BuiltLayer> Finish(ValueId output);
  size_t parameters() const { return parameters_.size(); }
  absl::Status CheckArrays(const LayerPlace& place) const;  // none too large

 private:
  ValueId Add(const LayerPlace& place, const char* name, Shape shape, ParameterSpec::Init init,
              double stddev, Element element);

  const int layer_index_;
  const double branch_stddev_;
  LayerWriter writer_;
  std::vector<ParameterSpec> parameters_;
};

// Writes a layer of any kind; what comes out of it.
absl::StatusOr<ValueId> BuildLayer(const LayerSpec& spec, ValueId x, const LayerPlace& place,
                                   LayerBuilder& builder);

// The kinds, one file each.
absl::StatusOr<ValueId> BuildEmbedding(const EmbeddingSpec& spec, ValueId ids, int64_t vocabulary,
                                       int64_t width, const LayerPlace& place,
                                       LayerBuilder& builder);
absl::StatusOr<ValueId> BuildLayerNorm(ValueId x, const LayerPlace& place, LayerBuilder& builder);
absl::StatusOr<ValueId> BuildAttention(const AttentionSpec& spec, ValueId x,
                                       const LayerPlace& place, LayerBuilder& builder);
absl::StatusOr<ValueId> BuildMlp(const MlpSpec& spec, ValueId x, const LayerPlace& place,
                                 LayerBuilder& builder);
absl::StatusOr<ValueId> BuildLinear(const LinearSpec& spec, ValueId x, const LayerPlace& place,
                                    LayerBuilder& builder);
absl::StatusOr<ValueId> BuildGelu(ValueId x, LayerBuilder& builder);
absl::StatusOr<ValueId> BuildDropout(const DropoutSpec& spec, ValueId x, const LayerPlace& place,
                                     LayerBuilder& builder);
absl::StatusOr<ValueId> BuildResidual(const ResidualSpec& spec, ValueId x, const LayerPlace& place,
                                      LayerBuilder& builder);

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYER_BUILDER_H_
