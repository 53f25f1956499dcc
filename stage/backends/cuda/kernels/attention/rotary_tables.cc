#include "stage/backends/cuda/kernels/attention/rotary_tables.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/errors/status.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Tensor> Upload(KernelBackend& backend, const std::vector<float>& values) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                             DType::kF32, {static_cast<int64_t>(values.size())}));
  backend.CopyFromHost(std::as_bytes(std::span(values)), tensor);
  return tensor;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DeviceTables>> TablesOn(
    KernelBackend& backend, std::shared_ptr<const RotaryTables> host) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::pair<KernelBackend*, const RotaryTables*>,
                                          std::weak_ptr<const DeviceTables>>;
  const std::lock_guard lock(*mutex);
  std::weak_ptr<const DeviceTables>& place = (*known)[{&backend, host.get()}];
  if (std::shared_ptr<const DeviceTables> tables = place.lock()) return tables;
  auto tables = std::make_shared<DeviceTables>();
  ASSIGN_OR_RETURN(tables->cosines, Upload(backend, host->cosines));
  ASSIGN_OR_RETURN(tables->sines, Upload(backend, host->sines));
  RETURN_IF_ERROR(backend.Synchronize());  // the copies have read the host's
  tables->host = std::move(host);
  place = tables;
  return tables;
}

}  // namespace stagecoach::cuda
