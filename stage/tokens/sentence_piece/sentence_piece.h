// ParseSentencePiece: a SentencePiece model of kind unigram or bpe, which gives the same ids as
// SentencePiece.
//
// Its library is not used here. It aborts on damaged files, and its own protobuf cannot live in one
// process with ours. Tests compare with it.
//
// Errors: INVALID_ARGUMENT naming the reason and the remedy: the bytes are no model.
#ifndef STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SENTENCE_PIECE_H_
#define STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SENTENCE_PIECE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "stage/tokens/model/tokenizer_model.h"

namespace stagecoach {

absl::StatusOr<std::unique_ptr<const TokenizerModel>> ParseSentencePiece(std::string_view bytes);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_SENTENCE_PIECE_SENTENCE_PIECE_H_
