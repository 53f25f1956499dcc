#include "plan/card_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "network/layer_kinds.h"
#include "plan/job_spec.h"
#include "plan/saturate.h"

namespace stagecoach {
namespace {

// The largest divisor of `count` that is at most `limit`; 0 if limit is 0.
int64_t LargestDivisor(int64_t count, int64_t limit) {
  for (int64_t d = std::min(limit, count); d > 0; --d) {
    if (count % d == 0) return d;
  }
  return 0;
}

// Of one head.
int64_t ScoreBytes(int64_t context) {
  return SaturatingMultiply(2, SaturatingMultiply(context, context));
}

class WorkspaceFinder {
 public:
  WorkspaceFinder(const AttentionKernels& kernels, const ExpandedModel& model, int64_t sequences)
      : kernels_(kernels), model_(model), sequences_(sequences) {}

  int64_t In(const LayerSpec& layer, int64_t width) const {
    if (const auto* attention = std::get_if<AttentionSpec>(&layer.kind))
      return Of(*attention, width);
    int64_t most = 0;
    if (const auto* residual = std::get_if<ResidualSpec>(&layer.kind)) {
      for (const LayerSpec& inner : residual->layers) {
        most = std::max(most, In(inner, width));
        width = LayerWidthOut(inner, width);
      }
    }
    return most;
  }

 private:
  int64_t Of(const AttentionSpec& attention, int64_t width) const {
    if (!WhyNot(kernels_, attention, width, model_.context, model_.precision).empty()) return 0;
    const AttentionSlice slice =
        LargestAttentionSlice(sequences_, model_.context, attention.heads, kernels_.score_bytes);
    const int64_t bytes =
        SaturatingMultiply(ScoreBytes(model_.context), slice.sequences * slice.heads);
    return bytes > kCardWorkspaceBytes ? bytes : 0;
  }

  const AttentionKernels& kernels_;
  const ExpandedModel& model_;
  const int64_t sequences_;
};

// Why not all attention in the layer is for the kernels; found: there is some.
std::string WhyNotIn(const AttentionKernels& kernels, const LayerSpec& layer, int64_t width,
                     const ExpandedModel& model, bool* found) {
  if (const auto* attention = std::get_if<AttentionSpec>(&layer.kind)) {
    *found = true;
    return WhyNot(kernels, *attention, width, model.context, model.precision);
  }
  if (const auto* residual = std::get_if<ResidualSpec>(&layer.kind)) {
    for (const LayerSpec& inner : residual->layers) {
      std::string why = WhyNotIn(kernels, inner, width, model, found);
      if (!why.empty()) return why;
      width = LayerWidthOut(inner, width);
    }
  }
  return "";
}

}  // namespace

AttentionSlice LargestAttentionSlice(int64_t sequences, int64_t context, int64_t heads,
                                     int64_t bytes) {
  CHECK_GT(heads, 0) << "attention";
  const int64_t head_bytes = ScoreBytes(context);
  const int64_t most = head_bytes > 0 ? bytes / head_bytes : SaturatingMultiply(sequences, heads);
  const int64_t whole = LargestDivisor(sequences, most / heads);
  if (whole > 0) return {whole, heads};
  return {1, std::max<int64_t>(LargestDivisor(heads, most), 1)};
}

std::string WhyNot(const AttentionKernels& kernels, const AttentionSpec& attention, int64_t width,
                   int64_t context, Precision precision) {
  const int64_t head_width = width / attention.heads;
  const std::vector<Precision>& precisions = kernels.precisions;
  if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) {
    return absl::StrCat("the precision is ", PrecisionName(precision));
  }
  if (attention.dropout != 0.0) return "it has dropout";
  if (context <= 0 || context % kernels.tile != 0) {
    return absl::StrCat("the context, ", context, ", is no multiple of ", kernels.tile);
  }
  if (head_width > kernels.widest_head || head_width % kernels.head_multiple != 0) {
    return absl::StrCat("heads are ", head_width, " wide: over ", kernels.widest_head,
                        " or no multiple of ", kernels.head_multiple);
  }
  return "";
}

std::string AttentionOnCard(const AttentionKernels& kernels, const ExpandedModel& model) {
  bool found = false;
  for (const ExpandedLayer& layer : model.layers) {
    const std::string why = WhyNotIn(kernels, layer.spec, layer.width_in, model, &found);
    if (!why.empty()) return absl::StrCat("by own, slower kernels, as ", why);
  }
  return found ? absl::StrCat("through ", kernels.name, ", where the stage has it") : "";
}

int64_t AttentionWorkspaceBytes(const AttentionKernels& kernels, const ExpandedModel& model,
                                int first, int last, int64_t batch_size, int64_t micro_batches) {
  int64_t most = 0;
  // Of two sizes of micro-batches the smaller one may fill its slices better.
  for (const int64_t i : {int64_t{0}, micro_batches - 1}) {
    const WorkspaceFinder finder(kernels, model, MicroBatchSize(batch_size, micro_batches, i));
    for (int layer = first; layer < last; ++layer) {
      const ExpandedLayer& expanded = model.layers[layer];
      most = std::max(most, finder.In(expanded.spec, expanded.width_in));
    }
  }
  return most;
}

}  // namespace stagecoach
