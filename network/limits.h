// Limits far above what trains today; they keep every product of the cost model inside 64 bits.
#ifndef STAGECOACH_NETWORK_LIMITS_H_
#define STAGECOACH_NETWORK_LIMITS_H_

#include <cstdint>

namespace stagecoach {

inline constexpr int64_t kMaxWidth = int64_t{1} << 16;
inline constexpr int64_t kMaxContext = int64_t{1} << 16;
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 20;
inline constexpr int64_t kMaxHidden = int64_t{1} << 20;  // also all heads of an attention together
inline constexpr int64_t kMaxImageSide = int64_t{1} << 16;     // also channels
inline constexpr int64_t kMaxImageNumbers = int64_t{1} << 28;  // of one sample
inline constexpr int64_t kMaxParameters = int64_t{1} << 40;
inline constexpr double kMaxFlops = 0x1p62;      // a sample's forward and backward
inline constexpr int64_t kMaxLayers = 10000;     // four digits in the names
inline constexpr int64_t kMaxInnerLayers = 256;  // of one residual
inline constexpr int kMaxCutValues =
    64;  // values that cross one cut: tensors of a message (docs/formats.md)
inline constexpr int kMaxTiedUses = kMaxCutValues;  // their gradients may be in one message
inline constexpr int kMaxDepth = 8;                 // residuals inside residuals
// Streams of random numbers of one layer: those from this one on drop inputs of adapters
// (network/passes/lora.h), those from 0x8000 on draw initial values (base/numbers/random.h).
inline constexpr int64_t kMaxDraws = 0x4000;
// Range of the weight of an auxiliary output's loss.
inline constexpr double kLeastAuxiliaryWeight = 1e-6, kMostAuxiliaryWeight = 1000;
inline constexpr int64_t kMaxArrays = int64_t{1} << 20;  // parameters and states of a network
inline constexpr int kMaxLayerParameters = 4096;  // well below the 2^15 of the random streams
inline constexpr int64_t kMaxArray = int64_t{1}
                                     << 32;  // elements; a stream has 2^33 normal numbers

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LIMITS_H_
