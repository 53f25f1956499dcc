// TokenInputs: what sources of token sequences give a network, and what the network may do with it.
//   tokens           ids [context]
//   targets          ids [context]: tokens shifted by one
//   segments         ids [context]: all 0
//   document_starts  ids [context], from sources of packed documents: the first row of each row's
//                    document, 0 for one that began in front (operations/attention/attention.h)
// Masked tokens (BERT, Devlin et al. 2018, 1810.04805, section 3.1): of a share of the tokens the
// network reads another one, and has to find theirs. Their ids are the targets. All other targets are
// the id that the network's objective ignores (stage/data/masked_tokens.h).
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

inline constexpr char kDocumentStarts[] = "document_starts", kSegments[] = "segments";

struct TokenForm {
  bool documents = false;  // may give document_starts
  bool masks = false;      // may mask tokens
};
std::vector<DataInput> TokenInputs(const TokenForm& form);

// prefix: "data.text". Refuses a network that sees its own targets.
absl::Status CheckTokenInputs(const std::string& prefix, const Network& network);
// Of a source that may mask tokens: `masked` is the share, 0 for none. Masked tokens need a tokenizer,
// and a network that sees both sides of a token and ignores the targets of the others.
absl::Status CheckMaskedInputs(const std::string& prefix, double masked,
                               const std::string& tokenizer, const Network& network);
// Packed documents need a network that keeps them apart, and the reverse.
absl::Status CheckPacked(const std::string& prefix, bool packed, const Network& network);

// Tokens of a sequence, and ids of the network, which takes the inputs.
int64_t ContextOf(const Network& network);
int64_t VocabularyOf(const Network& network);

// The first row of each row's document. `end` is the last token of a document.
std::vector<int32_t> DocumentStarts(std::span<const int32_t> tokens, int32_t end);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_TOKEN_INPUTS_H_
