// operations/attention/add_sinusoids.h
#include "operations/attention/add_sinusoids.h"

#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/shared_rotary_tables.h"

namespace stagecoach::cpu {
namespace {

// Once an input of the network: not worth vectors of every instruction set. y may be x.
void AddRow(const float* x, const float* sines, const float* cosines, float* y, int64_t pairs) {
  for (int64_t p = 0; p < pairs; ++p) {
    y[2 * p] = x[2 * p] + sines[p];
    y[2 * p + 1] = x[2 * p + 1] + cosines[p];
  }
}

absl::StatusOr<Kernel> AddSinusoids(CpuBackend& backend, const Call& call, const CallTypes& types,
                                    DType) {
  const int64_t width = types.inputs[0].shape[1];
  const int64_t positions = TablePositions(AttributesOf<AddSinusoidsAttributes>(call).positions,
                                           types.inputs[0].shape[0]);
  return Kernel([&backend, positions, width,
                 tables = SharedRotaryTables(kSinusoids, positions, width)](
                    const KernelContext&, const KernelArguments& a) {
    const RowPositions rows_at{positions,
                               a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr};
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    backend.ForEachPiece(a.outputs[0], kSmallRowBlock, width, 1,
                         [&](int64_t first, int64_t count, const Room& room) {
                           for (int64_t r = first; r < first + count; ++r) {
                             const int64_t start = r * width, at = rows_at.At(r) * (width / 2);
                             AddRow(x.Read(start, width, room[0]), tables->sines.data() + at,
                                    tables->cosines.data() + at, y.At(start, room[0]), width / 2);
                             y.Finish(start, width, room[0]);
                           }
                         });
  });
}

}  // namespace

KernelList AddSinusoidsKernels() { return {{"add_sinusoids", AddSinusoids}}; }

}  // namespace stagecoach::cpu
