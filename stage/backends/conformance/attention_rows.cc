#include "absl/strings/str_cat.h"
#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {
namespace {

struct AttentionSize {
  int64_t sequences, context, heads, head_width;
};
constexpr AttentionSize kAttentionSizes[] = {{1, 1, 1, 5},    {3, 7, 1, 17},  {2, 7, 7, 1},
                                             {1, 64, 2, 33},  {2, 100, 8, 4}, {1, 49, 4, 16},
                                             {1, 256, 3, 64}, {2, 130, 1, 20}};

// Long contexts take a sanitized build's tests minutes, and the other percentages run no other code.
#if defined(STAGECOACH_SANITIZED)
constexpr int64_t kLongestForEveryDropout = 100;
#else
constexpr int64_t kLongestForEveryDropout = 1 << 20;
#endif

Outputs ForwardAndBackward(Bench& bench, const AttentionSize& size, double dropout) {
  const int64_t n = size.sequences * size.context, width = size.heads * size.head_width;
  const AttentionShape shape = {.sequences = size.sequences,
                                .context = size.context,
                                .heads = size.heads,
                                .width = width,
                                .dropout = dropout,
                                .stream = TestStream()};
  AttentionForwardArgs forward = {
      .shape = shape,
      .qkv = bench.Activation({n, 3 * width}, 1.5f),
      .out = bench.BlankActivation({n, width}),
      .log_sum_exp = bench.Blank({size.sequences, size.heads, size.context})};
  bench.backend().AttentionForward(forward);
  AttentionBackwardArgs backward = {.shape = shape,
                                    .d_out = bench.Activation({n, width}),
                                    .qkv = forward.qkv,
                                    .out = bench.AsRead(forward.out),
                                    .log_sum_exp = forward.log_sum_exp,
                                    .d_qkv = bench.BlankActivation({n, 3 * width})};
  bench.backend().AttentionBackward(backward);
  return {bench.Read("out", forward.out), bench.Read("log_sum_exp", forward.log_sum_exp),
          bench.Read("d_qkv", backward.d_qkv)};
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
