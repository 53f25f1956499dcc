// Cost model: c_i of the paper, by integer arithmetic on shapes.
// Units and shapes: FLOPs (a multiply-add is two) of one sequence; bytes. Float32 throughout.
// The stash of each layer kind is what stage/layers really keeps between forward and backward; a test
// there compares both sides. docs/ARCHITECTURE.md, "Memory", has the table.
#ifndef STAGECOACH_PLAN_COST_MODEL_H_
#define STAGECOACH_PLAN_COST_MODEL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "plan/job_spec.h"
#include "plan/model_spec.h"

namespace stagecoach {

struct LayerCost {
  int64_t parameters = 0;               // elements
  int64_t forward_flops = 0;            // per sequence; causal attention counts the half it computes
  int64_t backward_flops = 0;           // per sequence, input and weight part together
  int64_t boundary_bytes = 0;           // output activation, per sequence
  int64_t stash_bytes = 0;              // kept from forward to backward, per sequence
  int64_t scratch_bytes = 0;            // peak of temporaries of forward or backward, per sequence
};

// Seconds measured on a stage for one micro-batch, per layer; same order as the layers.
struct LayerProfile {
  double forward_seconds = 0;
  double backward_seconds = 0;
};

std::vector<LayerCost> ModelCosts(const ExpandedModel& model);

// Model FLOPs of one trained token: 3 x forward, no recompute, causal attention (what MFU counts).
double ModelFlopsPerToken(const ExpandedModel& model);

// Memory of one stage at its peak, by kind, for layers [first, last).
struct StageMemory {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;  // boundary inputs kept, stashes, what is in flight inside a layer
  int64_t total() const { return parameters + gradients + optimizer + activations; }
};

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COST_MODEL_H_
