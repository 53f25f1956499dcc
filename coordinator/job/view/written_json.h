// WrittenJson: the texts of a record of kind kWritten, as a text for the journal.
// Threads: pure functions.
// Errors:  DATA_LOSS: not a text of EncodeWritten.
#ifndef STAGECOACH_COORDINATOR_JOB_VIEW_WRITTEN_JSON_H_
#define STAGECOACH_COORDINATOR_JOB_VIEW_WRITTEN_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/written_piece.h"

namespace stagecoach {

// A list of [line, offset, text in base64, done, tokens, score, ended]. A score that is not finite is
// null, and comes back as NaN.
std::string EncodeWritten(const std::vector<WrittenPiece>& pieces);
absl::StatusOr<std::vector<WrittenPiece>> DecodeWritten(const std::string& text);

}  // namespace stagecoach

#endif  // STAGECOACH_COORDINATOR_JOB_VIEW_WRITTEN_JSON_H_
