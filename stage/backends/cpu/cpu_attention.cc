// Attention: one task per (sequence, head); of the backward per (sequence, key head).
#include "base/check.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/cpu/kernels.h"

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
                   .first_element = index * group * shape.context * shape.context},
          .qkv_offset = qkv_offset,
          .out_offset = sequence * shape.context * shape.width + head * head_width,
          .statistic_offset = index * group * shape.context};
}

void CheckShape(const AttentionShape& shape, const Tensor& qkv) {
  CHECK(shape.width % shape.heads == 0 && shape.heads % shape.keys() == 0)
      << shape.heads << " heads must divide the width, " << shape.keys() << " key heads the heads";
  CHECK_EQ(qkv.elements(), shape.sequences * shape.context * shape.packed_width()) << "attention";
}

}  // namespace

// T: the type of the activations and of their gradients.
template <typename T>
void CpuBackend::RunAttention(const AttentionForwardArgs& args) {
  const AttentionShape& shape = args.shape;
  CheckShape(shape, args.qkv);
  const int64_t floats = AttentionForwardScratch(shape.context, shape.width / shape.heads);
  if (!ReserveWorkers(floats * static_cast<int64_t>(sizeof(float)))) return;
  const T* qkv = args.qkv.data<T>();
  T* out = args.out.data<T>();
  float* log_sum_exp = args.log_sum_exp.data<float>();
  pool_.Run(shape.sequences * shape.heads, [&](int64_t index, int worker) {
    const UnitPlace<T> place = PlaceUnit(shape, qkv, index, 1);
    AttentionForwardUnit(place.unit, out + place.out_offset, log_sum_exp + place.statistic_offset,
                         WorkerScratch(worker));
  });
}

template <typename T>
void CpuBackend::RunAttention(const AttentionBackwardArgs& args) {
  const AttentionShape& shape = args.shape;
  CheckShape(shape, args.qkv);
  const int64_t floats = AttentionBackwardScratch(shape.context, shape.width / shape.heads);
  if (!ReserveWorkers(floats * static_cast<int64_t>(sizeof(float)))) return;
  const T *qkv = args.qkv.data<T>(), *d_out = args.d_out.data<T>(), *out = args.out.data<T>();
  const float* log_sum_exp = args.log_sum_exp.data<float>();
  T* d_qkv = args.d_qkv.data<T>();
  pool_.Run(shape.sequences * shape.keys(), [&](int64_t index, int worker) {
    const UnitPlace<T> place = PlaceUnit(shape, qkv, index, shape.heads / shape.keys());
    AttentionBackwardUnit(place.unit, d_out + place.out_offset, out + place.out_offset,
                          log_sum_exp + place.statistic_offset, d_qkv + place.qkv_offset,
                          WorkerScratch(worker));
  });
}

void CpuBackend::AttentionForward(const AttentionForwardArgs& args) {
  if (args.qkv.dtype() == DType::kBF16) {
    RunAttention<Bfloat16>(args);
  } else {
    RunAttention<float>(args);
  }
}

void CpuBackend::AttentionBackward(const AttentionBackwardArgs& args) {
  if (args.qkv.dtype() == DType::kBF16) {
    RunAttention<Bfloat16>(args);
  } else {
    RunAttention<float>(args);
  }
}

}  // namespace stagecoach::cpu
