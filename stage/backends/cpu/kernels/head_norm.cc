// Head by head with rms_norm's loops: the heads of a row lie side by side, those of queries first,
// then those of keys, then those of values, which stay (operations/attention/head_norm.h).
#include "operations/attention/head_norm.h"

#include <algorithm>
#include <cstring>

#include "operations/attention/packed_heads.h"
#include "stage/backends/cpu/column_sums.h"
#include "stage/backends/cpu/float_view.h"
#include "stage/backends/cpu/kernel_list.h"
#include "stage/backends/cpu/kernels/rms_norm.h"

namespace stagecoach::cpu {
namespace {

struct Heads {
  explicit Heads(const PackedHeads& packed)
      : queries(packed.heads),
        keys(packed.key_heads),
        head_width(packed.head_width),
        query_width(queries * head_width),
        normed_width((queries + keys) * head_width),
        width(normed_width + keys * head_width) {}
  int64_t queries, keys, head_width, query_width, normed_width, width;
  int64_t statistics() const { return queries + keys; }
  void CopyValues(const float* from, float* to) const {
    if (from == to) return;
    std::memcpy(to + normed_width, from + normed_width,
                static_cast<size_t>(width - normed_width) * sizeof(float));
  }
};

template <typename Attributes>
Heads HeadsOf(const Call& call, const CallTypes& types) {
  const auto attributes = AttributesOf<Attributes>(call);
  return Heads(PackedHeadsOf(types.inputs[0], attributes.heads, attributes.key_heads));
}

absl::StatusOr<Kernel> Forward(CpuBackend& backend, const Call& call, const CallTypes& types,
                               DType) {
  const auto epsilon = static_cast<float>(AttributesOf<HeadNormAttributes>(call).epsilon);
  return Kernel([&backend, epsilon, heads = HeadsOf<HeadNormAttributes>(call, types)](
                    const KernelContext&, const KernelArguments& a) {
    const FloatInput x(a.inputs[0]);
    const FloatOutput y(a.outputs[0]);
    const float *query = a.inputs[1].data<float>(), *key = a.inputs[2].data<float>();
    float* const rstd = a.outputs[1].data<float>();
    backend.ForEachPiece(
        a.inputs[0], kSmallRowBlock, heads.width, 2,
        [&](int64_t first, int64_t count, const Room& room) {
          const int64_t start = first * heads.width, elements = count * heads.width;
          const float* from = x.Read(start, elements, room[0]);
          float* to = y.At(start, room[1]);
          for (int64_t r = first; r < first + count; ++r, from += heads.width, to += heads.width) {
            float* const own = rstd + r * heads.statistics();
            RmsNormRows(from, query, epsilon, to, own, heads.queries, heads.head_width);
            RmsNormRows(from + heads.query_width, key, epsilon, to + heads.query_width,
                        own + heads.queries, heads.keys, heads.head_width);
            heads.CopyValues(from, to);
          }
          y.Finish(start, elements, room[1]);
        });
  });
}

absl::StatusOr<Kernel> InputGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                     DType) {
  return Kernel([&backend, heads = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext&, const KernelArguments& a) {
    const FloatInput dy(a.inputs[0]), x(a.inputs[1]);
    const FloatOutput dx(a.outputs[0]);
    const float *query = a.inputs[2].data<float>(), *key = a.inputs[3].data<float>();
    const float* const rstd = a.inputs[4].data<float>();
    backend.ForEachPiece(
        a.inputs[0], kSmallRowBlock, heads.width, 3,
        [&](int64_t first, int64_t count, const Room& room) {
          const int64_t start = first * heads.width, elements = count * heads.width;
          const float *gradient = dy.Read(start, elements, room[0]),
                      *from = x.Read(start, elements, room[1]);
          float* to = dx.At(start, room[2]);
          for (int64_t r = first; r < first + count; ++r) {
            const float* const own = rstd + r * heads.statistics();
            RmsNormGradientRows(gradient, from, query, own, nullptr, to, heads.queries,
                                heads.head_width);
            const int64_t keys = heads.query_width;
            RmsNormGradientRows(gradient + keys, from + keys, key, own + heads.queries, nullptr,
                                to + keys, heads.keys, heads.head_width);
            heads.CopyValues(gradient, to);
            gradient += heads.width;
            from += heads.width;
            to += heads.width;
          }
          dx.Finish(start, elements, room[2]);
        });
  });
}

// Sums over the rows for each head, which are then added in order.
absl::StatusOr<Kernel> WeightGradient(CpuBackend& backend, const Call& call, const CallTypes& types,
                                      DType) {
  return Kernel([&backend, heads = HeadsOf<HeadNormGradientAttributes>(call, types)](
                    const KernelContext&, const KernelArguments& a) {
    float* const sums =
        backend.ReserveShared(heads.normed_width * static_cast<int64_t>(sizeof(float)));
    if (sums == nullptr) return;
    std::fill_n(sums, heads.normed_width, 0.0f);
    const float* const rstd = a.inputs[2].data<float>();
    const Tensor operands[] = {a.inputs[0], a.inputs[1]};
    SumColumns(backend, operands, heads.width, heads.normed_width, sums,
               [&](const ColumnBlock& block) {
                 RmsNormGradientColumns(block, rstd, heads.statistics(), heads.head_width);
               });
    for (int64_t head = 0; head < heads.statistics(); ++head) {
      AddTo(sums + head * heads.head_width, a.adds[head < heads.queries ? 0 : 1].data<float>(),
            heads.head_width);
    }
  });
}

}  // namespace

KernelList HeadNormKernels() {
  return {{"head_norm", Forward},
          {"head_norm_input_gradient", InputGradient},
          {"head_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::cpu
