#include <cmath>

#include "base/check.h"
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
      update = velocity[i];
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

}  // namespace stagecoach
