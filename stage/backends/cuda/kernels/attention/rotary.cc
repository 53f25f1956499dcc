#include "stage/backends/cuda/kernels/attention/rotary.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/errors/status.h"
#include "operations/attention/packed_heads.h"
#include "operations/attention/rotary.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/shared_rotary_tables.h"

namespace stagecoach::cuda {
namespace {

// The shared tables in a card's memory, one copy for all kernels of a back end.
struct DeviceTables {
  std::shared_ptr<const RotaryTables> host;
  Tensor cosines, sines;
};

absl::StatusOr<Tensor> Upload(KernelBackend& backend, const std::vector<float>& values) {
  ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend.allocator(), MemoryKind::kWorkspace,
                                             DType::kF32, {static_cast<int64_t>(values.size())}));
  backend.CopyFromHost(std::as_bytes(std::span(values)), tensor);
  return tensor;
}

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

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<RotaryAttributes>(call);
  const PackedHeads packed = PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const DeviceTables> tables,
      TablesOn(backend, SharedRotaryTables(attributes, packed.context, packed.head_width)));
  const RotaryShape one_row = {1,
                               packed.context,
                               packed.heads + packed.key_heads,
                               packed.key_heads,
                               packed.head_width / 2,
                               attributes.interleaved};
  return Kernel(
      [&backend, one_row, tables](const KernelContext& context, const KernelArguments& a) {
        constexpr char kWhat[] = "rotary";
        RotaryShape shape = one_row;
        shape.rows = context.run.sequences * shape.context;
        WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
          backend.Note(
              Rotary<T>(backend.Begin(), shape, tables->cosines.data<float>(),
                        tables->sines.data<float>(), a.inputs[0].data<T>(), a.outputs[0].data<T>()),
              kWhat);
        });
      });
}

}  // namespace

KernelList RotaryKernels() { return {{"rotary", Prepare}}; }

}  // namespace stagecoach::cuda
