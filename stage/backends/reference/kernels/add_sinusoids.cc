// operations/attention/add_sinusoids.h
#include "operations/attention/add_sinusoids.h"

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/shared_rotary_tables.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> AddSinusoids(ReferenceBackend&, const Call& call, const CallTypes& types,
                                    DType) {
  const int64_t width = types.inputs[0].shape[1];
  const int64_t positions = TablePositions(AttributesOf<AddSinusoidsAttributes>(call).positions,
                                           types.inputs[0].shape[0]);
  return Kernel([positions, width, tables = SharedRotaryTables(kSinusoids, positions, width)](
                    const KernelContext&, const KernelArguments& a) {
    const RowPositions rows_at{positions,
                               a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr};
    const int64_t pairs = width / 2, all = a.inputs[0].elements() / 2;
    const float* x = a.inputs[0].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t pair = 0; pair < all; ++pair) {
      const int64_t at = rows_at.At(pair / pairs) * pairs + pair % pairs;
      y[2 * pair] = x[2 * pair] + tables->sines[at];
      y[2 * pair + 1] = x[2 * pair + 1] + tables->cosines[at];
    }
  });
}

}  // namespace

KernelList AddSinusoidsKernels() { return {{"add_sinusoids", AddSinusoids}}; }

}  // namespace stagecoach::reference
