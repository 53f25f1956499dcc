#include "stage/backends/conformance/decoding_alone.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "operations/attention/attention.h"
#include "operations/attention/cached_attention.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

// Rows of the sequences, one after the other, with their places spread over the pool.
class Decoding {
 public:
  // Beyond one tile of a card.
  static constexpr int64_t kSequences = 2, kContext = 131, kRows = kSequences * kContext;
  static constexpr int64_t kHeads = 4, kKeyHeads = 2, kHeadWidth = 9;
  static constexpr int64_t kWidth = kHeads * kHeadWidth;
  static constexpr int64_t kPacked = (kHeads + 2 * kKeyHeads) * kHeadWidth;
  static constexpr int64_t kPool = kRows + 3;

  Decoding(Backend& backend, Elements elements)
      : bench_(backend, elements), qkv_(FillNormal(kRows * kPacked, 1)) {
    for (int64_t row = 0; row < kRows; ++row) {
      places_.push_back(static_cast<int32_t>(PermuteIndex(7, 1, kPool, row)));
    }
  }

  // A fresh pool, of NaNs.
  void Clear() {
    const Shape shape{kPool, kKeyHeads * kHeadWidth};
    keys_ = bench_.BlankActivation(shape);
    values_ = bench_.BlankActivation(shape);
  }

  Output Attend(const std::vector<int64_t>& rows) {
    const auto count = static_cast<int64_t>(rows.size());
    std::vector<float> qkv;
    std::vector<int32_t> places, positions, history;
    for (const int64_t row : rows) {
      const auto first = qkv_.begin() + row * kPacked;
      qkv.insert(qkv.end(), first, first + kPacked);
      places.push_back(places_[static_cast<size_t>(row)]);
      positions.push_back(static_cast<int32_t>(row % kContext));
      const auto start = places_.begin() + row / kContext * kContext;
      history.insert(history.end(), start, start + kContext);
    }
    const Tensor out = bench_.BlankActivation({count, kWidth});
    RunOn(
        bench_.backend(),
        {.operation = "cached_attention",
         .attributes =
             ToAttributes(CachedAttentionAttributes{.heads = kHeads, .key_heads = kKeyHeads}),
         .inputs = {bench_.ActivationFrom(qkv, {count, kPacked}), bench_.IdsFrom(places, {count}),
                    bench_.IdsFrom(positions, {count}), bench_.IdsFrom(history, {count, kContext})},
         .outputs = {out},
         .adds = {keys_, values_}});
    return bench_.Read("out", out);
  }

  Output Causal() {
    const Tensor out = bench_.BlankActivation({kRows, kWidth});
    RunOn(bench_.backend(),
          {.operation = "attention",
           .attributes = ToAttributes(AttentionAttributes{.heads = kHeads, .key_heads = kKeyHeads}),
           .inputs = {bench_.ActivationFrom(qkv_, {kRows, kPacked})},
           .outputs = {out, bench_.Blank({kSequences, kHeads, kContext})},
           .samples = kSequences});
    return bench_.Read("out", out);
  }

 private:
  Bench bench_;
  const std::vector<float> qkv_;
  std::vector<int32_t> places_;
  Tensor keys_, values_;
};

}  // namespace

std::string OtherRowsChange(Backend& backend, Elements elements, double tolerance) {
  Decoding decoding(backend, elements);
  std::vector<int64_t> all;
  for (int64_t row = 0; row < Decoding::kRows; ++row) all.push_back(row);
  decoding.Clear();
  const Output together = decoding.Attend(all);
  std::string difference = Disagreement({together}, {decoding.Causal()}, tolerance);
  if (!difference.empty()) return absl::StrCat("beside attention: ", difference);
  decoding.Clear();
  for (int64_t position = 0; position < Decoding::kContext; ++position) {
    for (int64_t row = position; row < Decoding::kRows; row += Decoding::kContext) {
      const auto first = together.values.begin() + row * Decoding::kWidth;
      Output expected = together;
      expected.values = {first, first + Decoding::kWidth};
      difference = Disagreement({decoding.Attend({row})}, {expected}, 0.0);
      if (!difference.empty()) return absl::StrCat("row ", row, " alone: ", difference);
    }
  }
  return "";
}

}  // namespace stagecoach::conformance
