// The header of a safetensors file: limits, and the JSON text from the tensors.
// Parsing is ParseSafetensorsHeader in safetensors.h.
#ifndef STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_HEADER_H_
#define STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/safetensors/safetensors.h"

namespace stagecoach {

inline constexpr int64_t kSafetensorsLengthBytes = 8;  // in front of the header, little-endian
inline constexpr int64_t kMaxSafetensorsHeaderBytes = int64_t{16} << 20;
inline constexpr size_t kMaxSafetensorsTensors = 100'000;
inline constexpr size_t kMaxTensorNameBytes = 256;

// INVALID_ARGUMENT unless the name has 1 to 256 bytes, none from 0 to 0x1f, and is not
// "__metadata__".
absl::Status CheckTensorName(const std::string& name);

// Bytes of an array, checked for overflow.
absl::StatusOr<int64_t> TensorBytes(DType dtype, const Shape& shape);

// The place of each tensor in the data behind the header: one after the other, in the order given.
absl::StatusOr<std::vector<TensorEntry>> LayOutTensors(std::span<const TensorSource> tensors);

// The JSON object padded with spaces to a multiple of 8 bytes: metadata, then the tensors in the
// order given.
// INVALID_ARGUMENT for anything the reader would refuse.
absl::StatusOr<std::string> FormatSafetensorsHeader(std::span<const TensorEntry> tensors,
                                                    const Metadata& metadata);

}  // namespace stagecoach

#endif  // STAGECOACH_CHECKPOINT_SAFETENSORS_SAFETENSORS_HEADER_H_
