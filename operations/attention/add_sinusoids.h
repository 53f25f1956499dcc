// add_sinusoids: adds fixed positions to rows [context, width], width even; no parameter (Vaswani
// et al., 1706.03762, section 3.5). Sines are on even columns and cosines on odd ones:
//   y[r, 2p]     = x[r, 2p]     + sin(r * 10000^(-2p / width))
//   y[r, 2p + 1] = x[r, 2p + 1] + cos(r * 10000^(-2p / width))
// These are the angles of rotary for one head of that width, so both share the tables
// (operations/attention/rotary.h): every back end adds the same float32 numbers. The sum is rounded
// once. dx is dy: no call. y may take the place of x. The operand and the attribute `positions` are
// those of rotary.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_ADD_SINUSOIDS_H_
#define STAGECOACH_OPERATIONS_ATTENTION_ADD_SINUSOIDS_H_

#include <cstdint>

#include "operations/attention/rotary.h"

namespace stagecoach {

struct AddSinusoidsAttributes {
  int64_t positions = 0;  // 0: no operand of that name
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Count("positions", positions, 0);
  }
};

// Attributes for MakeRotaryTables, beside context and width.
inline constexpr RotaryAttributes kSinusoids{.heads = 1, .theta = 10000};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_ADD_SINUSOIDS_H_
