#include "stage/backends/cuda/kernels/attention/add_sinusoids.h"

#include <memory>

#include "base/errors/status.h"
#include "operations/attention/add_sinusoids.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/attention/rotary_tables.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const int64_t width = types.inputs[0].shape[1];
  const int64_t positions = TablePositions(AttributesOf<AddSinusoidsAttributes>(call).positions,
                                           types.inputs[0].shape[0]);
  ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceTables> tables,
                   TablesOn(backend, SharedRotaryTables(kSinusoids, positions, width)));
  return Kernel([&backend, positions, pairs = width / 2, tables](const KernelContext&,
                                                                 const KernelArguments& a) {
    constexpr char kWhat[] = "add_sinusoids";
    const SinusoidsShape shape{a.outputs[0].elements() / (2 * pairs), positions, pairs};
    const int32_t* const ids = a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr;
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(AddSinusoids(backend.Begin(), shape, a.inputs[0].data<T>(), ids,
                                tables->sines.data<float>(), tables->cosines.data<float>(),
                                a.outputs[0].data<T>()),
                   kWhat);
    });
  });
}

}  // namespace

KernelList AddSinusoidsKernels() { return {{"add_sinusoids", Prepare}}; }

}  // namespace stagecoach::cuda
