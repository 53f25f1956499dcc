#include "plan/cost_model.h"

#include <algorithm>

#include "plan/elementwise_flops.h"
#include "plan/layer_kinds.h"
#include "plan/saturate.h"

namespace stagecoach {
namespace {

constexpr int64_t kFloatBytes = 4;
constexpr int64_t kIdBytes = 4;

struct Counts {
  int64_t products = 0;  // forward FLOPs of matrix products
  int64_t forward = 0;
  int64_t backward = 0;
  int64_t stash = 0;
  int64_t scratch = 0;
  int64_t alone = 0;  // LayerCost::forward_bytes
};

void AddElementwise(const ElementwiseFlops& flops, int64_t elements, Counts* counts) {
  counts->forward += flops.forward * elements;
  counts->backward += flops.backward * elements;
}

// `backward_products`: how many products backward has for each of forward.
void AddProducts(int64_t multiply_adds, double backward_products, Counts* counts) {
  const int64_t flops = 2 * multiply_adds;
  counts->products += flops;
  counts->forward += flops;
  counts->backward += static_cast<int64_t>(backward_products * static_cast<double>(flops));
}

// Counts of one sequence: n rows.
class LayerCounter {
 public:
  LayerCounter(int64_t context, int64_t width_in, DType dtype)
      : n_(context), width_(width_in), dtype_(dtype) {}

  Counts operator()(const EmbeddingSpec& spec) const {
    Counts counts{.stash = n_ * kIdBytes, .alone = Elements(width_)};
    AddElementwise(kEmbeddingFlops, n_ * width_, &counts);
    if (spec.dropout > 0) {
      AddElementwise(kDropoutFlops, n_ * width_, &counts);
      counts.scratch = Elements(width_);
    }
    return counts;
  }
  Counts operator()(const LayerNormSpec&) const {
    // x or y, mean, rstd.
    Counts counts{.stash = Elements(width_) + Floats(2),
                  .scratch = Elements(width_),
                  .alone = Elements(width_) + Floats(2)};
    AddElementwise(kLayerNormFlops, n_ * width_, &counts);
    return counts;
  }
  Counts operator()(const AttentionSpec& spec) const {
    // x, qkv, the output before proj, log_sum_exp; in backward the gradients of the middle two.
    Counts counts{.stash = Elements(5 * width_) + Floats(spec.heads),
                  .scratch = Elements(4 * width_),
                  .alone = Elements(4 * width_) + Floats(spec.heads)};
    AddProducts(n_ * 4 * width_ * width_, 2, &counts);
    const int64_t scores = n_ * (n_ + 1) / 2;        // of one head: causal
    AddProducts(2 * scores * width_, 2.5, &counts);  // backward computes the scores once more
    AddElementwise(kSoftmaxFlops, spec.heads * scores, &counts);
    if (spec.dropout > 0) AddElementwise(kDropoutFlops, spec.heads * scores, &counts);
    return counts;
  }
  Counts operator()(const MlpSpec& spec) const {
    // The gradient in the middle takes the room of the activation, which is done first.
    Counts counts{.stash = Elements(width_ + 2 * spec.hidden),
                  .alone = Elements(spec.hidden + std::max(spec.hidden, width_))};
    AddProducts(n_ * 2 * width_ * spec.hidden, 2, &counts);
    AddElementwise(kGeluFlops, n_ * spec.hidden, &counts);
    return counts;
  }
  Counts operator()(const LinearSpec& spec) const {
    Counts counts{.stash = Elements(width_), .alone = Elements(spec.out)};  // x makes room for dx
    AddProducts(n_ * width_ * spec.out, 2, &counts);
    return counts;
  }
  Counts operator()(const GeluSpec&) const {
    Counts counts{
        .stash = Elements(width_), .scratch = Elements(width_), .alone = Elements(width_)};
    AddElementwise(kGeluFlops, n_ * width_, &counts);
    return counts;
  }
  Counts operator()(const DropoutSpec& spec) const {
    Counts counts;
    if (spec.rate > 0) {
      AddElementwise(kDropoutFlops, n_ * width_, &counts);
      counts.scratch = counts.alone = Elements(width_);
    }
    return counts;
  }
  Counts operator()(const ResidualSpec& spec) const {
    Counts counts;
    int64_t width = width_;
    // Backward comes to the last child first, with all stashes there. An earlier child holds its
    // own output gradient beside the residual's, but the stashes of later ones are gone by then.
    int64_t peak = 0;  // bytes beyond the residual's output gradient, stashes so far included
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const Counts inner = std::visit(LayerCounter(n_, width, dtype_), spec.layers[i].kind);
      const bool last = i + 1 == spec.layers.size();
      counts.alone = std::max(counts.alone, inner.alone + (i == 0 ? 0 : Elements(width)));
      width = LayerWidthOut(spec.layers[i], width);
      counts.products += inner.products;
      counts.forward += inner.forward;
      counts.backward += inner.backward;
      counts.stash += inner.stash;
      peak = std::max(peak, counts.stash + inner.scratch + (last ? 0 : Elements(width)));
    }
    counts.scratch = peak - counts.stash;
    AddElementwise(kAddFlops, n_ * width_, &counts);
    return counts;
  }

 private:
  // Activations of n rows, and what is float32 beside them.
  int64_t Elements(int64_t per_row) const { return n_ * per_row * DTypeSize(dtype_); }
  int64_t Floats(int64_t per_row) const { return n_ * per_row * kFloatBytes; }

  const int64_t n_;
  const int64_t width_;
  const DType dtype_;
};

Counts CountsOf(const ExpandedModel& model, const ExpandedLayer& layer) {
  const int64_t width = layer.index == 0 ? layer.width_out : layer.width_in;
  return std::visit(LayerCounter(model.context, width, ComputeDType(model.precision)),
                    layer.spec.kind);
}

}  // namespace

std::vector<LayerCost> ModelCosts(const ExpandedModel& model) {
  const int64_t element = DTypeSize(ComputeDType(model.precision));
  std::vector<LayerCost> costs;
  costs.reserve(model.layers.size());
  for (const ExpandedLayer& layer : model.layers) {
    const Counts counts = CountsOf(model, layer);
    LayerCost cost{.forward_flops = counts.forward,
                   .backward_flops = counts.backward,
                   .boundary_bytes = model.context * layer.width_out * element,
                   .stash_bytes = counts.stash,
                   .scratch_bytes = counts.scratch,
                   .forward_bytes = counts.alone};
    for (const ParameterSpec& parameter : layer.parameters) {
      cost.parameters += parameter.shape.elements();
    }
    costs.push_back(cost);
  }
  return costs;
}

double ModelFlopsPerToken(const ExpandedModel& model) {
  double products = 0;
  for (const ExpandedLayer& layer : model.layers) {
    products += static_cast<double>(CountsOf(model, layer).products);
  }
  return 3.0 * products / static_cast<double>(model.context);
}

int64_t StageMemory::total() const {
  return SaturatingAdd(SaturatingAdd(parameters, gradients), SaturatingAdd(optimizer, activations));
}

}  // namespace stagecoach
