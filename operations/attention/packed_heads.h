// PackedHeads: queries, keys and values of all heads side by side in one row, as one product gives
// them. qkv is [context, (heads + 2 * key_heads) * head_width]: the query heads first, then the key
// heads, then the value heads. Query head h belongs to key head h / (heads / key_heads) (Ainslie et
// al., 2305.13245, "GQA").
// Errors: INVALID_ARGUMENT saying what would be right.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_PACKED_HEADS_H_
#define STAGECOACH_OPERATIONS_ATTENTION_PACKED_HEADS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "operations/value_type.h"

namespace stagecoach {

struct PackedHeads {
  int64_t context = 0;
  int64_t heads = 0, key_heads = 0;
  int64_t head_width = 0;
  int64_t query_width() const { return heads * head_width; }
};

// key_heads = 0: as many as heads.
absl::Status CheckKeyHeads(int64_t heads, int64_t key_heads);
absl::StatusOr<PackedHeads> CheckPackedHeads(std::string_view operand, const ValueType& qkv,
                                             int64_t heads, int64_t key_heads);
// The heads of a checked type.
PackedHeads PackedHeadsOf(const ValueType& qkv, int64_t heads, int64_t key_heads);

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_PACKED_HEADS_H_
