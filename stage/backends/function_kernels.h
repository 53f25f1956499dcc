// Kernels of the operations that Backend has a function for: from a call's operands to that function's
// arguments, the same for every back end. Other operations have kernels of their own (kernel_table.h).
// Threads:   any.
// Errors:    NoKernel is UNIMPLEMENTED.
#ifndef STAGECOACH_STAGE_BACKENDS_FUNCTION_KERNELS_H_
#define STAGECOACH_STAGE_BACKENDS_FUNCTION_KERNELS_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "operations/operation.h"
#include "stage/backends/kernel.h"

namespace stagecoach {

class Backend;

// Calls `backend`, which must outlive the kernel. A back end that stands before another one gives
// itself, so that it sees these calls. Nothing if no function computes this operation.
std::optional<Kernel> KernelByFunction(Backend& backend, const Call& call, const CallTypes& types);

absl::Status NoKernel(const Call& call, std::string_view back_end);

// Of a call that was checked.
template <typename Struct>
Struct AttributesOf(const Call& call) {
  absl::StatusOr<Struct> attributes = FromAttributes<Struct>(call.attributes);
  CHECK(attributes.ok()) << call.operation << ": " << attributes.status();
  return *attributes;
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_FUNCTION_KERNELS_H_
