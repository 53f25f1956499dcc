// parallel_text: pairs of sentences in two languages, cut into tokens by a tokenizer.
// Gives, for a pair with s source tokens and t target tokens,
//   source         ids [source context]: tag, sentence, end, then padding
//   source_length  one id: s
//   tokens         ids [target context]: begin, sentence, then padding
//   targets        ids [target context]: sentence, end, then padding
// A network whose extents have the names source and target (base/numbers/lengths.h) gets
// mini-batches as long as they need; another one gets its full extents.
#ifndef STAGECOACH_PLAN_DATA_PARALLEL_TEXT_H_
#define STAGECOACH_PLAN_DATA_PARALLEL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "network/network.h"

namespace stagecoach {

inline constexpr size_t kMostParallelFiles = 1024;

struct ParallelTextData {
  static constexpr const char* kKind = "parallel_text";
  std::string tokenizer;
  std::vector<std::string> sources, targets, tags;  // without targets: pairs with a tab between
  std::vector<std::string> test_sources, test_targets, test_tags;  // none: 2 % are held out
  double sampling = 1;
  int64_t buckets = 8;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    const auto files = [&visit](std::string_view name, std::vector<std::string>& paths) {
      visit.Texts(name, paths, kMostParallelFiles, "must name a file");
    };
    visit.Text("tokenizer", tokenizer, "must name a SentencePiece model or a tokenizer.json");
    files("sources", sources);
    files("targets", targets);
    visit.Texts("tags", tags, kMostParallelFiles);
    files("test_sources", test_sources);
    files("test_targets", test_targets);
    visit.Texts("test_tags", test_tags, kMostParallelFiles);
    visit.Between("sampling", sampling, 0, 1);
    visit.Count("buckets", buckets, 1, 64);
  }
};

// The largest pair that a network takes.
struct PairLimits {
  int64_t source = 0, target = 0;
};
PairLimits PairLimitsOf(const Network& network);

// Whether the beginning of a file may be that of sentences, plain or gzip. INVALID_ARGUMENT with
// `where` in front: `data.parallel_text.sources[0] = "a"`.
absl::Status CheckSentencesHead(const std::string& where, std::string_view head);

}  // namespace stagecoach

#endif  // STAGECOACH_PLAN_DATA_PARALLEL_TEXT_H_
