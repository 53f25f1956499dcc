// Translator: translates sentences with trained weights, on one cell that holds the whole network.
// Ownership: owns the network.  Threads: one thread.
// Determinism: a translation is a function of weights, sentence, tag and options. On other back ends
//            than the reference, the other sentences may change the last bits of its scores.
// Errors:    INVALID_ARGUMENT naming the line: not UTF-8, or longer than the network's source; or
//            naming --tag: not one piece of the tokenizer. RESOURCE_EXHAUSTED: no memory for keys and
//            values. FAILED_PRECONDITION: logits are not finite.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_TRANSLATOR_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "decoding/translation_group.h"
#include "services/cli/trained/decoding_network.h"
#include "services/cli/trained/line_groups.h"

namespace stagecoach {

struct TranslatingOptions {
  int beam = 5;
  double length_penalty = 0.6;
  int64_t most_tokens = 0;  // of a translation; 0: as many as the network has positions
  int64_t batch = kSentenceGroups.most;  // sentences that are translated together, as one group
  std::string tag;                       // in front of each; empty: none
};

class Translator {
 public:
  static absl::StatusOr<std::unique_ptr<Translator>> Create(DecodingNetwork network,
                                                            const TranslatingOptions& options);

  struct Translation {
    std::string text;
    int64_t tokens = 0;
    double score = 0;    // sum of log probabilities, with the length penalty
    bool ended = false;  // by itself, not by most_tokens
  };
  // Calls `on_done` with each translation once it and all before it are found, in the order of the
  // sentences. `goes_on` is asked after each step; false ends. Groups have sentences of one length.
  // lines: of the sentences in the user's input, for errors. An empty sentence has an empty
  // translation, any other at least one token.
  absl::Status Translate(const std::vector<std::string>& sentences,
                         const std::vector<int64_t>& lines, const std::function<bool()>& goes_on,
                         const std::function<void(const Translation&)>& on_done);

 private:
  Translator(DecodingNetwork network, const TranslatingOptions& options)
      : network_(std::move(network)), options_(options) {}
  absl::StatusOr<std::vector<int32_t>> Encode(const std::string& sentence) const;
  // on_one: a sentence of the group is done.
  absl::Status TranslateGroup(const std::vector<std::vector<int32_t>>& sources,
                              std::vector<int64_t> numbers, const std::function<bool()>& goes_on,
                              const std::function<void(int64_t number, Translation)>& on_one);

  const DecodingNetwork network_;
  const TranslatingOptions options_;
  int64_t source_context_ = 0;
  int32_t tag_ = -1;
  TranslationOptions search_;
  StepChoice choice_;
  std::unique_ptr<TokenModel> model_;
  std::unique_ptr<RowPool> pool_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_TRANSLATOR_H_
