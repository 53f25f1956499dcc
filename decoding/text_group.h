// TextGroup: prompts that are continued together, each with tokens of its own choice. It says which
// rows the model computes next, and takes their candidates.
// Prompts are read in pieces of kPieceRows rows, one prompt after the other. Then each step has a row
// of every text that goes on. A text that has filled the context is read again from its latter half.
// Ownership: borrows the pool, whose rows it gives back as texts end.
// Threads:   one at a time.
// Determinism: token i of text j is a function of the model's candidates, prompt, options, i and j.
// Errors:    RESOURCE_EXHAUSTED: the pool has no row left. CHECKs that Rows and Take alternate.
#ifndef STAGECOACH_DECODING_TEXT_GROUP_H_
#define STAGECOACH_DECODING_TEXT_GROUP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "decoding/continuation.h"
#include "decoding/row_pool.h"
#include "decoding/token_search.h"

namespace stagecoach {

struct TextOptions {
  std::vector<int32_t> stops;
  int64_t most_tokens = 1;
  int64_t context = 0;
  bool sample = false;
  uint64_t seed = 0;
  int64_t first_text = 0;  // number of the group's first text, for its random numbers
};

class TextGroup final : public TokenSearch {
 public:
  static constexpr int64_t kPieceRows = 64;

  // Prompts have at least one token each. Of a longer one than the context, the last tokens are read.
  TextGroup(const TextOptions& options, std::span<const std::vector<int32_t>> prompts,
            RowPool* pool);
  ~TextGroup() override;
  TextGroup(const TextGroup&) = delete;
  TextGroup& operator=(const TextGroup&) = delete;

  // An upper bound for the rows that these prompts and their texts use.
  static int64_t MostRows(const TextOptions& options,
                          std::span<const std::vector<int32_t>> prompts);

  bool over() const override;
  absl::StatusOr<RowBatch> Rows() override;
  absl::Status Take(const CandidatesOfRows& candidates) override;
  std::optional<std::vector<int64_t>> Shrink() override { return std::nullopt; }

  struct Token {
    int text = 0;
    int32_t token = 0;
  };
  std::vector<Token> TakeNew();  // since the last call; without the tokens that stopped a text
  bool stopped(int text) const { return At(text).continuation.ended(); }
  bool live(int text) const { return At(text).live; }

 private:
  struct Text {
    int number = 0;
    Continuation continuation;
    std::vector<int32_t> tokens;     // all
    size_t read = 0;                 // tokens before this one were read, or are left out
    std::optional<HypothesisId> id;  // the rows of the read ones; none: nothing is read
    bool live = true;
  };

  const Text& At(int text) const { return texts_[static_cast<size_t>(text)]; }
  void End(Text* text);
  absl::Status Read(Text* text, int64_t rows, RowBatch* batch);
  absl::Status ReadToken(Text* text, RowBatch* batch);
  void Release(Text* text);

  const TextOptions options_;
  RowPool* const pool_;
  std::vector<Text> texts_;
  std::vector<int> of_rows_;  // of the last Rows: the text, -1 where no candidate is wanted
  std::vector<Token> new_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_DECODING_TEXT_GROUP_H_
