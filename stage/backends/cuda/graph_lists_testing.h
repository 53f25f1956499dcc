// For tests: runs a short list of calls several times, on a card (cuda_graphs_test.cc) and on the
// emulated one.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_GRAPH_LISTS_TESTING_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_GRAPH_LISTS_TESTING_H_

#include <functional>
#include <vector>

#include "operations/attention/attention.h"
#include "operations/linear.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {

// The rounds: at their places, one by one, captured and launched, then launched three times.
inline constexpr int kListRounds = 6;

// Runs a product with bias and GELU, attention, and products that add to their result, by own
// kernels and the libraries. A sum shows how often its call ran.
inline Outputs RunLists(Backend& backend, Elements elements) {
  Bench bench(backend, elements);
  constexpr int64_t kSequences = 2, kContext = 128, kWidth = 128, kRows = kSequences * kContext;
  const Tensor x = bench.Activation({kRows, kWidth}),
               w = bench.Activation({3 * kWidth, kWidth}, 0.1f), b = bench.Activation({3 * kWidth}),
               qkv = bench.BlankActivation({kRows, 3 * kWidth}),
               gelu = bench.BlankActivation({kRows, 3 * kWidth}),
               out = bench.BlankActivation({kRows, kWidth}), log_sum_exp = bench.Blank({2 * kRows});
  const Tensor dw = bench.From(std::vector<float>(kWidth * kWidth, 0.0f), {kWidth, kWidth});
  const std::vector<std::function<void()>> list = {
      PrepareOn(backend, {.operation = "linear",
                          .attributes = ToAttributes(LinearAttributes{.bias = true, .gelu = true}),
                          .inputs = {x, Whole(w), Whole(b)},
                          .outputs = {qkv, gelu},
                          .samples = kSequences}),
      PrepareOn(backend, {.operation = "attention",
                          .attributes = ToAttributes(AttentionAttributes{.heads = 2}),
                          .inputs = {gelu},
                          .outputs = {out, log_sum_exp},
                          .samples = kSequences}),
      PrepareOn(backend, {.operation = "linear_weight_gradient",
                          .attributes = ToAttributes(LinearWeightGradientAttributes{}),
                          .inputs = {out, x},
                          .adds = {dw},
                          .samples = kSequences})};
  for (int round = 0; round < kListRounds; ++round) {
    const CallsOfLists calls(backend);
    for (const auto& call : list) call();
  }
  return {bench.Read("out", out), bench.Read("dw", dw)};
}

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_GRAPH_LISTS_TESTING_H_
