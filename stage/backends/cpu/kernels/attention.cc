// Attention (operations/attention/attention.h): one task per (sequence, head); of the backward per
// (sequence, key head).
#include "stage/backends/cpu/kernels/attention.h"

#include <algorithm>

#include "operations/attention/attention_scratch.h"
#include "stage/backends/cpu/attention_units.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"

namespace stagecoach::cpu {
namespace {

// Offsets of a unit in queries, keys, outputs and statistics.
struct UnitPlace {
  AttentionExtent extent;
  int64_t query, key, out, statistic;
};

// `group` heads from one on that read the same key head.
UnitPlace PlaceUnit(const AttentionForm& form, const int32_t* ids, int64_t index, int64_t group) {
  const int64_t sequence = index * group / form.heads, head = index * group % form.heads;
  const int64_t key_head = head / form.group(), width = form.head_width;
  return {.extent = ExtentOf(form, ids, sequence),
          .query = sequence * form.rows * form.query_stride() + head * width,
          .key = sequence * form.columns * form.key_stride() + key_head * width,
          .out = sequence * form.rows * form.width() + head * width,
          .statistic = index * group * form.rows};
}

template <typename T>
AttentionUnit<T> UnitAt(const AttentionForm& form, const UnitPlace& place,
                        const AttentionParts<const T>& in, int64_t group) {
  return {.queries = in.queries + place.query,
          .query_stride = form.query_stride(),
          .keys = in.keys + place.key,
          .values = in.values + place.key,
          .key_stride = form.key_stride(),
          .group = group,
          .out_stride = form.width(),
          .extent = place.extent,
          .head_width = form.head_width,
          .statistics = form.rows,
          .dropout = form.dropout,
          .stream = form.stream,
          .first_element = place.statistic * form.columns,
          .row_elements = form.columns};
}

// Zeros in rows [first, end) of some neighbouring elements.
template <typename T>
void FillRows(int64_t first, int64_t end, int64_t width, T* rows, int64_t stride) {
  for (int64_t r = first; r < end; ++r) std::fill_n(rows + r * stride, width, T(0.0f));
}

// T: the type of the activations and of their gradients.
template <typename T>
void Forward(CpuBackend& backend, const AttentionForm& form, const AttentionInputs& inputs,
             const Tensor& out, const Tensor& log_sum_exp) {
  const auto in = PartsOf<const T>(form, inputs.q, inputs.kv);
  const int64_t floats = AttentionScratch::Forward(form.columns, form.head_width);
  const int rooms = backend.ReserveRooms(floats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  T* const outs = out.data<T>();
  float* const statistics = log_sum_exp.data<float>();
  const int64_t units = form.sequences * form.heads;
  backend.ForEachBlock(rooms, units, 1, [&](int64_t index, int64_t, int worker) {
    const UnitPlace place = PlaceUnit(form, inputs.ids(), index, 1);
    AttentionForwardUnit(UnitAt(form, place, in, 1), outs + place.out, statistics + place.statistic,
                         backend.WorkerScratch(worker));
    FillRows(place.extent.rows, form.rows, form.head_width, outs + place.out, form.width());
    FillRows(place.extent.rows, form.rows, 1, statistics + place.statistic, 1);
  });
}

template <typename T>
void Backward(CpuBackend& backend, const AttentionForm& form, const AttentionInputs& inputs,
              const AttentionGradientTensors& tensors) {
  const auto in = PartsOf<const T>(form, inputs.q, inputs.kv);
  const auto all = PartsOf<T>(form, tensors.d_q, tensors.d_kv);
  const int64_t floats = AttentionScratch::Backward(form.columns, form.head_width);
  const int rooms = backend.ReserveRooms(floats * static_cast<int64_t>(sizeof(float)));
  if (rooms == 0) return;
  const T *d_out = tensors.d_out.data<T>(), *out = tensors.out.data<T>();
  const float* log_sum_exp = tensors.log_sum_exp.data<float>();
  const int64_t units = form.sequences * form.key_heads, group = form.group();
  backend.ForEachBlock(rooms, units, 1, [&](int64_t index, int64_t, int worker) {
    const UnitPlace place = PlaceUnit(form, inputs.ids(), index, group);
    const AttentionParts<T> d = {all.queries + place.query, all.keys + place.key,
                                 all.values + place.key};
    AttentionBackwardUnit(UnitAt(form, place, in, group), d_out + place.out, out + place.out,
                          log_sum_exp + place.statistic, d, backend.WorkerScratch(worker));
    const AttentionExtent& extent = place.extent;
    const int64_t width = form.head_width;
    FillRows(extent.rows, form.rows, group * width, d.queries, form.query_stride());
    FillRows(extent.columns, form.columns, width, d.keys, form.key_stride());
    FillRows(extent.columns, form.columns, width, d.values, form.key_stride());
  });
}

absl::StatusOr<Kernel> PrepareForward(CpuBackend& backend, const Call& call, const CallTypes& types,
                                      DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[0]](const KernelContext& context,
                                                              const KernelArguments& a) {
    RunAttention(backend, FormOfAttention(attributes, qkv, context),
                 {a.inputs[0], a.inputs[0], a.inputs.size() > 1 ? &a.inputs[1] : nullptr},
                 a.outputs[0], a.outputs[1]);
  });
}

absl::StatusOr<Kernel> PrepareGradient(CpuBackend& backend, const Call& call,
                                       const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel([&backend, attributes, qkv = types.inputs[1]](const KernelContext& context,
                                                              const KernelArguments& a) {
    RunAttentionGradient(backend, FormOfAttention(attributes, qkv, context),
                         {a.inputs[1], a.inputs[1], a.inputs.size() > 4 ? &a.inputs[4] : nullptr},
                         {a.inputs[0], a.inputs[2], a.inputs[3], a.outputs[0], a.outputs[0]});
  });
}

}  // namespace

void RunAttention(CpuBackend& backend, const AttentionForm& form, const AttentionInputs& inputs,
                  const Tensor& out, const Tensor& log_sum_exp) {
  if (IsBfloat16(inputs.q)) return Forward<Bfloat16>(backend, form, inputs, out, log_sum_exp);
  Forward<float>(backend, form, inputs, out, log_sum_exp);
}

void RunAttentionGradient(CpuBackend& backend, const AttentionForm& form,
                          const AttentionInputs& inputs, const AttentionGradientTensors& tensors) {
  if (IsBfloat16(inputs.q)) return Backward<Bfloat16>(backend, form, inputs, tensors);
  Backward<float>(backend, form, inputs, tensors);
}

KernelList AttentionKernels() {
  return {{"attention", PrepareForward}, {"attention_gradient", PrepareGradient}};
}

}  // namespace stagecoach::cpu
