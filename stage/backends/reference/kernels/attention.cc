// Multi-head attention (operations/attention/attention.h), one (sequence, head) unit at a time, the
// whole score matrix in double.
#include <cmath>
#include <vector>

#include "base/errors/check.h"
#include "base/threads/progress.h"
#include "stage/backends/attention_shape.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

// One head of one sequence: strided views into the packed arrays.
struct Unit {
  const AttentionShape& shape;
  int64_t sequence, head;

  int64_t head_width() const { return shape.width / shape.heads; }
  // part 0: queries, 1: keys, 2: values.
  int64_t Packed(int64_t row, int part) const {
    const int64_t keys = shape.keys(), key_head = head / (shape.heads / keys);
    const int64_t place = part == 0 ? head : shape.heads + (part - 1) * keys + key_head;
    return (sequence * shape.context + row) * shape.packed_width() + place * head_width();
  }
  int64_t Output(int64_t row) const {
    return (sequence * shape.context + row) * shape.width + head * head_width();
  }
  int64_t Statistic(int64_t row) const {
    return (sequence * shape.heads + head) * shape.context + row;
  }
  // What a probability is multiplied by: 1 without dropout, else 0 or 1 / (1 - rate).
  double Keep(int64_t row, int64_t column) const {
    if (shape.dropout <= 0.0) return 1.0;
    const uint64_t element = static_cast<uint64_t>(Statistic(row) * shape.context + column);
    if (RandomBits(shape.stream, element) < DropoutThreshold(shape.dropout)) return 0.0;
    return static_cast<float>(1.0 / (1.0 - shape.dropout));
  }
  double Score(const float* qkv, int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t i = 0; i < head_width(); ++i) {
      sum += double{qkv[Packed(row, 0) + i]} * qkv[Packed(column, 1) + i];
    }
    return sum / std::sqrt(static_cast<double>(head_width()));
  }
};

void ForwardUnit(const Unit& unit, const float* qkv, float* out, float* log_sum_exp) {
  const int64_t width = unit.head_width();
  std::vector<double> probability(unit.shape.context), sums(width);
  for (int64_t row = 0; row < unit.shape.context; ++row) {
    TickProgress();
    double largest = -INFINITY, total = 0;
    const int64_t visible = unit.shape.visible(row);
    for (int64_t c = 0; c < visible; ++c) {
      probability[c] = unit.Score(qkv, row, c);
      largest = std::max(largest, probability[c]);
    }
    for (int64_t c = 0; c < visible; ++c) total += std::exp(probability[c] - largest);
    const double normalizer = largest + std::log(total);
    log_sum_exp[unit.Statistic(row)] = static_cast<float>(normalizer);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t c = 0; c < visible; ++c) {
      const double p = std::exp(probability[c] - normalizer) * unit.Keep(row, c);
      for (int64_t i = 0; i < width; ++i) sums[i] += p * qkv[unit.Packed(c, 2) + i];
    }
    for (int64_t i = 0; i < width; ++i) out[unit.Output(row) + i] = static_cast<float>(sums[i]);
  }
}

struct Gradients {
  const float *d_out, *qkv, *out, *log_sum_exp;
  float* d_qkv;
};

// With P the probabilities, Z their dropout factors: dV = (P Z)^T dO; dP = Z * (dO V^T);
// dS = P * (dP - rowsum(P * dP)), and rowsum(P * dP) = rowsum(dO * O); dQ = dS K, dK = dS^T Q,
// scaled. dk and dv add, so that the heads that share a key head add up.
void BackwardUnit(const Unit& unit, const Gradients& g, double* dk, double* dv) {
  const int64_t context = unit.shape.context, width = unit.head_width();
  const float *qkv = g.qkv, *d_out = g.d_out;
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  std::vector<double> dq(width);
  for (int64_t row = 0; row < context; ++row) {
    TickProgress();
    double delta = 0;
    for (int64_t i = 0; i < width; ++i) {
      delta += double{d_out[unit.Output(row) + i]} * g.out[unit.Output(row) + i];
    }
    std::fill(dq.begin(), dq.end(), 0.0);
    for (int64_t c = 0; c < unit.shape.visible(row); ++c) {
      const double p = std::exp(unit.Score(qkv, row, c) - g.log_sum_exp[unit.Statistic(row)]);
      const double keep = unit.Keep(row, c);
      double dp = 0;
      for (int64_t i = 0; i < width; ++i) {
        dp += double{d_out[unit.Output(row) + i]} * qkv[unit.Packed(c, 2) + i];
      }
      const double ds = p * (dp * keep - delta) * scale;
      for (int64_t i = 0; i < width; ++i) {
        dv[c * width + i] += p * keep * d_out[unit.Output(row) + i];
        dq[i] += ds * qkv[unit.Packed(c, 1) + i];
        dk[c * width + i] += ds * qkv[unit.Packed(row, 0) + i];
      }
    }
    float* const target = g.d_qkv + unit.Packed(row, 0);
    for (int64_t i = 0; i < width; ++i) target[i] = static_cast<float>(dq[i]);
  }
}

// All heads that read one key head.
void BackwardGroup(const AttentionShape& shape, const Gradients& g, int64_t sequence,
                   int64_t key_head) {
  const int64_t context = shape.context, width = shape.head_width();
  const int64_t group = shape.heads / shape.keys();
  std::vector<double> dk(context * width, 0.0), dv(context * width, 0.0);
  for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
    BackwardUnit(Unit{shape, sequence, head}, g, dk.data(), dv.data());
  }
  const Unit any{shape, sequence, key_head * group};
  for (int64_t row = 0; row < context; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      g.d_qkv[any.Packed(row, 1) + i] = static_cast<float>(dk[row * width + i]);
      g.d_qkv[any.Packed(row, 2) + i] = static_cast<float>(dv[row * width + i]);
    }
  }
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel(
      [attributes, qkv = types.inputs[0]](const KernelContext& context, const KernelArguments& a) {
        const AttentionShape shape = ShapeOfAttention(attributes, qkv, context);
        CHECK_EQ(shape.width % shape.heads, 0) << "heads must divide the width";
        for (int64_t s = 0; s < shape.sequences; ++s) {
          for (int64_t h = 0; h < shape.heads; ++h) {
            ForwardUnit(Unit{shape, s, h}, a.inputs[0].data<float>(), a.outputs[0].data<float>(),
                        a.outputs[1].data<float>());
          }
        }
      });
}

absl::StatusOr<Kernel> Gradient(ReferenceBackend&, const Call& call, const CallTypes& types,
                                DType) {
  const auto attributes = AttributesOf<AttentionAttributes>(call);
  return Kernel(
      [attributes, qkv = types.inputs[1]](const KernelContext& context, const KernelArguments& a) {
        const AttentionShape shape = ShapeOfAttention(attributes, qkv, context);
        const Gradients g = {a.inputs[0].data<float>(), a.inputs[1].data<float>(),
                             a.inputs[2].data<float>(), a.inputs[3].data<float>(),
                             a.outputs[0].data<float>()};
        for (int64_t s = 0; s < shape.sequences; ++s) {
          for (int64_t h = 0; h < shape.keys(); ++h) BackwardGroup(shape, g, s, h);
        }
      });
}

}  // namespace

KernelList AttentionKernels() { return {{"attention", Forward}, {"attention_gradient", Gradient}}; }

}  // namespace stagecoach::reference
