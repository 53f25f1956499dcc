// Attention (operations/attention/attention.h): one task per (sequence, head); of the backward per
// (sequence, key head).
#include "base/errors/check.h"
#include "operations/attention/attention_scratch.h"
#include "stage/backends/attention_shape.h"
#include "stage/backends/cpu/attention_units.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

template <typename T>
struct UnitPlace {
  AttentionUnit<T> unit;
  int64_t qkv_offset, out_offset, statistic_offset;
};

// `group` heads from one on that read the same key head.
template <typename T>
UnitPlace<T> PlaceUnit(const AttentionShape& shape, const T* qkv, int64_t index, int64_t group) {
  const int64_t sequence = index * group / shape.heads, head = index * group % shape.heads;
  const int64_t key_head = head / (shape.heads / shape.keys()), head_width = shape.head_width();
  const int64_t qkv_offset = sequence * shape.context * shape.packed_width() + head * head_width;
  const int64_t keys = (shape.heads + key_head - head) * head_width;
  return {.unit = {.qkv = qkv + qkv_offset,
                   .qkv_stride = shape.packed_width(),
                   .keys = keys,
                   .values = keys + shape.keys() * head_width,
                   .group = group,
                   .out_stride = shape.width,
                   .context = shape.context,
                   .head_width = head_width,
                   .dropout = shape.dropout,
                   .stream = shape.stream,
                   .first_element = index * group * shape.context * shape.context,
                   .full = shape.full},
          .qkv_offset = qkv_offset,
          .out_offset = sequence * shape.context * shape.width + head * head_width,
          .statistic_offset = index * group * shape.context};
}

void CheckShape(const AttentionShape& shape, const Tensor& qkv) {
  CHECK(shape.width % shape.heads == 0 && shape.heads % shape.keys() == 0)
      << shape.heads << " heads must divide the width, " << shape.keys() << " key heads the heads";
  CHECK_EQ(qkv.elements(), shape.sequences * shape.context * shape.packed_width()) << "attention";
}

// T: the type of the activations and of their gradients.
template <typename T>
void RunForward(CpuBackend& backend, const AttentionShape& shape, const KernelArguments& a) {
  CheckShape(shape, a.inputs[0]);
  const int64_t floats = AttentionScratch::Forward(shape.context, shape.head_width());
  const int rooms = backend.ReserveRooms(floats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const T* qkv = a.inputs[0].data<T>();
  T* out = a.outputs[0].data<T>();
  float* log_sum_exp = a.outputs[1].data<float>();
  backend.ForEachBlock(
      rooms, shape.sequences * shape.heads, 1, [&](int64_t index, int64_t, int worker) {
        const UnitPlace<T> place = PlaceUnit(shape, qkv, index, 1);
        AttentionForwardUnit(place.unit, out + place.out_offset,
                             log_sum_exp + place.statistic_offset, backend.WorkerScratch(worker));
      });
}

template <typename T>
void RunGradient(CpuBackend& backend, const AttentionShape& shape, const KernelArguments& a) {
  CheckShape(shape, a.inputs[1]);
  const int64_t floats = AttentionScratch::Backward(shape.context, shape.head_width());
  const int rooms = backend.ReserveRooms(floats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const T *d_out = a.inputs[0].data<T>(), *qkv = a.inputs[1].data<T>(),
          *out = a.inputs[2].data<T>();
  const float* log_sum_exp = a.inputs[3].data<float>();
  T* d_qkv = a.outputs[0].data<T>();
  backend.ForEachBlock(
      rooms, shape.sequences * shape.keys(), 1, [&](int64_t index, int64_t, int worker) {
        const UnitPlace<T> place = PlaceUnit(shape, qkv, index, shape.heads / shape.keys());
        AttentionBackwardUnit(place.unit, d_out + place.out_offset, out + place.out_offset,
                              log_sum_exp + place.statistic_offset, d_qkv + place.qkv_offset,
                              backend.WorkerScratch(worker));
      });
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[0]](const KernelContext& context,
                                                              const KernelArguments& a) {
    const AttentionShape shape = ShapeOfAttention(attributes, qkv, context);
    if (IsBfloat16(a.inputs[0])) return RunForward<Bfloat16>(backend, shape, a);
    RunForward<float>(backend, shape, a);
  });
}

absl::StatusOr<Kernel> Gradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[1]](const KernelContext& context,
                                                              const KernelArguments& a) {
    const AttentionShape shape = ShapeOfAttention(attributes, qkv, context);
    if (IsBfloat16(a.inputs[1])) return RunGradient<Bfloat16>(backend, shape, a);
    RunGradient<float>(backend, shape, a);
  });
}

}  // namespace

KernelList AttentionKernels() { return {{"attention", Forward}, {"attention_gradient", Gradient}}; }

}  // namespace stagecoach::cpu
