// Draws: whether a call computes other numbers in another step or micro-batch, as it draws from its
// layer's stream.
// See: stage/backends/device/call_queue.h, which keeps them out of graphs; emulated_graphs_test.cc
// holds the rest to it.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_DRAWING_CALLS_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_DRAWING_CALLS_H_

#include <variant>

#include "operations/catalogue.h"

namespace stagecoach::cuda {

// Drawn counts the numbers that a forward takes from a stream. Attention's gradient takes the same
// numbers again, which Drawn does not count. So the rate decides there.
inline bool Draws(const Call& call, const CallTypes& types) {
  if (OperationNamed(call.operation).Drawn(call.attributes, types) > 0) return true;
  const AttributeValue* const rate = call.attributes.Find("dropout");
  return rate != nullptr && std::get<double>(*rate) > 0;
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_DRAWING_CALLS_H_
