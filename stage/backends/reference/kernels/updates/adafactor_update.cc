#include "operations/updates/adafactor_update.h"

#include <cmath>

#include "stage/backends/reference/kernel_list.h"
#include "stage/backends/update_operands.h"

namespace stagecoach::reference {
namespace {

double MeanOfSquares(const float* g, int64_t count, int64_t stride, float scale) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = g[i * stride] * scale;
    sum += x * x;
  }
  return sum / static_cast<double>(count);
}

// Moves a mean of squares, and returns it.
float Moved(float& mean, double square, const AdafactorNumbers& f) {
  mean = f.decay * mean + f.rest * (static_cast<float>(square) + f.epsilon1);
  return mean;
}

// Writes u over the gradient g of one matrix.
void DivideMatrix(float* g, float* row, float* column, const FactoredShape& shape,
                  const AdafactorNumbers& f) {
  double sum = 0;
  for (int64_t i = 0; i < shape.rows; ++i) {
    sum +=
        Moved(row[i], MeanOfSquares(g + i * shape.columns, shape.columns, 1, f.gradient_scale), f);
  }
  for (int64_t j = 0; j < shape.columns; ++j) {
    Moved(column[j], MeanOfSquares(g + j, shape.rows, shape.columns, f.gradient_scale), f);
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(shape.rows));
  for (int64_t i = 0; i < shape.rows; ++i) {
    const float factor = 1.0f / std::sqrt(row[i] / mean);
    for (int64_t j = 0; j < shape.columns; ++j) {
      float& u = g[i * shape.columns + j];
      u = u * f.gradient_scale * factor / std::sqrt(column[j]);
    }
  }
}

absl::StatusOr<Kernel> Update(ReferenceBackend& backend, const Call& call, const CallTypes& types,
                              DType) {
  const auto attributes = AttributesOf<AdafactorUpdateAttributes>(call);
  const FactoredShape shape(types.adds[1].shape);
  return Kernel(
      [&backend, attributes, shape](const KernelContext& context, const KernelArguments& a) {
        const AdafactorNumbers f = NumbersOf(attributes, *context.update);
        const UpdateOperands of(a);
        const int64_t n = of.value.elements();
        if (n == 0) return;
        float *w = of.value.data<float>(), *u = of.gradient.data<float>();
        float* const last = of.state(of.states - 1).data<float>();  // row, or square
        float* const m = attributes.beta1 != 0 ? of.state(of.states - 2).data<float>() : nullptr;
        for (int64_t k = 0; k < shape.matrices; ++k) {
          DivideMatrix(u + k * shape.rows * shape.columns, last + k * shape.rows,
                       of.state(0).data<float>() + k * shape.columns, shape, f);
        }
        for (int64_t i = 0; !shape.factored && i < n; ++i) {
          const float g = u[i] * f.gradient_scale;
          u[i] = g / std::sqrt(Moved(last[i], g * g, f));
        }
        double values = 0, directions = 0;  // squares
        for (int64_t i = 0; i < n; ++i) {
          values += static_cast<double>(w[i]) * w[i];
          directions += static_cast<double>(u[i]) * u[i];
        }
        const float clip = f.ClipOf(directions, n), scale = f.ScaleOf(values, n);
        for (int64_t i = 0; i < n; ++i) {
          float step = clip * u[i];
          if (m != nullptr) step = m[i] = f.beta1 * m[i] + (1.0f - f.beta1) * step;
          w[i] -= f.learning_rate * (scale * step + f.weight_decay * w[i]);
        }
        if (of.copy.valid()) backend.Convert(of.value, of.copy);
      });
}

}  // namespace

KernelList AdafactorUpdateKernels() { return {{"adafactor_update", Update}}; }

}  // namespace stagecoach::reference
