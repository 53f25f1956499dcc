// KernelTable: which operations a back end has kernels for. Each back end has one, filled from the files
// of its folder kernels/: cmake/StagecoachKernels.cmake writes the list of them, so that a file is there
// or the program does not link.
// Threads:   any.
// Errors:    Prepare answers UNIMPLEMENTED for an operation without a kernel, naming it and the back end;
//            two kernels for one operation, or one for an operation that the catalogue has not, are CHECKed.
#ifndef STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_
#define STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "operations/catalogue.h"
#include "stage/backends/backend.h"
#include "stage/backends/kernel.h"

namespace stagecoach {

inline absl::Status NoKernel(const Call& call, std::string_view back_end) {
  return absl::UnimplementedError(absl::StrCat("the ", std::string(back_end),
                                               " back end has no kernel for operation \"",
                                               call.operation, "\"; use another device"));
}

// Of a call that was checked.
template <typename Struct>
Struct AttributesOf(const Call& call) {
  absl::StatusOr<Struct> attributes = FromAttributes<Struct>(call.attributes);
  CHECK(attributes.ok()) << call.operation << ": " << attributes.status();
  return *attributes;
}

// The kernel files of a back end give one list each. `Device` is what they compute with.
template <typename Device>
struct KernelEntry {
  std::string_view operation;
  absl::StatusOr<Kernel> (*prepare)(Device& device, const Call& call, const CallTypes& types,
                                    DType activation);
};
template <typename Device>
using KernelListOf = std::vector<KernelEntry<Device>>;

template <typename Device>
class KernelTable {
 public:
  KernelTable(std::string_view back_end, const std::vector<KernelListOf<Device>>& lists)
      : back_end_(back_end) {
    for (const KernelListOf<Device>& list : lists) {
      for (const KernelEntry<Device>& entry : list) {
        OperationNamed(entry.operation);
        CHECK(entries_.emplace(entry.operation, entry).second)
            << back_end << " has two kernels for " << entry.operation;
      }
    }
  }

  absl::StatusOr<Kernel> Prepare(Device& device, const Call& call, const CallTypes& types,
                                 DType activation) const {
    const auto found = entries_.find(call.operation);
    if (found == entries_.end()) return NoKernel(call, back_end_);
    return found->second.prepare(device, call, types, activation);
  }
  bool Has(std::string_view operation) const { return entries_.contains(operation); }
  // By name.
  std::vector<std::string> operations() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.emplace_back(name);
    return names;
  }

 private:
  const std::string_view back_end_;
  std::map<std::string_view, KernelEntry<Device>, std::less<>> entries_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_BACKENDS_KERNEL_TABLE_H_
