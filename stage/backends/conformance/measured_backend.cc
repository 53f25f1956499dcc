#include "stage/backends/conformance/measured_backend.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach::conformance {

absl::StatusOr<CallDescription> MeasuredBackend::Describe(const Call& call, const CallTypes& types,
                                                          int64_t samples, DType activation) {
  ASSIGN_OR_RETURN(CallDescription description, inner_->Describe(call, types, samples, activation));
  if (change_ != nullptr) change_(call, &description);
  return description;
}

absl::StatusOr<Kernel> MeasuredBackend::Prepare(const Call& call, const CallTypes& types,
                                                DType activation) {
  ASSIGN_OR_RETURN(Kernel kernel, inner_->Prepare(call, types, activation));
  return Kernel([this, calls = std::vector<Described>{{call, types, activation}}, kernel](
                    const KernelContext& context, const KernelArguments& arguments) {
    Measure(calls, context.run.sequences, [&] { kernel(context, arguments); });
  });
}

absl::StatusOr<KernelOfAll> MeasuredBackend::PrepareAll(std::span<const Call> calls,
                                                        std::span<const CallTypes> types,
                                                        DType activation) {
  ASSIGN_OR_RETURN(KernelOfAll kernel, inner_->PrepareAll(calls, types, activation));
  std::vector<Described> described;
  for (size_t i = 0; i < calls.size(); ++i) {
    described.push_back({calls[i], types[i], activation});
  }
  return KernelOfAll([this, described, kernel](const KernelContext& context,
                                               std::span<const KernelArguments> all) {
    Measure(described, context.run.sequences, [&] { kernel(context, all); });
  });
}

void MeasuredBackend::Measure(const std::vector<Described>& calls, int64_t samples,
                              const std::function<void()>& run) {
  constexpr auto kWorkspace = static_cast<size_t>(MemoryKind::kWorkspace);
  CallDescription most;
  for (const Described& one : calls) {
    const absl::StatusOr<CallDescription> description =
        Describe(one.call, one.types, samples, one.activation);
    CHECK_OK(description.status());
    most.Raise(description->room, description->shared);
    most.kept += description->kept;
  }
  inner_->EndCell();
  Allocator& memory = inner_->allocator();
  memory.ResetPeak();
  const int64_t before = memory.Use().peak[kWorkspace];
  run();
  CHECK_OK(inner_->Synchronize());
  const int64_t taken = memory.Use().peak[kWorkspace] - before;
  const int64_t threads = inner_->Host().threads;
  const int64_t described = most.room * threads + most.shared + most.kept;
  ++measured_;
  if (taken <= described || !exceeded_.empty()) return;
  exceeded_ =
      absl::StrCat(calls[0].call.operation, " of ", samples, " samples, ", threads,
                   " threads: ", taken, " bytes taken, ", described, " described: ", most.room,
                   " a thread, ", most.shared, " shared, ", most.kept, " kept");
}

}  // namespace stagecoach::conformance
