// IdOf: an id in a file tokenizer.json.
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT as base/json/json_field.h.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_JSON_ID_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_JSON_ID_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json/json_field.h"
#include "stage/tokens/model/piece.h"

namespace stagecoach {

inline bool IsId(const nlohmann::json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() < kMostPieces;
}

inline absl::StatusOr<int32_t> IdOf(const JsonField& field) {
  if (field.value() != nullptr && IsId(*field.value())) return field.value()->get<int32_t>();
  return field.Refused(absl::StrCat("must be an id, from 0 to ", kMostPieces - 1));
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_JSON_ID_H_
