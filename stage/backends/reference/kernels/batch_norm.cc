#include "operations/norms/batch_norm.h"

#include <cmath>

#include "stage/backends/moments.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Forward(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const double epsilon = AttributesOf<BatchNormAttributes>(call).epsilon;
  return Kernel([epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[1].elements(), rows = a.inputs[0].elements() / channels;
    const auto count = static_cast<double>(rows);
    for (int64_t c = 0; c < channels; ++c) {
      const float* x = a.inputs[0].data<float>() + c;
      float* y = a.outputs[0].data<float>() + c;
      double mean = 0, variance = 0;
      for (int64_t r = 0; r < rows; ++r) mean += x[r * channels] / count;
      for (int64_t r = 0; r < rows; ++r) {
        variance += (x[r * channels] - mean) * (x[r * channels] - mean) / count;
      }
      const double rstd = 1.0 / std::sqrt(variance + epsilon);
      const double weight = a.inputs[1].data<float>()[c], bias = a.inputs[2].data<float>()[c];
      for (int64_t r = 0; r < rows; ++r) {
        y[r * channels] = static_cast<float>((x[r * channels] - mean) * rstd * weight + bias);
      }
      a.outputs[1].data<float>()[c] = static_cast<float>(mean);
      a.outputs[2].data<float>()[c] = static_cast<float>(rstd);
      a.outputs[3].data<float>()[c] = static_cast<float>(variance);
    }
  });
}

absl::StatusOr<Kernel> Sums(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[2].elements(), rows = a.inputs[0].elements() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float *dy = a.inputs[0].data<float>() + c, *x = a.inputs[1].data<float>() + c;
      const double mean = a.inputs[2].data<float>()[c], rstd = a.inputs[3].data<float>()[c];
      double d_weight = 0, d_bias = 0;
      for (int64_t r = 0; r < rows; ++r) {
        d_weight += dy[r * channels] * ((x[r * channels] - mean) * rstd);
        d_bias += dy[r * channels];
      }
      a.outputs[0].data<float>()[c] = static_cast<float>(d_weight);
      a.outputs[1].data<float>()[c] = static_cast<float>(d_bias);
    }
  });
}

absl::StatusOr<Kernel> InputGradient(ReferenceBackend&, const Call&, const CallTypes&, DType) {
  return Kernel([](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[2].elements(), n = a.inputs[0].elements();
    const auto count = static_cast<double>(n / channels);
    for (int64_t i = 0; i < n; ++i) {
      const auto of = [&](size_t input) {
        return static_cast<double>(a.inputs[input].data<float>()[i % channels]);
      };
      const double dy = a.inputs[0].data<float>()[i], x = a.inputs[1].data<float>()[i];
      const double xhat = (x - of(3)) * of(4);
      const double gradient = of(2) * of(4) * (dy - of(6) / count - xhat * of(5) / count);
      a.outputs[0].data<float>()[i] = static_cast<float>(gradient);
    }
  });
}

absl::StatusOr<Kernel> Fixed(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  const double epsilon = AttributesOf<BatchNormFixedAttributes>(call).epsilon;
  return Kernel([epsilon](const KernelContext&, const KernelArguments& a) {
    const int64_t channels = a.inputs[1].elements();
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) {
      const auto of = [&](size_t input) {
        return static_cast<double>(a.inputs[input].data<float>()[i % channels]);
      };
      const double xhat = (a.inputs[0].data<float>()[i] - of(3)) / std::sqrt(of(4) + epsilon);
      a.outputs[0].data<float>()[i] = static_cast<float>(xhat * of(1) + of(2));
    }
  });
}

absl::StatusOr<Kernel> Fold(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return FoldMoments(call);
}

absl::StatusOr<Kernel> Commit(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return CommitMoments(call);
}

}  // namespace

KernelList BatchNormKernels() {
  return {{"batch_norm", Forward},
          {"batch_norm_sums", Sums},
          {"batch_norm_input_gradient", InputGradient},
          {"batch_norm_fixed", Fixed},
          {"batch_norm_fold", Fold},
          {"batch_norm_commit", Commit}};
}

}  // namespace stagecoach::reference
