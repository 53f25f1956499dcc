// Cost model: c_i of the paper, by walking the lists of calls of each layer (network/lists/cost.h).
// Units and shapes: FLOPs of one sequence; a multiply-add is two. Bytes go by the network's
//            precision: activations have its element type. Statistics, parameters, gradients and
//            optimizer are float32. In bfloat16, parameters have also the copy that operations
//            read.
#ifndef STAGECOACH_PLAN_COSTS_COST_MODEL_H_
#define STAGECOACH_PLAN_COSTS_COST_MODEL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "devices/card/card_profile.h"
#include "base/layer_range.h"
#include "network/network.h"
#include "network/passes/head_chunks.h"
#include "plan/costs/decoding_memory.h"
#include "plan/job/job_spec.h"
#include "plan/schedules/schedule.h"

namespace stagecoach {

struct LayerCost {
  int64_t parameters = 0;        // elements, tied ones at their owner
  int64_t products = 0;          // forward FLOPs of matrix products, per sequence: what MFU counts
  int64_t trained_products = 0;  // with the backward: three times that where all is trained
  int64_t forward_flops = 0;     // per sequence; causal attention counts the half it computes
  int64_t backward_flops = 0;    // per sequence, input and weight part together
};

// The rate of a stage that nobody measured: two cores of an x86 server.
inline constexpr double kAssumedFlopsPerSecond = 150e9;

// Where the planned times come from.
enum class RateSource : uint8_t {
  kAssumed,  // the cost model at kAssumedFlopsPerSecond
  kGiven,    // the cost model at a rate that somebody gave
  kProfile,  // a stage measured every layer
};

// Seconds measured on a stage for one micro-batch, per layer; same order as the layers.
struct LayerProfile {
  double forward_seconds = 0;
  double backward_seconds = 0;
};

std::vector<LayerCost> ModelCosts(const Network& network);

// Model FLOPs of one trained token: 3 x forward, less if parameters are frozen. No recompute,
// causal attention, matrix products only (what MFU counts).
double ModelFlopsPerToken(const Network& network);

// The moment when a stage is at its fullest: how many instructions of its program and of its
// neighbours' programs are done. The stage may be within its next one.
struct StageMoment {
  bool evaluation = false;  // of its programs; else of the training's
  size_t position = 0, upstream = 0, downstream = 0;  // of a stage with one cell the last two
};

// Memory of one stage at its peak, by kind, for the layers of its cells.
struct StageMemory {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;  // inputs kept, stashes, what is in flight inside a layer or in links
  StageMoment fullest = {};
  int64_t decoding = 0;   // of activations, if an evaluation's translations are the peak
  int64_t total() const;  // of sizes beyond 64 bits: the largest number
};

// Query for the peak of a stage's memory. The forecast walks the program micro-batch by micro-batch
// and, inside a backward, layer by layer. To each instruction it adds the most that the links may
// hold then, in either direction (plan/costs/link_memory.h). It assumes neighbours and a network of
// any speed that the programs allow. The result is a reachable upper bound. On a card, links use
// host memory. Copies to and from it count as if each ran as late as it may. The standing workspace
// and what a call takes beyond it (plan/costs/card_memory.h) count too.
struct StageMemoryQuery {
  std::vector<LayerRange> cells;  // of the stage, ascending
  int64_t batch_size = 0;         // N
  int64_t micro_batches = 0;            // M
  OptimizerSpec optimizer;
  bool average = false;                           // of the weights, beside them
  int link_capacity = kLinkCapacity;              // messages in each direction
  std::optional<CardProfile> card;                // of a stage on one
  HeadChunkLimits head_chunks = kCardHeadChunks;  // on a card
  std::span<const StageProgram> evaluation;       // of all stages; empty: there is none
  const DecodingSizes* decoding = nullptr;        // of its translations; null: there are none
  CellPlacement placement = {};                       // of the programs
};
// programs: of a training step, of all stages; empty: evaluations alone count.
StageMemory ForecastStageMemory(const Network& network, std::span<const StageProgram> programs,
                                int stage, const StageMemoryQuery& query);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_COST_MODEL_H_
