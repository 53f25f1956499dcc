// MaskedTokens: the masks of sequences, for a network that finds masked tokens (BERT, Devlin et al.
// 2018, 1810.04805, section 3.1). Each token is masked with the same probability, but no control
// token, as the tokenizer's end. A masked one becomes the mask token in 80 % of the cases and any
// token in 10 %; in the others it stays. Its id is its target. A tokenizer's begin token stands in
// front of each sequence.
// Any token: any id that has a piece, also a control token's. Control tokens are the tokenizer's own
// and its begin, end, padding, mask and unknown.
// Draws are a pure function of seed, sample, epoch and place (docs/formats.md, "Random numbers"). An
// evaluation has the same ones every time.
// Ownership: a plain value.  Threads: immutable.
#ifndef STAGECOACH_STAGE_DATA_MASKED_TOKENS_H_
#define STAGECOACH_STAGE_DATA_MASKED_TOKENS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "network/network.h"
#include "plan/job/job_spec.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

struct MaskPlace {
  uint64_t sample = 0;
  std::optional<uint64_t> epoch = {};  // none: of an evaluation
};

class MaskedTokens {
 public:
  struct Rule {
    uint64_t seed = 0;
    double share = 0;                   // of the tokens
    int32_t mask = 0;                   // the mask token
    std::optional<int32_t> begin = {};  // in front of each sequence
    int32_t ignored = 0;                // target of a token that is not masked
    std::vector<bool> control = {};     // by id: never masked
    std::vector<int32_t> tokens = {};   // ids that may stand in the place of a masked one
  };
  explicit MaskedTokens(Rule rule) : rule_(std::make_shared<const Rule>(std::move(rule))) {}

  // What sequences depend on beside the tokens of the file, for the digest of the data.
  std::string facts() const;
  // Tokens that a sequence has beside those of the text.
  int64_t added() const { return rule_->begin.has_value() ? 1 : 0; }
  // Adds what the network reads and its targets, tokens.size() + added() each.
  void Add(std::span<const int32_t> tokens, const MaskPlace& place, std::vector<int32_t>* inputs,
           std::vector<int32_t>* targets) const;

 private:
  std::shared_ptr<const Rule> rule_;
};

// As the job says; nullopt: it masks nothing. prefix: "data.text". INVALID_ARGUMENT: the tokenizer has no
// mask token; the ignored target is a word; the context has no place for a token of the text.
absl::StatusOr<std::optional<MaskedTokens>> MaskedTokensOf(const JobSpec& spec,
                                                           const Network& network,
                                                           const std::string& prefix, double masked,
                                                           const Tokenizer* tokenizer);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_MASKED_TOKENS_H_
