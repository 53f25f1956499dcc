#include "stage/backends/cuda/kernels/attention/rotary.h"

#include <memory>

#include "base/errors/status.h"
#include "operations/attention/packed_heads.h"
#include "operations/attention/rotary.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels/attention/rotary_tables.h"

namespace stagecoach::cuda {
namespace {

absl::StatusOr<Kernel> Prepare(KernelBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<RotaryAttributes>(call);
  const PackedHeads packed = PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads);
  const int64_t positions = TablePositions(attributes.positions, packed.context);
  ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceTables> tables,
                   TablesOn(backend, SharedRotaryTables(attributes, positions, packed.head_width)));
  const RotaryShape one_sample = {packed.context,
                                  positions,
                                  packed.heads + packed.key_heads,
                                  packed.key_heads,
                                  packed.head_width / 2,
                                  attributes.interleaved};
  return Kernel(
      [&backend, one_sample, tables](const KernelContext& context, const KernelArguments& a) {
        constexpr char kWhat[] = "rotary";
        RotaryShape shape = one_sample;
        shape.rows *= context.run.sequences;
        const int32_t* const ids = a.inputs.size() > 1 ? a.inputs[1].data<int32_t>() : nullptr;
        WithType(TypeOf(kWhat, {&a.inputs[0], &a.outputs[0]}), [&]<typename T>(T) {
          backend.Note(
              Rotary<T>(backend.Begin(), shape, ids, tables->cosines.data<float>(),
                        tables->sines.data<float>(), a.inputs[0].data<T>(), a.outputs[0].data<T>()),
              kWhat);
        });
      });
}

}  // namespace

KernelList RotaryKernels() { return {{"rotary", Prepare}}; }

}  // namespace stagecoach::cuda
