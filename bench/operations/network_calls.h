// The calls that one micro-batch makes of a network, each kind once: the rows of a table of
// operations.
// Ownership: plain values.
// Units and shapes: bytes of a call for a number of samples.
#ifndef STAGECOACH_BENCH_OPERATIONS_NETWORK_CALLS_H_
#define STAGECOACH_BENCH_OPERATIONS_NETWORK_CALLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/dtype.h"
#include "network/network.h"
#include "network/passes/head_chunks.h"
#include "operations/operation.h"

namespace stagecoach {

struct NetworkCall {
  Call call;  // operation and attributes; its operands are `types`
  CallTypes types;
  int64_t samples = 0;  // that each call is of; rows, where the head goes by chunks
  int64_t times = 0;    // of it in forward and backward of one micro-batch, nothing recomputed
  // Rows of input 0 or output 0 are padded where the back end wants that
  // (network/passes/padded_output.h).
  bool padded_input = false, padded_output = false;
};

// Of the forward, the backward and the loss with its gradient, in the order in which they come, of
// a micro-batch of so many samples. Two calls are of one kind if operation, attributes (but for
// which numbers they draw), types and samples are equal. `chunks`: of the back end
// (Backend::HeadChunks), for the last layer and the loss.
std::vector<NetworkCall> NetworkCalls(const Network& network, int64_t samples,
                                      const std::optional<HeadChunkLimits>& chunks = std::nullopt);

// "activation[n, 8, 16] float32[16]": what goes in, for people.
std::string InputsText(const CallTypes& types);

// What it reads and writes at least: each operand once, what is added to twice, of a table no more
// rows than are looked up.
int64_t LeastBytes(const CallTypes& types, int64_t samples, DType activation);
// What the FLOPs and the bytes of a call take at least at these rates.
double FloorSeconds(double products, double bytes, double flops_per_second,
                    double bytes_per_second);

}  // namespace stagecoach

#endif  // STAGECOACH_BENCH_OPERATIONS_NETWORK_CALLS_H_
