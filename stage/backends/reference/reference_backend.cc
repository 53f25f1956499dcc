#include "stage/backends/reference/reference_backend.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach {

namespace reference {
STAGECOACH_LISTED(Giver<KernelList>, Kernels, STAGECOACH_OPERATIONS)
}  // namespace reference

const KernelTable<ReferenceBackend>& reference::Kernels() {
  static const auto* const table =
      new KernelTable<ReferenceBackend>("reference", CallEach(reference::kListedKernels));
  return *table;
}

absl::StatusOr<Kernel> ReferenceBackend::Prepare(const Call& call, const CallTypes& types,
                                                 DType activation) {
  return reference::Kernels().Prepare(*this, call, types, activation);
}

absl::StatusOr<CallDescription> ReferenceBackend::Describe(const Call& call, const CallTypes&,
                                                           int64_t, DType) {
  RETURN_IF_ERROR(reference::Kernels().Check(call));
  return CallDescription{};
}

std::vector<std::string> ReferenceBackend::WithoutKernels() const {
  return reference::Kernels().WithoutKernels();
}

std::string ReferenceBackend::fingerprint() const {
  return absl::StrCat("reference glibc-", gnu_get_libc_version());
}

void ReferenceBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  // memcpy may not be given the null pointer of an empty span, whatever the size.
  if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
}

void ReferenceBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
}

}  // namespace stagecoach
