// Decoding token by token (operations/attention/cached_attention.h): rows of several sequences one
// call a position, and all in one call.
// Errors: the answer is empty, or says where they differ.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DECODING_ALONE_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DECODING_ALONE_H_

#include <string>

#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {

// A row has the bits that it has in a call of its own, when rows of the pool that it does not see
// are NaN. `tolerance`: of all rows beside causal attention of the sequences.
std::string OtherRowsChange(Backend& backend, Elements elements, double tolerance);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DECODING_ALONE_H_
