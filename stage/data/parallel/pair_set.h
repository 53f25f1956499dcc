// PairSet: the sentence pairs of a job as tokens, read from all its files when it is opened.
//   source  tag, pieces, end
//   target  pieces; the network reads them behind `begin` and is compared with them and `end`
// Ownership: owns the tokens, 4 bytes each; borrows the tokenizer while it reads.
// Threads:   immutable after Read, which ticks progress.
// Units:     lengths are tokens as the network reads them: a target's is one more than its pieces.
// Errors:    as line_file.h; INVALID_ARGUMENT naming files, lines and remedy: other numbers of
//            lines, a line without exactly one tab, no UTF-8, a pair with one side empty.
#ifndef STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_
#define STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/data/parallel_text.h"
#include "stage/data/formats/line_file.h"
#include "stage/data/parallel/length_buckets.h"
#include "stage/files/data_roots.h"
#include "stage/tokens/tokenizer.h"

namespace stagecoach {

inline constexpr size_t kMostSentenceBytes = size_t{64} << 10;
LineRules SentenceLines();

// Sequences of ids, one behind the other.
class IdTable {
 public:
  void Add(std::span<const int32_t> ids) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ends_.push_back(static_cast<int64_t>(ids_.size()));
  }
  std::span<const int32_t> operator[](int64_t i) const {
    const int64_t begin = i == 0 ? 0 : ends_[static_cast<size_t>(i) - 1];
    return std::span(ids_).subspan(static_cast<size_t>(begin),
                                   static_cast<size_t>(ends_[static_cast<size_t>(i)] - begin));
  }

 private:
  std::vector<int32_t> ids_;
  std::vector<int64_t> ends_;
};

class PairSet {
 public:
  struct Options {
    const Tokenizer* tokenizer = nullptr;                      // with begin and end
    PairLimits limits;                                         // longer pairs are left out
    bool keep_sources = true, keep_targets = true;             // else their lengths alone
    bool test_files = false;                                   // all that is held out is in them
    bool keep_texts = false;                                   // of held-out pairs, in File::texts
    int64_t most_bytes = std::numeric_limits<int64_t>::max();  // of the text of a file
  };
  explicit PairSet(Options options) : options_(options) {}

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
    bool whole = true;                            // false: most_bytes were read
    int64_t stored_bytes = 0;
    std::string digest;  // lines "FIELD SIZE SHA256"
    // Of the last pairs: as many as are held out, `count` of a file that is held out as a whole.
    std::vector<Text> texts;
  };
  absl::StatusOr<File> Read(const DataRoots& roots, const From& from);

  const std::vector<PairLengths>& lengths() const { return lengths_; }  // by pair
  std::span<const int32_t> source(int64_t pair) const { return sources_[pair]; }
  std::span<const int32_t> target(int64_t pair) const { return targets_[pair]; }

 private:
  class Reading;

  const Options options_;
  std::vector<PairLengths> lengths_;
  IdTable sources_, targets_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_DATA_PARALLEL_PAIR_SET_H_
