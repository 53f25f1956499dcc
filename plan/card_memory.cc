#include "plan/card_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "plan/job_spec.h"
#include "plan/layer_kinds.h"
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
  WorkspaceFinder(const ExpandedModel& model, int64_t sequences)
      : model_(model), sequences_(sequences) {}

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
    if (!CudnnMayTake(attention, width, model_.context, model_.precision)) return 0;
    const AttentionSlice slice =
        LargestAttentionSlice(sequences_, model_.context, attention.heads, kAttentionScoreBytes);
    const int64_t bytes =
        SaturatingMultiply(ScoreBytes(model_.context), slice.sequences * slice.heads);
    return bytes > kCardWorkspaceBytes ? bytes : 0;
  }

  const ExpandedModel& model_;
  const int64_t sequences_;
};

// Why not all attention in the layer is for cuDNN; found: there is some.
std::string WhyOwnIn(const LayerSpec& layer, int64_t width, const ExpandedModel& model,
                     bool* found) {
  if (const auto* attention = std::get_if<AttentionSpec>(&layer.kind)) {
    *found = true;
    return WhyNotCudnn(*attention, width, model.context, model.precision);
  }
  if (const auto* residual = std::get_if<ResidualSpec>(&layer.kind)) {
    for (const LayerSpec& inner : residual->layers) {
      std::string why = WhyOwnIn(inner, width, model, found);
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

std::string WhyNotCudnn(const AttentionSpec& attention, int64_t width, int64_t context,
                        Precision precision) {
  const int64_t head_width = width / attention.heads;
  if (precision != Precision::kBfloat16) {
    return absl::StrCat("the precision is ", PrecisionName(precision));
  }
  if (attention.dropout != 0.0) return "it has dropout";
  if (context <= 0 || context % kAttentionTile != 0) {
    return absl::StrCat("the context, ", context, ", is no multiple of ", kAttentionTile);
  }
  if (head_width > kAttentionWidestHead || head_width % kAttentionHeadMultiple != 0) {
    return absl::StrCat("heads are ", head_width, " wide: over ", kAttentionWidestHead,
                        " or no multiple of ", kAttentionHeadMultiple);
  }
  return "";
}

bool CudnnMayTake(const AttentionSpec& attention, int64_t width, int64_t context,
                  Precision precision) {
  return WhyNotCudnn(attention, width, context, precision).empty();
}

std::string AttentionOnCard(const ExpandedModel& model) {
  bool found = false;
  for (const ExpandedLayer& layer : model.layers) {
    const std::string why = WhyOwnIn(layer.spec, layer.width_in, model, &found);
    if (!why.empty()) return absl::StrCat("by own, slower kernels, as ", why);
  }
  return found ? "through cuDNN, where the stage has it" : "";
}

int64_t AttentionWorkspaceBytes(const ExpandedModel& model, int first, int last, int64_t batch_size,
                                int64_t micro_batches) {
  int64_t most = 0;
  // Of two sizes of micro-batches the smaller one may fill its slices better.
  for (const int64_t i : {int64_t{0}, micro_batches - 1}) {
    const WorkspaceFinder finder(model, MicroBatchSize(batch_size, micro_batches, i));
    for (int layer = first; layer < last; ++layer) {
      const ExpandedLayer& expanded = model.layers[layer];
      most = std::max(most, finder.In(expanded.spec, expanded.width_in));
    }
  }
  return most;
}

}  // namespace stagecoach
