// Elements in packs. If the array lies on a multiple of 16 bytes and the pack is whole, a thread
// reads and writes 16 bytes at a time, else element by element. The elements of a pack depend on
// indices alone. So `wide` changes the speed and never the order of a sum.
#ifndef STAGECOACH_STAGE_BACKENDS_CUDA_PACKS_CUH_
#define STAGECOACH_STAGE_BACKENDS_CUDA_PACKS_CUH_

#include <cstdint>
#include <cstring>

#include "stage/backends/cuda/device_math.h"
#include "stage/backends/cuda/launch.cuh"

namespace stagecoach::cuda {

// Elements of T in 16 bytes.
template <typename T>
constexpr int kPack = static_cast<int>(16 / sizeof(T));

template <int kCount>
struct Floats {
  float at[kCount];
};

// One memory access: 16 or 8 bytes.
template <int kWords>
struct alignas(4 * kWords) Words {
  uint32_t word[kWords];
};

template <int kWords, typename T>
__device__ __forceinline__ Words<kWords> LoadWords(const T* source) {
#if defined(STAGECOACH_EMULATE_CUDA)
  Words<kWords> words;
  std::memcpy(&words, source, sizeof words);
  return words;
#else
  return *reinterpret_cast<const Words<kWords>*>(source);
#endif
}

template <int kWords, typename T>
__device__ __forceinline__ void StoreWords(const Words<kWords>& words, T* target) {
#if defined(STAGECOACH_EMULATE_CUDA)
  std::memcpy(target, &words, sizeof words);
#else
  *reinterpret_cast<Words<kWords>*>(target) = words;
#endif
}

__device__ __forceinline__ float FloatOfBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
__device__ __forceinline__ uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <int kWords>
__device__ __forceinline__ void Unpack(const Words<kWords>& words, const float*, float* values) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) values[i] = FloatOfBits(words.word[i]);
}
template <int kWords>
__device__ __forceinline__ void Unpack(const Words<kWords>& words, const Bf16*, float* values) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    values[2 * i] = FloatOfBits(words.word[i] << 16);
    values[2 * i + 1] = FloatOfBits(words.word[i] & 0xffff0000u);
  }
}

template <int kWords>
__device__ __forceinline__ Words<kWords> PackWords(const float* values, const float*) {
  Words<kWords> words;
#pragma unroll
  for (int i = 0; i < kWords; ++i) words.word[i] = BitsOfFloat(values[i]);
  return words;
}
template <int kWords>
__device__ __forceinline__ Words<kWords> PackWords(const float* values, const Bf16*) {
  Words<kWords> words;
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    words.word[i] = BitsOfBfloat16(values[2 * i]) |
                    static_cast<uint32_t>(BitsOfBfloat16(values[2 * i + 1])) << 16;
  }
  return words;
}

// Loads a whole pack whose first element lies on a multiple of 16 bytes (8 for a pack of 8).
template <int kCount, typename T>
__device__ __forceinline__ Floats<kCount> LoadPack(const T* x) {
  constexpr int kPer = kCount < kPack<T> ? kCount : kPack<T>;
  constexpr int kWords = kPer * static_cast<int>(sizeof(T)) / 4;
  Floats<kCount> values;
#pragma unroll
  for (int i = 0; i < kCount; i += kPer) Unpack(LoadWords<kWords>(x + i), x, values.at + i);
  return values;
}

template <int kCount, typename T>
__device__ __forceinline__ void StorePack(const Floats<kCount>& values, T* y) {
  constexpr int kPer = kCount < kPack<T> ? kCount : kPack<T>;
  constexpr int kWords = kPer * static_cast<int>(sizeof(T)) / 4;
#pragma unroll
  for (int i = 0; i < kCount; i += kPer) StoreWords(PackWords<kWords>(values.at + i, y), y + i);
}

// Elements [first, first + kCount) of x; 0 for those outside of [begin, end). wide: x + first lies
// on a multiple of 16 bytes (8 for a pack of 8).
template <int kCount, typename T>
__device__ __forceinline__ Floats<kCount> LoadFloats(const T* x, int64_t first, int64_t begin,
                                                     int64_t end, bool wide) {
  if (wide && first >= begin && first + kCount <= end) return LoadPack<kCount>(x + first);
  Floats<kCount> values;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int64_t at = first + i;
    values.at[i] = at >= begin && at < end ? ToFloat(x[at]) : 0.0f;
  }
  return values;
}

template <int kCount, typename T>
__device__ __forceinline__ void StoreFloats(const Floats<kCount>& values, T* y, int64_t first,
                                            int64_t begin, int64_t end, bool wide) {
  if (wide && first >= begin && first + kCount <= end) return StorePack(values, y + first);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int64_t at = first + i;
    if (at >= begin && at < end) y[at] = FromFloat<T>(values.at[i]);
  }
}

// On the host: whether all these arrays lie on multiples of 16 bytes. Null pointers count as such.
template <typename... Pointers>
bool Aligned(Pointers... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}
// The same for the rows of matrices of T with this width.
template <typename T, typename... Pointers>
bool RowsAligned(int64_t width, Pointers... pointers) {
  return width % kPack<T> == 0 && Aligned(pointers...);
}

}  // namespace stagecoach::cuda

#endif  // STAGECOACH_STAGE_BACKENDS_CUDA_PACKS_CUH_
