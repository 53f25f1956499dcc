#include "operations/mean_squared_error.h"

#include "stage/backends/reference/kernel_list.h"

namespace stagecoach::reference {
namespace {

absl::StatusOr<Kernel> Loss(ReferenceBackend&, const Call& call, const CallTypes&, DType) {
  return Kernel([gradient = AttributesOf<MeanSquaredErrorAttributes>(call).gradient](
                    const KernelContext&, const KernelArguments& a) {
    const float *prediction = a.inputs[0].data<float>(), *target = a.inputs[1].data<float>();
    const double scale = gradient ? 2.0 * a.inputs[2].data<float>()[0] : 0.0;
    double sum = 0;
    for (int64_t i = 0; i < a.inputs[0].elements(); ++i) {
      const double difference = double{prediction[i]} - target[i];
      sum += difference * difference;
      if (gradient) a.outputs[0].data<float>()[i] = static_cast<float>(difference * scale);
    }
    double* const sums = a.outputs[gradient ? 1 : 0].data<double>();
    sums[0] = sum;
    sums[1] = static_cast<double>(a.inputs[0].elements());
  });
}

}  // namespace

KernelList MeanSquaredErrorKernels() { return {{"mean_squared_error", Loss}}; }

}  // namespace stagecoach::reference
