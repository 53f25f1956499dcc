#include "operations/attention/packed_heads.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "operations/type_check.h"

namespace stagecoach {

absl::Status CheckKeyHeads(int64_t heads, int64_t key_heads) {
  if (key_heads == 0 || heads % key_heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key_heads is ", key_heads, "; must divide the ", heads, " heads"));
}

absl::StatusOr<PackedHeads> CheckPackedHeads(std::string_view operand, const ValueType& qkv,
                                             int64_t heads, int64_t key_heads) {
  const int64_t keys = key_heads == 0 ? heads : key_heads;
  absl::Status status = CheckKeyHeads(heads, key_heads);
  if (status.ok()) status = CheckActivation(operand, qkv, 2);
  if (!status.ok()) return status;
  const int64_t packed = heads + 2 * keys;
  if (qkv.shape.rank() != 2 || qkv.shape[1] % packed != 0) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(operand), " is ", FormatType(qkv),
                                                   "; must be [context, (", heads, " + 2 * ", keys,
                                                   ") * head_width]"));
  }
  return PackedHeads{qkv.shape[0], heads, keys, qkv.shape[1] / packed};
}

PackedHeads PackedHeadsOf(const ValueType& qkv, int64_t heads, int64_t key_heads) {
  const absl::StatusOr<PackedHeads> packed = CheckPackedHeads("qkv", qkv, heads, key_heads);
  CHECK_OK(packed.status());
  return *packed;
}

}  // namespace stagecoach
