#include <algorithm>
#include <cmath>

#include "base/errors/check.h"
#include "stage/backends/lamb_rate.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {

void ReferenceBackend::Sgd(const SgdArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "sgd";
  float *w = args.value.data<float>(), *g = args.gradient.data<float>();
  float* velocity = args.velocity.valid() ? args.velocity.data<float>() : nullptr;
  for (int64_t i = 0; i < args.value.elements(); ++i) {
    float update = g[i] * args.gradient_scale;
    if (velocity != nullptr) {
      velocity[i] = args.momentum * velocity[i] + update;
      update = args.nesterov ? update + args.momentum * velocity[i] : velocity[i];
    }
    w[i] -= args.learning_rate * (update + args.weight_decay * w[i]);
  }
  if (args.compute.valid()) Convert(args.value, args.compute);
}

void ReferenceBackend::AdamW(const AdamWArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "adamw";
  float *w = args.value.data<float>(), *m = args.m.data<float>(), *v = args.v.data<float>();
  const float* gradient = args.gradient.data<float>();
  for (int64_t i = 0; i < args.value.elements(); ++i) {
    const float g = gradient[i] * args.gradient_scale;
    m[i] = args.beta1 * m[i] + (1.0f - args.beta1) * g;
    v[i] = args.beta2 * v[i] + (1.0f - args.beta2) * g * g;
    const float root = std::sqrt(v[i] / args.correction2) + args.epsilon;
    w[i] -= args.learning_rate * (m[i] / args.correction1 / root + args.weight_decay * w[i]);
  }
  if (args.compute.valid()) Convert(args.value, args.compute);
}

void ReferenceBackend::RmsProp(const RmsPropArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "rmsprop";
  float *w = args.value.data<float>(), *square = args.square.data<float>();
  float* velocity = args.velocity.valid() ? args.velocity.data<float>() : nullptr;
  const float* gradient = args.gradient.data<float>();
  for (int64_t i = 0; i < args.value.elements(); ++i) {
    const float g = gradient[i] * args.gradient_scale + args.weight_decay * w[i];
    square[i] = args.decay * square[i] + (1.0f - args.decay) * g * g;
    float update = args.inner_rate * g / (std::sqrt(square[i] + args.inside) + args.outside);
    if (velocity != nullptr) {
      velocity[i] = args.momentum * velocity[i] + update;
      update = velocity[i];
    }
    w[i] -= args.outer_rate * update;
  }
  if (args.compute.valid()) Convert(args.value, args.compute);
}

void ReferenceBackend::Lamb(const LambArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "lamb";
  float *w = args.value.data<float>(), *u = args.gradient.data<float>();
  float *m = args.m.data<float>(), *v = args.v.data<float>();
  double* norms = args.norms.data<double>();
  norms[0] = norms[1] = 0;
  for (int64_t i = 0; i < args.value.elements(); ++i) {
    const float g = u[i] * args.gradient_scale;
    m[i] = args.beta1 * m[i] + (1.0f - args.beta1) * g;
    v[i] = args.beta2 * v[i] + (1.0f - args.beta2) * g * g;
    const float root = std::sqrt(v[i] / args.correction2) + args.epsilon;
    u[i] = m[i] / args.correction1 / root + args.weight_decay * w[i];
    norms[0] += static_cast<double>(w[i]) * w[i];
    norms[1] += static_cast<double>(u[i]) * u[i];
  }
  const float rate = LambRate(args.adapt, args.learning_rate, norms[0], norms[1]);
  for (int64_t i = 0; i < args.value.elements(); ++i) w[i] -= rate * u[i];
  if (args.compute.valid()) Convert(args.value, args.compute);
}

void ReferenceBackend::Average(const AverageArgs& args) {
  CHECK_EQ(args.value.elements(), args.average.elements()) << "average";
  const float* w = args.value.data<float>();
  float* average = args.average.data<float>();
  for (int64_t i = 0; i < args.value.elements(); ++i) average[i] += args.rate * (w[i] - average[i]);
}

void ReferenceBackend::Swap(const Tensor& a, const Tensor& b) {
  CHECK_EQ(a.elements(), b.elements()) << "swap";
  std::swap_ranges(a.data<float>(), a.data<float>() + a.elements(), b.data<float>());
}

}  // namespace stagecoach
