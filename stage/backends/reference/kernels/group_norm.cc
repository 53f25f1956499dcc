// Groups of channels of a sample by plain loops (operations/norms/group_norm.h).
#include "operations/norms/group_norm.h"

#include <cmath>
#include <functional>

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

struct Groups {
  int64_t places, channels, groups;
  int64_t width() const { return channels / groups; }
  double count() const { return static_cast<double>(places * width()); }
};

Groups GroupsOf(const ValueType& x, const ValueType& mean) {
  const int64_t channels = x.shape.back();
  return {x.shape.elements() / channels, channels, mean.shape.back()};
}

// visit(i, c) for the elements of a group of a sample, with their channel.
void ForGroup(const Groups& s, int64_t sample, int64_t group,
              const std::function<void(int64_t i, int64_t c)>& visit) {
  for (int64_t p = 0; p < s.places; ++p) {
    for (int64_t c = group * s.width(); c < (group + 1) * s.width(); ++c) {
      visit((sample * s.places + p) * s.channels + c, c);
    }
  }
}

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes& types, DType) {
  const double epsilon = AttributesOf<GroupNormAttributes>(call).epsilon;
  const Groups s = GroupsOf(types.inputs[0], types.outputs[1]);
  return Kernel([epsilon, s](const KernelContext&, const KernelArguments& a) {
    const float *x = a.inputs[0].data<float>(), *weight = a.inputs[1].data<float>(),
                *bias = a.inputs[2].data<float>();
    float* y = a.outputs[0].data<float>();
    for (int64_t row = 0; row < a.outputs[1].elements(); ++row) {
      const int64_t sample = row / s.groups, group = row % s.groups;
      double mean = 0, variance = 0;
      ForGroup(s, sample, group, [&](int64_t i, int64_t) { mean += x[i] / s.count(); });
      ForGroup(s, sample, group,
               [&](int64_t i, int64_t) { variance += (x[i] - mean) * (x[i] - mean) / s.count(); });
      const double rstd = 1.0 / std::sqrt(variance + epsilon);
      ForGroup(s, sample, group, [&](int64_t i, int64_t c) {
        y[i] = static_cast<float>((x[i] - mean) * rstd * weight[c] + bias[c]);
      });
      a.outputs[1].data<float>()[row] = static_cast<float>(mean);
      a.outputs[2].data<float>()[row] = static_cast<float>(rstd);
    }
  });
}

absl::StatusOr<Kernel> Sums(ReferenceBackend&, const Call&, const CallTypes& types, DType) {
  const Groups s = GroupsOf(types.inputs[0], types.inputs[2]);
  return Kernel([s](const KernelContext&, const KernelArguments& a) {
    for (int64_t of = 0; of < a.outputs[0].elements(); ++of) {
      const int64_t sample = of / s.channels, c = of % s.channels;
      const int64_t row = sample * s.groups + c / s.width();
      const double mean = a.inputs[2].data<float>()[row], rstd = a.inputs[3].data<float>()[row];
      double d_weight = 0, d_bias = 0;
      for (int64_t p = 0; p < s.places; ++p) {
        const int64_t i = (sample * s.places + p) * s.channels + c;
        const double dy = a.inputs[0].data<float>()[i], x = a.inputs[1].data<float>()[i];
        d_weight += dy * ((x - mean) * rstd);
        d_bias += dy;
      }
      a.outputs[0].data<float>()[of] = static_cast<float>(d_weight);
      a.outputs[1].data<float>()[of] = static_cast<float>(d_bias);
    }
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call&, const CallTypes& types,
                                     DType) {
  const Groups s = GroupsOf(types.inputs[0], types.inputs[3]);
  return Kernel([s](const KernelContext&, const KernelArguments& a) {
    const float *dy = a.inputs[0].data<float>(), *x = a.inputs[1].data<float>(),
                *weight = a.inputs[2].data<float>();
    for (int64_t row = 0; row < a.inputs[3].elements(); ++row) {
      const int64_t sample = row / s.groups, group = row % s.groups;
      const double mean = a.inputs[3].data<float>()[row], rstd = a.inputs[4].data<float>()[row];
      double mean_g = 0, mean_gx = 0;
      for (int64_t c = group * s.width(); c < (group + 1) * s.width(); ++c) {
        const int64_t of = sample * s.channels + c;
        mean_gx += double{weight[c]} * a.inputs[5].data<float>()[of] / s.count();
        mean_g += double{weight[c]} * a.inputs[6].data<float>()[of] / s.count();
      }
      ForGroup(s, sample, group, [&](int64_t i, int64_t c) {
        const double xhat = (x[i] - mean) * rstd, g = double{dy[i]} * weight[c];
        a.outputs[0].data<float>()[i] = static_cast<float>(rstd * (g - mean_g - xhat * mean_gx));
      });
    }
  });
}

absl::StatusOr<Kernel> WeightGradient(ReferenceBackend&, const Call&, const CallTypes& types,
                                      DType) {
  return Kernel(
      [channels = types.adds[0].shape.back()](const KernelContext&, const KernelArguments& a) {
        for (const size_t of : {size_t{0}, size_t{1}}) {
          for (int64_t c = 0; c < channels; ++c) {
            double sum = 0;
            for (int64_t i = c; i < a.inputs[of].elements(); i += channels) {
              sum += a.inputs[of].data<float>()[i];
            }
            a.adds[of].data<float>()[c] += static_cast<float>(sum);
          }
        }
      });
}

}  // namespace

KernelList GroupNormKernels() {
  return {{"group_norm", Forward},
          {"group_norm_sums", Sums},
          {"group_norm_input_gradient", InputGradient},
          {"group_norm_weight_gradient", WeightGradient}};
}

}  // namespace stagecoach::reference
