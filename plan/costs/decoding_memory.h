// Decoding memory: an upper bound for the memory that writing token by token adds on a stage: for an
// evaluation's translations, or for a job with `write`. It keeps keys and values of all rows that
// hypotheses may have, and values of the sources. A step has its rows and their logits.
// Threads: pure functions.
// Units:   bytes; sizes beyond 64 bits come out as the largest number.
#ifndef STAGECOACH_PLAN_COSTS_DECODING_MEMORY_H_
#define STAGECOACH_PLAN_COSTS_DECODING_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decoding/translation_group.h"
#include "network/network.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// Most rows of keys and values that a mini-batch of the job has, which writes. A prompt is counted with a
// token for each byte, and a few.
int64_t PoolRowsOf(const JobSpec& spec, const Network& network);
// Most tokens of that prompt.
int64_t MostPromptTokens(const std::string& prompt);

// Samples of a mini-batch whose forward needs as much as the steps of writing. A step of continuations
// has few rows, but a sample of the network has all positions.
int64_t ComputedSamples(const JobSpec& spec, const Network& network);

// Without the marks of a tokenizer, which its sizes do not depend on.
TranslationOptions TranslationOf(const TranslateSpec& translate, const Network& network);

struct DecodingSizes {
  std::vector<int64_t> layers;  // keys, values and held sources of each
  int64_t rows_message = 0;     // the largest message that says which rows come next
  int64_t rows_held = 0;        // all such, on any stage
  int64_t logits = 0;           // on the last stage

  // Of a stage with layers [first, last) whose evaluations take so much. A step has no more rows
  // than an evaluation has positions: a beam is no larger than the target's context.
  int64_t Of(int first, int last, int64_t evaluation) const;
};

// Of a valid job. Nullopt: it translates nothing.
std::optional<DecodingSizes> DecodingSizesOf(const JobSpec& spec, const Network& network);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_COSTS_DECODING_MEMORY_H_
