#include "stage/backends/cuda/kernels/attention/add_sinusoids.h"

#include <memory>

#include "base/errors/status.h"
#include "operations/attention/add_sinusoids.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/attention/rotary_tables.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call&, const CallTypes& types, DType) {
  const int64_t context = types.inputs[0].shape[0], width = types.inputs[0].shape[1];
  ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceTables> tables,
                   TablesOn(backend, SharedRotaryTables(kSinusoids, context, width)));
  return Kernel([&backend, tables](const KernelContext&, const KernelArguments& a) {
    constexpr char kWhat[] = "add_sinusoids";
    WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
      backend.Note(AddSinusoids(backend.Begin(), a.inputs[0].data<T>(), tables->sines.data<float>(),
                                tables->cosines.data<float>(), a.outputs[0].data<T>(),
                                a.outputs[0].elements() / 2, tables->sines.elements()),
                   kWhat);
    });
  });
}

}  // namespace

KernelList AddSinusoidsKernels() { return {{"add_sinusoids", Prepare}}; }

}  // namespace stagecoach::cuda
