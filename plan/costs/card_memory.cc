#include "plan/costs/card_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "network/passes/head_chunks.h"
#include "plan/costs/saturate.h"
#include "plan/job/job_spec.h"

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

// Of one call: the score matrices of its largest slice, where the kernels may take it.
int64_t WorkspaceOf(const AttentionKernels& kernels, const AttentionCall& call, Precision precision,
                    int64_t sequences) {
  if (!WhyNot(kernels, call, precision).empty()) return 0;
  const AttentionSlice slice =
      LargestAttentionSlice(sequences, call.context, call.heads, kernels.score_bytes);
  const int64_t bytes = SaturatingMultiply(ScoreBytes(call.context), slice.sequences * slice.heads);
  return bytes > kCardWorkspaceBytes ? bytes : 0;
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

std::string WhyNot(const AttentionKernels& kernels, const AttentionCall& attention,
                   Precision precision) {
  const int64_t context = attention.context;
  const int64_t head_width = attention.width / attention.heads;
  const std::vector<Precision>& precisions = kernels.precisions;
  if (std::find(precisions.begin(), precisions.end(), precision) == precisions.end()) {
    return absl::StrCat("the precision is ", PrecisionName(precision));
  }
  if (attention.dropout != 0.0) return "it has dropout";
  if (attention.key_heads != 0) return "heads share key heads";
  if (attention.keys) return "samples have lengths or documents";
  if (attention.full) return "it has no causal mask";
  if (context <= 0 || context % kernels.tile != 0) {
    return absl::StrCat("the context, ", context, ", is no multiple of ", kernels.tile);
  }
  if (head_width > kernels.widest_head || head_width % kernels.head_multiple != 0) {
    return absl::StrCat("heads are ", head_width, " wide: over ", kernels.widest_head,
                        " or no multiple of ", kernels.head_multiple);
  }
  return "";
}

std::string AttentionOnCard(const AttentionKernels& kernels, const Network& network) {
  bool found = false;
  for (const NetworkLayer& layer : network.layers) {
    for (const AttentionCall& call : AttentionCallsOf(*layer.lists)) {
      found = true;
      const std::string why = WhyNot(kernels, call, network.precision);
      if (!why.empty()) return absl::StrCat("by own, slower kernels, as ", why);
    }
  }
  return found ? absl::StrCat("through ", kernels.name, ", where the stage has it") : "";
}

std::string HeadOnCard(const Network& network) {
  if (!HeadGoesByChunks(network)) return "";
  return absl::StrCat("with the loss by ", HeadChunkRows(network, kCardHeadChunks),
                      " rows at a time");
}

int64_t AttentionWorkspaceBytes(const AttentionKernels& kernels, const Network& network, int first,
                                int last, int64_t batch_size, int64_t micro_batches) {
  int64_t most = 0;
  // Of two sizes of micro-batches the smaller one may fill its slices better.
  for (const int64_t i : {int64_t{0}, micro_batches - 1}) {
    const int64_t sequences = MicroBatchSize(batch_size, micro_batches, i);
    for (int layer = first; layer < last; ++layer) {
      for (const AttentionCall& call : AttentionCallsOf(*network.layers[layer].lists)) {
        most = std::max(most, WorkspaceOf(kernels, call, network.precision, sequences));
      }
    }
  }
  return most;
}

}  // namespace stagecoach
