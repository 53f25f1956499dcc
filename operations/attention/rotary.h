// rotary: rotates the query and key heads of qkv (operations/attention/packed_heads.h). The angles
// grow with the row's position in its sample. Values stay (Su et al., 2104.09864, "RoFormer"). A
// head of width w has pairs p < w / 2. At position r, pair p is turned by the angle a:
//   a = r * f,  f = theta^(-2p / w)
//   (u, v) -> (u cos a - v sin a, u sin a + v cos a)
// A `factor` makes angles smaller, for contexts longer than those of the first training. Without
// `original_context` it divides each f ("linear", Chen et al., 2306.15595). With it ("llama3", as
// `transformers` computes it) t = original_context * f / 2 pi, the turns of a pair in that context,
// decides:
//   t < low_frequency_factor    f / factor
//   t > high_frequency_factor   f
//   between them                (1 - s) f / factor + s f,  s = (t - low) / (high - low)
// A pair is elements (p, p + w / 2), as in Hugging Face's Llama and Qwen ("rotate half"). With
// `interleaved` it is elements (2p, 2p + 1), as in the paper and Meta's checkpoints. The gradient
// is a rotary with `inverse`, which turns by -a. y may take the place of its input.
// A second operand, `positions` ids[n, rows], gives row r the position positions[r] in place of r.
// It is there if the attribute `positions` is not 0: then ids are clamped to [0, positions). This
// form has no gradient.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_ROTARY_H_
#define STAGECOACH_OPERATIONS_ATTENTION_ROTARY_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "operations/attributes.h"

namespace stagecoach {

struct RotaryScaling {
  double factor = 0;                                           // 0: none
  double low_frequency_factor = 0, high_frequency_factor = 0;  // turns in original_context
  int64_t original_context = 0;                                // 0: linear
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.ZeroOrBetween("factor", factor, 1, kMaxRotaryFactor);
    visit.ZeroOrBetween("low_frequency_factor", low_frequency_factor, kMinTurns, kMaxTurns);
    visit.ZeroOrBetween("high_frequency_factor", high_frequency_factor, kMinTurns, kMaxTurns);
    visit.Count("original_context", original_context, 0);
  }
  friend auto operator<=>(const RotaryScaling&, const RotaryScaling&) = default;
};

struct RotaryAttributes {
  int64_t heads = 1;
  int64_t key_heads = 0;  // 0: as many as heads
  double theta = 10000;
  bool interleaved = false;
  bool inverse = false;
  int64_t positions = 0;  // 0: no operand of that name
  RotaryScaling scaling;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("heads", heads, 1);
    visit.Count("key_heads", key_heads, 0);
    visit.Between("theta", theta, kMinTheta, kMaxTheta);
    visit.Flag("interleaved", interleaved);
    visit.Flag("inverse", inverse);
    visit.Count("positions", positions, 0);
    scaling.Visit(visit);
  }
};

// f of each pair of a head: by how much its angle grows with a position, in radians.
std::vector<double> RotaryFrequencies(double theta, const RotaryScaling& scaling,
                                      int64_t head_width);

// Tables that every kernel uses, so that all back ends turn by the same float32 numbers. They are
// computed in double and rounded once. With `inverse` sines are negative. Each is [context,
// head_width / 2], row-major. Ticks once a position (base/threads/progress.h).
struct RotaryTables {
  std::vector<float> cosines, sines;
};
RotaryTables MakeRotaryTables(const RotaryAttributes& attributes, int64_t context,
                              int64_t head_width);

// Rows of the tables of a call with that attribute.
inline int64_t TablePositions(int64_t positions, int64_t context) {
  return positions > 0 ? positions : context;
}
// The positions of rows, counted over all samples. They are rows of a table.
struct RowPositions {
  int64_t table = 0;             // TablePositions
  const int32_t* ids = nullptr;  // the operand; null if there is none
  int64_t At(int64_t row) const {
    return ids == nullptr ? row % table : std::clamp<int64_t>(ids[row], 0, table - 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_ROTARY_H_
