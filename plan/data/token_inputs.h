// TokenInputs: what sources of token sequences give a network, and what the network may do with it.
//   tokens           ids [context]
//   targets          ids [context]: tokens shifted by one
//   document_starts  ids [context], from sources of packed documents: the first row of each row's
//                    document, 0 for one that began in front (operations/attention/attention.h)
// Threads: pure functions.
// Errors:  INVALID_ARGUMENT with field, value and remedy.
#ifndef STAGECOACH_PLAN_DATA_TOKEN_INPUTS_H_
#define STAGECOACH_PLAN_DATA_TOKEN_INPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "network/network.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {

inline constexpr char kDocumentStarts[] = "document_starts";

std::vector<DataInput> TokenInputs(bool documents);

// prefix: "data.text". Refuses a network that sees its own targets.
absl::Status CheckTokenInputs(const std::string& prefix, const Network& network);
// Packed documents need a network that keeps them apart, and the reverse.
absl::Status CheckPacked(const std::string& prefix, bool packed, const Network& network);

// Tokens of a sequence, and ids of the network, which takes the inputs.
int64_t ContextOf(const Network& network);
int64_t VocabularyOf(const Network& network);

// The first row of each row's document. `end` is the last token of a document.
std::vector<int32_t> DocumentStarts(std::span<const int32_t> tokens, int32_t end);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TOKEN_INPUTS_H_
