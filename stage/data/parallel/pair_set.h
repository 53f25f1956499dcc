// PairSet: the sentence pairs of a job as tokens, of all its files. Their ids are made once and kept
// (stage/data/parallel/line_ids.h), and read from there when a pair's turn comes.
//   source  tag, pieces, end
//   target  pieces; the network reads them behind `begin` and is compared with them and `end`
// Ownership: owns the lengths and places of the pairs, up to 24 bytes each; shares the kept ids;
//            borrows the tokenizer.
// Threads:   thread-compatible. Read ticks progress.
// Units:     lengths are tokens as the network reads them: a target's is one more than its pieces.
// Errors:    Read: as line_ids.h; INVALID_ARGUMENT naming files, lines and remedy: other numbers of
//            lines, a pair with one side empty. ReadSource, ReadTarget: UNAVAILABLE: the kept ids
//            cannot be read now, or not any more.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/data/parallel_text.h"
#include "stage/data/formats/text_tokens.h"
#include "stage/data/parallel/length_buckets.h"
#include "stage/data/parallel/line_ids.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

class PairSet {
 public:
  struct Options {
    const Tokenizer* tokenizer = nullptr;           // with begin and end
    PairLimits limits;                              // longer pairs are left out
    bool keep_sources = true, keep_targets = true;  // else their lengths alone
    bool test_files = false;                        // all that is held out is in them
    bool keep_texts = false;                        // of held-out pairs, in File::texts
    std::optional<int64_t> survey_bytes;            // as SentenceFile's
  };
  explicit PairSet(const Options& options) : options_(options) {}

  // A file, or two, of one pair of languages.
  struct From {
    std::string field, path;                // of the sources
    std::string target_field, target_path;  // no path: each line of the former has both
    std::string tag;                        // empty: none
    std::string tag_field;
    bool held_out = false;  // all of it
  };
  struct Text {
    std::string source, target;
  };
  // Where the pairs of a file are. The last `held_out` of them lie in the last 2 % of the lines.
  struct File {
    std::string where;  // `data.parallel_text.sources[0] = "a"`
    int64_t first = 0, count = 0;
    int64_t lines = 0;
    int64_t empty = 0;                            // pairs of two empty lines, which are left out
    int64_t too_long = 0;                         // pairs that are left out
    int64_t held_out = 0, held_out_too_long = 0;  // of `count` and of `too_long`
    bool whole = true;                            // false: a survey read the beginning
    int64_t stored_bytes = 0;
    std::string digest;  // lines "FIELD SIZE SHA256"
    // Of the last pairs: as many as are held out, `count` of a file that is held out as a whole.
    std::vector<Text> texts;
  };
  absl::StatusOr<File> Read(const DataRoots& roots, const From& from);

  const std::vector<PairLengths>& lengths() const { return lengths_; }  // by pair
  // Of a side that is kept.
  absl::StatusOr<std::vector<int32_t>> ReadSource(int64_t pair) const;
  absl::StatusOr<std::vector<int32_t>> ReadTarget(int64_t pair) const;

 private:
  class Reading;
  // Pairs of one Read, from `first` on; no ids of a side that is not kept.
  struct Kept {
    int64_t first = 0;
    std::shared_ptr<const TextTokens> sources, targets;
    std::optional<int32_t> tag;
  };
  const Kept& KeptOf(int64_t pair) const;

  const Options options_;
  std::vector<PairLengths> lengths_;
  std::vector<Kept> kept_;
  // Where the pieces of a pair begin in the kept ids; empty: the side is not kept.
  std::vector<int64_t> source_begins_, target_begins_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_
