// Arithmetic that kernels share, the same on host and device: Philox as base/numbers/random.h
// defines it, GELU in float. C++17 without the project's other headers, since nvcc compiles it too;
// the host tests hold it to base/numbers/random.h and to the reference back end's formulas.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_DEVICE_MATH_H_
#define STAGECOACH_STAGE_BACKENDS_CUDA_DEVICE_MATH_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#define STAGECOACH_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define STAGECOACH_HOST_DEVICE inline
#endif

namespace stagecoach::cuda {

// A bfloat16 in memory. It has the bits, and the rounding, of base/numbers/bfloat16.h. The card's
// own instruction gives the same bits, except that it does not keep a NaN's.
struct Bf16 {
  uint16_t bits;
};
static_assert(sizeof(Bf16) == 2, "an array of them is the tensor's");

STAGECOACH_HOST_DEVICE uint16_t BitsOfBfloat16(float value) {
#if defined(__CUDA_ARCH__)
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  uint32_t wide;
  memcpy(&wide, &value, sizeof(wide));
  if ((wide & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((wide >> 16) | 0x40u);
  return static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
#endif
}

STAGECOACH_HOST_DEVICE float FloatOfBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

// Convert between an element in memory and a kernel's float; the only rounding.
STAGECOACH_HOST_DEVICE float ToFloat(float value) { return value; }
STAGECOACH_HOST_DEVICE float ToFloat(Bf16 value) { return FloatOfBfloat16(value.bits); }
template <typename T>
STAGECOACH_HOST_DEVICE T FromFloat(float value);
template <>
STAGECOACH_HOST_DEVICE float FromFloat<float>(float value) {
  return value;
}
template <>
STAGECOACH_HOST_DEVICE Bf16 FromFloat<Bf16>(float value) {
  return {BitsOfBfloat16(value)};
}

// Arithmetic with its roundings written out. The compiler may round a product and the sum after it
// once, and need not choose alike in two kernels. These have the same bits in every kernel.
STAGECOACH_HOST_DEVICE float RoundedProduct(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
// a * b + c, rounded once.
STAGECOACH_HOST_DEVICE float MultiplyAdd(float a, float b, float c) { return fmaf(a, b, c); }

// A RandomStream for a kernel: key and the counter's fixed words.
struct PhiloxStream {
  uint32_t key0, key1;
  uint32_t counter1, counter2, counter3;
};

struct PhiloxWords {
  uint32_t word0, word1, word2, word3;
};

STAGECOACH_HOST_DEVICE PhiloxWords PhiloxBlock(const PhiloxStream& stream, uint32_t block) {
  uint32_t c0 = block, c1 = stream.counter1, c2 = stream.counter2, c3 = stream.counter3;
  uint32_t k0 = stream.key0, k1 = stream.key1;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

STAGECOACH_HOST_DEVICE uint32_t PhiloxWord(const PhiloxWords& words, uint32_t index) {
  const uint32_t low = (index & 1) != 0 ? words.word1 : words.word0;
  const uint32_t high = (index & 1) != 0 ? words.word3 : words.word2;
  return (index & 2) != 0 ? high : low;
}

// Reads the bits of elements in ascending order: four neighbours cost one block.
class PhiloxReader {
 public:
  STAGECOACH_HOST_DEVICE explicit PhiloxReader(const PhiloxStream& stream) : stream_(stream) {}

  STAGECOACH_HOST_DEVICE uint32_t Bits(uint64_t element) {
    const uint32_t block = static_cast<uint32_t>(element / 4);
    if (!drawn_ || block != block_) {
      words_ = PhiloxBlock(stream_, block);
      block_ = block;
      drawn_ = true;
    }
    return PhiloxWord(words_, static_cast<uint32_t>(element % 4));
  }

 private:
  const PhiloxStream& stream_;
  PhiloxWords words_ = {0, 0, 0, 0};
  uint32_t block_ = 0;
  bool drawn_ = false;
};

// Dropout keeps and scales an element if its bits are >= threshold.
struct DropoutRule {
  uint32_t threshold;
  float scale;
};

constexpr float kGeluScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

// 0.5 x (1 + tanh u) = x / (1 + exp(-2 u)). The exponential is taken of -2 |u|, so that it cannot
// overflow and neither gate nor 1 - gate loses digits.
struct GeluGate {
  float gate;     // 0.5 (1 + tanh u)
  float product;  // gate (1 - gate)
};

STAGECOACH_HOST_DEVICE GeluGate GateOfGelu(float x) {
  const float u = kGeluScale * (x + kGeluCubic * x * x * x);
  const float e = expf(-2.0f * fabsf(u));
  const float r = 1.0f / (1.0f + e);
  return {x >= 0.0f ? r : e * r, e * r * r};
}

STAGECOACH_HOST_DEVICE float GeluTanh(float x) { return x * GateOfGelu(x).gate; }

STAGECOACH_HOST_DEVICE float GeluTanhDerivative(float x) {
  const GeluGate g = GateOfGelu(x);
  // If the gate is 0 or 1, the slope is the gate. Without the branch huge x gives 0 * infinity.
  if (g.product == 0.0f) return g.gate;
  const float slope = kGeluScale * (1.0f + 3.0f * kGeluCubic * x * x);
  return g.gate + 2.0f * x * g.product * slope;
}

// GELU by the error function: Phi(x) = erfc(-x / sqrt(2)) / 2. The slope has its density too.
STAGECOACH_HOST_DEVICE float GeluErfOf(float x) { return x * (0.5f * erfcf(-0.70710678f * x)); }

STAGECOACH_HOST_DEVICE float GeluErfDerivative(float x) {
  return 0.5f * erfcf(-0.70710678f * x) + x * (0.39894228f * expf(-0.5f * x * x));
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_DEVICE_MATH_H_
