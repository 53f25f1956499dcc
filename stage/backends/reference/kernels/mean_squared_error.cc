#include "operations/losses/mean_squared_error.h"

#include "operations/losses/loss_types.h"
#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Loss(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([attributes = AttributesOf<MeanSquaredErrorAttributes>(call)](
                    const KernelContext&, const KernelArguments& a) {
    const LossForm form{attributes.weighted, attributes.gradient};
    const float *prediction = a.inputs[0].data<float>(), *target = a.inputs[1].data<float>();
    const double scale = form.gradient ? 2.0 * a.inputs[ScalePlace(form)].data<float>()[0] : 0.0;
    const int64_t n = a.inputs[0].elements();
    const int64_t numbers = form.weighted ? n / a.inputs[2].elements() : n;  // of a sample
    double sum = 0, terms = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double weight = form.weighted ? a.inputs[2].data<float>()[i / numbers] : 1.0;
      const double difference = weight == 0 ? 0 : double{prediction[i]} - target[i];
      sum += weight * (difference * difference);
      terms += weight;
      if (!form.gradient) continue;
      a.outputs[0].data<float>()[i] = static_cast<float>(difference * scale * weight);
    }
    double* const sums = a.outputs[form.gradient ? 1 : 0].data<double>();
    sums[0] = sum;
    sums[1] = terms;
  });
}

}  // namespace

KernelList MeanSquaredErrorKernels() { return {{"mean_squared_error", Loss}}; }

}  // namespace stagecoach::reference
