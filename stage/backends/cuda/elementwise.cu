// Elementwise operations and optimizers. Bound by memory: threads stride over the elements.
// Optimizers take one launch a tensor; a launch over all of a stage's tensors is what would save
// time with many small ones.
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {
namespace {

__global__ void GeluKernel(const float* x, float* y, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] = GeluTanh(x[i]);
}

__global__ void GeluBackwardKernel(const float* dy, const float* x, float* dx, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) {
    dx[i] = dy[i] * GeluTanhDerivative(x[i]);
  }
}

// A thread takes the four elements of a block of random words.
__global__ void DropoutKernel(const float* x, float* y, int64_t n, DropoutRule rule,
                              PhiloxStream random) {
  const int64_t blocks = (n + 3) / 4;
  for (int64_t b = GlobalThread(); b < blocks; b += GlobalThreads()) {
    const PhiloxWords words = PhiloxBlock(random, static_cast<uint32_t>(b));
    for (uint32_t j = 0; j < 4; ++j) {
      const int64_t i = 4 * b + j;
      if (i < n) y[i] = PhiloxWord(words, j) >= rule.threshold ? x[i] * rule.scale : 0.0f;
    }
  }
}

__global__ void AddKernel(const float* x, float* y, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] += x[i];
}

__global__ void FillKernel(float* y, float value, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] = value;
}

__global__ void AddBiasKernel(const float* bias, float* y, int64_t n, int64_t columns) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] += bias[i % columns];
}

__global__ void NarrowKernel(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] = BitsOfBfloat16(x[i]);
}

__global__ void WidenKernel(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) y[i] = FloatOfBfloat16(x[i]);
}

__global__ void SgdKernel(float* value, const float* gradient, float* velocity, int64_t n,
                          SgdFactors f) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) {
    float update = gradient[i] * f.gradient_scale;
    if (velocity != nullptr) {
      update = f.momentum * velocity[i] + update;
      velocity[i] = update;
    }
    value[i] -= f.learning_rate * (update + f.weight_decay * value[i]);
  }
}

__global__ void AdamWKernel(float* value, const float* gradient, float* m, float* v, int64_t n,
                            AdamWFactors f) {
  for (int64_t i = GlobalThread(); i < n; i += GlobalThreads()) {
    const float g = gradient[i] * f.gradient_scale;
    const float first = f.beta1 * m[i] + (1.0f - f.beta1) * g;
    const float second = f.beta2 * v[i] + (1.0f - f.beta2) * g * g;
    m[i] = first;
    v[i] = second;
    const float root = sqrtf(second / f.correction2) + f.epsilon;
    const float w = value[i];
    value[i] = w - f.learning_rate * (first / f.correction1 / root + f.weight_decay * w);
  }
}

}  // namespace

cudaError_t Gelu(cudaStream_t stream, const float* x, float* y, int64_t n) {
  return Launch(GeluKernel, ElementLaunch(n), 0, stream, x, y, n);
}

cudaError_t GeluBackward(cudaStream_t stream, const float* dy, const float* x, float* dx,
                         int64_t n) {
  return Launch(GeluBackwardKernel, ElementLaunch(n), 0, stream, dy, x, dx, n);
}

cudaError_t Dropout(cudaStream_t stream, const float* x, float* y, int64_t n, DropoutRule rule,
                    PhiloxStream random) {
  return Launch(DropoutKernel, ElementLaunch(n, 4), 0, stream, x, y, n, rule, random);
}

cudaError_t Add(cudaStream_t stream, const float* x, float* y, int64_t n) {
  return Launch(AddKernel, ElementLaunch(n), 0, stream, x, y, n);
}

cudaError_t Fill(cudaStream_t stream, float* y, float value, int64_t n) {
  return Launch(FillKernel, ElementLaunch(n), 0, stream, y, value, n);
}

cudaError_t AddBias(cudaStream_t stream, const float* bias, float* y, int64_t rows,
                    int64_t columns) {
  const int64_t n = rows * columns;
  return Launch(AddBiasKernel, ElementLaunch(n), 0, stream, bias, y, n, columns);
}

cudaError_t Narrow(cudaStream_t stream, const float* x, uint16_t* y, int64_t n) {
  return Launch(NarrowKernel, ElementLaunch(n), 0, stream, x, y, n);
}

cudaError_t Widen(cudaStream_t stream, const uint16_t* x, float* y, int64_t n) {
  return Launch(WidenKernel, ElementLaunch(n), 0, stream, x, y, n);
}

cudaError_t Sgd(cudaStream_t stream, float* value, const float* gradient, float* velocity,
                int64_t n, SgdFactors factors) {
  return Launch(SgdKernel, ElementLaunch(n), 0, stream, value, gradient, velocity, n, factors);
}

cudaError_t AdamW(cudaStream_t stream, float* value, const float* gradient, float* m, float* v,
                  int64_t n, AdamWFactors factors) {
  return Launch(AdamWKernel, ElementLaunch(n), 0, stream, value, gradient, m, v, n, factors);
}

}  // namespace stagecoach::cuda
