// TokenModel: a trained network as the search for texts sees it: rows of tokens go in, candidates for
// the next token come out. stage/decoding/local_token_model.h implements it.
// Units:     a group is a number of texts that are written together. Its samples have the same number
//            of rows in a step. Arrays are row-major: samples, then rows.
// Errors:    those of the device. FAILED_PRECONDITION: logits are not finite.
#ifndef STAGECOACH_DECODING_TOKEN_MODEL_H_
#define STAGECOACH_DECODING_TOKEN_MODEL_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/numbers/lengths.h"
#include "decoding/choice.h"

namespace stagecoach {

// Ids for an encoder, by the names of the network's inputs: "source" [samples, source],
// "source_length" [samples].
struct SourceBatch {
  int64_t samples = 0;
  Lengths lengths;
  std::map<std::string, std::vector<int32_t>> ids;
};

// New rows. A sample with fewer hypotheses than rows has padding rows, whose place is -1.
struct RowBatch {
  int64_t samples = 0, rows = 0;
  int64_t context = 0;             // columns of history
  std::vector<int32_t> tokens;     // of each row
  std::vector<int32_t> positions;  // in its text, from 0
  std::vector<int32_t> places;     // of its keys and values in the pool
  std::vector<int32_t> history;    // [rows, context]: places of positions 0 to its own
  std::vector<bool> wanted;        // whether candidates of the row are wanted
  std::vector<double> uniforms;    // one a row where tokens are drawn; empty: none are

  // A row behind the others. history: the places of its text, its own last.
  void Add(int32_t token, std::span<const int32_t> places_of_text, bool want);
  void AddNone();
};

struct StepChoice {
  ChoiceOptions options;
  std::vector<int32_t> forbidden;  // tokens that never come
};

using CandidatesOfRows = std::vector<std::vector<Candidate>>;  // empty where none are wanted

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Once before a group's steps, unless the network has no source.
  virtual absl::Status Begin(int group, const SourceBatch& source) = 0;
  virtual absl::StatusOr<CandidatesOfRows> Step(int group, const RowBatch& rows,
                                                const StepChoice& choice) = 0;
  // From now on the group has these of its samples. If it fails, only Drop may follow.
  virtual absl::Status Keep(int group, std::span<const int64_t> samples) = 0;
  virtual void Drop(int group) = 0;  // ends the group
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_TOKEN_MODEL_H_
