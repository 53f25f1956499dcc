// JsonDocument: the document in a line of JSON.
// Threads: pure function.
// Errors:  INVALID_ARGUMENT saying what is wrong with the line: no JSON object, not UTF-8, the field
//          is missing or no string, with the fields that are there.
#ifndef STAGECOACH_STAGE_DATA_FORMATS_JSON_DOCUMENT_H_
#define STAGECOACH_STAGE_DATA_FORMATS_JSON_DOCUMENT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stagecoach {

absl::StatusOr<std::string> JsonDocument(std::string_view line, const std::string& field);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_FORMATS_JSON_DOCUMENT_H_
