#include "plan/costs/writing_cost.h"

#include <algorithm>
#include <cstddef>

#include "base/errors/check.h"
#include "network/lists/cost.h"
#include "network/passes/decoding.h"
#include "plan/costs/decoding_memory.h"
#include "plan/data/parallel_text.h"

namespace stagecoach {
namespace {

struct LikelySample {
  double source = 0, rows = 0;  // positions; rows of tokens, of all hypotheses
};

// A token is about four bytes, and a translation about as long as its sentence.
LikelySample SampleOf(const WriteSpec& write, const Network& network) {
  if (write.generate.has_value()) return {.rows = static_cast<double>(write.generate->tokens)};
  constexpr double kBytesOfToken = 4;
  double bytes = 0;
  for (const std::string& line : write.lines) bytes += static_cast<double>(line.size());
  const double tokens = 2 + bytes / static_cast<double>(write.lines.size()) / kBytesOfToken;
  const BeamOptions beam = TranslationOf(*write.translate, network).beam;
  return {.source = tokens,
          .rows = beam.beam * std::min(tokens, static_cast<double>(beam.most_tokens))};
}

}  // namespace

WritingCost WritingCostOf(const WriteSpec& write, const Network& network) {
  const absl::StatusOr<DecodingForm> form = DecodingOf(network, /*pool_rows=*/1);
  CHECK_OK(form.status());
  const LikelySample sample = SampleOf(write, network);
  WritingCost cost{.layer_flops = {},
                   .target_share = sample.rows / static_cast<double>(form->context)};
  for (const NetworkLayer& layer : form->target.layers) {
    cost.layer_flops.push_back(static_cast<double>(EvaluationFlops(*layer.lists)) *
                               cost.target_share);
  }
  if (!form->has_source()) return cost;
  const auto positions = static_cast<double>(PairLimitsOf(network).source);
  const double source_share = std::min(1.0, sample.source / positions);
  for (size_t i = 0; i < cost.layer_flops.size(); ++i) {
    const NetworkLayer& layer = form->source.layers[i];
    cost.layer_flops[i] += static_cast<double>(EvaluationFlops(*layer.lists)) * source_share;
  }
  return cost;
}

}  // namespace stagecoach
