// Parts of layers: what the layer kinds of this folder are built from; not used outside of it.
// Ownership: the parameters of one expanded layer live in one block, shared by its pieces, so that
//            a residual and the layers inside it speak of the same Parameter objects.
// Threads:   executor thread only.
#ifndef STAGECOACH_STAGE_LAYERS_PARTS_H_
#define STAGECOACH_STAGE_LAYERS_PARTS_H_

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "stage/layers/layer.h"

namespace stagecoach {

using ParameterBlock = std::shared_ptr<std::vector<Parameter>>;

// Some consecutive parameters of a block; the block never grows after it is made.
class ParameterSlice {
 public:
  ParameterSlice(ParameterBlock block, size_t first, size_t count)
      : block_(std::move(block)), first_(first), count_(count) {}
  std::span<Parameter> span() const { return std::span(*block_).subspan(first_, count_); }
  Parameter& operator[](size_t i) const { return span()[i]; }
  size_t size() const { return count_; }

 private:
  ParameterBlock block_;
  size_t first_, count_;
};

// Where a piece draws its random numbers. Operations count 0, 1, 2, ... within an expanded layer,
// in the order of its pieces, over the pieces that can draw at all: embedding, attention and
// dropout. A piece takes its number whether or not its rate is 0, so turning one off leaves the
// others alone.
struct RandomSource {
  uint32_t layer = 0;
  uint32_t operation = 0;
  RandomStream At(const ForwardContext& context) const;
};

// Hands out the parameters and random operations of one expanded layer, in order, to its pieces.
class LayerBuilder {
 public:
  LayerBuilder(const ExpandedModel& model, const ExpandedLayer& layer, ParameterBlock block,
               Backend& backend);
  std::unique_ptr<Layer> Build(const LayerSpec& spec);

  // The next parameters; CHECKs that their names end with these paths.
  ParameterSlice Take(std::initializer_list<std::string_view> paths);
  RandomSource TakeRandomSource();
  ParameterSlice TakenSince(size_t first) const { return {block_, first, next_parameter_ - first}; }
  size_t next_parameter() const { return next_parameter_; }

  int64_t context() const { return context_; }
  Backend& backend() const { return backend_; }

 private:
  const int64_t context_;
  const ExpandedLayer& layer_;
  const ParameterBlock block_;
  Backend& backend_;
  size_t next_parameter_ = 0;
  uint32_t next_operation_ = 0;
};

std::unique_ptr<Layer> MakeEmbedding(const EmbeddingSpec& spec, LayerBuilder& builder);
std::unique_ptr<Layer> MakeLayerNorm(LayerBuilder& builder);
std::unique_ptr<Layer> MakeAttention(const AttentionSpec& spec, LayerBuilder& builder);
std::unique_ptr<Layer> MakeMlp(LayerBuilder& builder);
std::unique_ptr<Layer> MakeLinear(const LinearSpec& spec, LayerBuilder& builder);
std::unique_ptr<Layer> MakeGelu(LayerBuilder& builder);
std::unique_ptr<Layer> MakeDropout(const DropoutSpec& spec, LayerBuilder& builder);
std::unique_ptr<Layer> MakeResidual(const ResidualSpec& spec, LayerBuilder& builder);

// A linear map with its parameters: y = x weight^T + bias, and its derivatives.
class LinearMap {
 public:
  struct WithGelu {
    Tensor y, activation;
  };
  LinearMap(Backend& backend, Parameter& weight, Parameter* bias);  // bias null: none
  int64_t in() const { return weight_.spec.shape[1]; }
  int64_t out() const { return weight_.spec.shape[0]; }
  // residual: see LinearForwardArgs; may be empty.
  absl::StatusOr<Tensor> Forward(const Tensor& x, const Tensor& residual = {}) const;
  absl::StatusOr<WithGelu> ForwardWithGelu(const Tensor& x) const;
  // gelu_input: see LinearBackwardInputArgs; may be empty.
  absl::StatusOr<Tensor> BackwardInput(const Tensor& dy, const Tensor& gelu_input = {}) const;
  void BackwardWeight(const Tensor& dy, const Tensor& x) const;

 private:
  Backend& backend_;
  Parameter& weight_;
  Parameter* const bias_;
};

// A new activation of this back end.
absl::StatusOr<Tensor> NewActivation(Backend& backend, DType dtype, Shape shape);

// The one tensor of a tuple of one; the tuple is gone afterwards.
Tensor TheOnly(Tensors tensors);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LAYERS_PARTS_H_
