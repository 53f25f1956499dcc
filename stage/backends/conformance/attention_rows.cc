#include "absl/strings/str_cat.h"
#include "base/sanitized.h"
#include "operations/attention/attention.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

struct AttentionSize {
  int64_t sequences, context, heads, head_width;
};
constexpr AttentionSize kAttentionSizes[] = {{1, 1, 1, 5},    {3, 7, 1, 17},  {2, 7, 7, 1},
                                             {1, 64, 2, 33},  {2, 100, 8, 4}, {1, 49, 4, 16},
                                             {1, 256, 3, 64}, {2, 130, 1, 20}};

// Long contexts take a sanitized build's tests minutes, and the other percentages run no other
// code.
constexpr int64_t kLongestForEveryDropout = kSanitized ? 100 : 1 << 20;

Outputs ForwardAndBackward(Bench& bench, const AttentionSize& size, double dropout) {
  const int64_t n = size.sequences * size.context, width = size.heads * size.head_width;
  const RandomStream stream = TestStream();
  const Attributes attributes = ToAttributes(
      AttentionAttributes{.heads = size.heads, .dropout = dropout, .draw = stream.operation});
  const Tensor qkv = bench.Activation({n, 3 * width}, 1.5f),
               out = bench.BlankActivation({n, width});
  const Tensor log_sum_exp = bench.Blank({size.sequences, size.heads, size.context});
  RunOn(bench.backend(), {.operation = "attention",
                          .attributes = attributes,
                          .inputs = {qkv},
                          .outputs = {out, log_sum_exp},
                          .samples = size.sequences,
                          .stream = stream});
  const Tensor d_out = bench.Activation({n, width}), out_as_read = bench.AsRead(out);
  const Tensor d_qkv = bench.BlankActivation({n, 3 * width});
  RunOn(bench.backend(), {.operation = "attention_gradient",
                          .attributes = attributes,
                          .inputs = {d_out, qkv, out_as_read, log_sum_exp},
                          .outputs = {d_qkv},
                          .samples = size.sequences,
                          .stream = stream});
  return {bench.Read("out", out), bench.Read("log_sum_exp", log_sum_exp),
          bench.Read("d_qkv", d_qkv)};
}

}  // namespace

void AddAttentionRows(std::vector<ConformanceRow>& rows) {
  for (const AttentionSize& size : kAttentionSizes) {
    for (const int percent : {0, 10, 50}) {
      if (size.context > kLongestForEveryDropout && percent != 10) continue;
      rows.push_back({absl::StrCat("Attention_", size.sequences, "x", size.context, "_", size.heads,
                                   "x", size.head_width, "_dropout", percent),
                      3e-5, [=](Bench& b) { return ForwardAndBackward(b, size, percent / 100.0); },
                      kRoundedInside});
    }
  }
}

}  // namespace stagecoach::conformance
