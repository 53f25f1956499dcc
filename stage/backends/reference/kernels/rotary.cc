#include "operations/attention/rotary.h"

#include "operations/attention/packed_heads.h"
#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/shared_rotary_tables.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Rotary(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto attributes = AttributesOf<RotaryAttributes>(call);
  const PackedHeads packed = PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
  const int64_t positions = TablePositions(attributes.positions, packed.context);
  return Kernel([packed, positions, interleaved = attributes.interleaved,
                 tables = SharedRotaryTables(attributes, positions, packed.head_width)](
                    const KernelContext&, const KernelArguments& a) {
    const RowPositions rows_at{positions,
                               a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr};
    const int64_t width = packed.head_width, pairs = width / 2;
    const int64_t heads = packed.heads + 2 * packed.key_heads;
    const int64_t rows = a.inputs[0].elements() / (heads * width);
    for (int64_t unit = 0; unit < rows * heads; ++unit) {
      const float* x = a.inputs[0].data<float>() + unit * width;
      float* y = a.outputs[0].data<float>() + unit * width;
      const bool turns = unit % heads < packed.heads + packed.key_heads;
      const int64_t first = rows_at.At(unit / heads) * pairs;
      for (int64_t p = 0; p < pairs; ++p) {
        const int64_t i = interleaved ? 2 * p : p, j = interleaved ? i + 1 : p + pairs;
        const double u = x[i], v = x[j];
        const double c = turns ? tables->cosines[first + p] : 1.0;
        const double s = turns ? tables->sines[first + p] : 0.0;
        y[i] = static_cast<float>(u * c - v * s);
        y[j] = static_cast<float>(u * s + v * c);
      }
    }
  });
}

}  // namespace

KernelList RotaryKernels() { return {{"rotary", Rotary}}; }

}  // namespace stagecoach::reference
