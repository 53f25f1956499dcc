#include "decoding/choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "decoding/log_softmax.h"
#include "decoding/row_loops.h"

namespace stagecoach {
namespace {

using Logits = std::span<const float>;
using Tokens = std::span<const int32_t>;

bool Contains(Tokens tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// The order of candidates.
struct Likelier {
  Logits logits;
  bool operator()(int32_t a, int32_t b) const {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  }
};

// A row, and the greatest logits of its lanes, which every use of it begins with.
struct Row {
  explicit Row(Logits row) : logits(row), greatest(GreatestOfLanes(row)) {}
  Logits logits;
  RowLanes greatest;
};

// A lower bound of the `count` greatest allowed logits. Count and forbidden tokens together are the
// number of lanes whose greatest logit reaches it, so `count` tokens of these are allowed.
float BoundOfLikeliest(const Row& row, int64_t count, Tokens forbidden) {
  const int64_t lanes = count + std::ssize(forbidden);
  if (lanes > std::ssize(row.greatest)) return -std::numeric_limits<float>::infinity();
  RowLanes greatest = row.greatest;
  const auto last = greatest.begin() + (lanes - 1);
  std::nth_element(greatest.begin(), last, greatest.end(), std::greater<>());
  return *last;
}

// The `count` likeliest tokens in order.
std::vector<int32_t> LikeliestTokens(const Row& row, int64_t count, Tokens forbidden) {
  constexpr size_t kTokensOfBlock = 64;
  const float bound = BoundOfLikeliest(row, count, forbidden);
  std::vector<int32_t> tokens;
  for (size_t begin = 0; begin < row.logits.size(); begin += kTokensOfBlock) {
    const Logits block =
        row.logits.subspan(begin, std::min(kTokensOfBlock, row.logits.size() - begin));
    if (!AnyAtLeast(block, bound)) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      const auto token = static_cast<int32_t>(begin + i);
      if (block[i] >= bound && !Contains(forbidden, token)) tokens.push_back(token);
    }
  }
  const auto end = tokens.begin() + std::min(count, std::ssize(tokens));
  std::partial_sort(tokens.begin(), end, tokens.end(), Likelier{row.logits});
  tokens.erase(end, tokens.end());
  return tokens;
}

std::vector<int32_t> AllowedTokens(Logits logits, Tokens forbidden) {
  const auto vocabulary = static_cast<int32_t>(logits.size());
  std::vector<int32_t> allowed;
  allowed.reserve(vocabulary);
  for (int32_t token = 0; token < vocabulary; ++token) {
    if (!Contains(forbidden, token)) allowed.push_back(token);
  }
  return allowed;
}

// Tokens, likeliest first. They are sorted as far as they are read: most draws read few.
class Descending {
 public:
  Descending(std::vector<int32_t> tokens, Logits logits)
      : tokens_(std::move(tokens)), likelier_{logits} {}

  int64_t size() const { return std::ssize(tokens_); }
  int32_t operator[](int64_t i) {
    if (i >= sorted_) {
      const int64_t end = std::min(size(), std::max<int64_t>(64, 8 * sorted_));
      std::partial_sort(tokens_.begin() + sorted_, tokens_.begin() + end, tokens_.end(), likelier_);
      sorted_ = end;
    }
    return tokens_[i];
  }

 private:
  std::vector<int32_t> tokens_;
  Likelier likelier_;
  int64_t sorted_ = 0;
};

// The token that `uniform` falls on, of those that top_k left.
int32_t Draw(Logits logits, std::vector<int32_t> tokens, const ChoiceOptions& options,
             double uniform) {
  // Of these tokens: beside a far likelier forbidden one, all of their weights could vanish.
  const double greatest = logits[*std::min_element(tokens.begin(), tokens.end(), Likelier{logits})];
  const auto weight = [&](int32_t token) {
    return std::exp((static_cast<double>(logits[token]) - greatest) / options.temperature);
  };
  double sum = 0;
  for (const int32_t token : tokens) sum += weight(token);
  Descending order(std::move(tokens), logits);
  int64_t kept = order.size();
  if (options.top_p < 1) {
    const double enough = options.top_p * sum;
    sum = weight(order[0]);
    for (kept = 1; kept < order.size() && sum < enough; ++kept) sum += weight(order[kept]);
  }
  const double target = uniform * sum;
  int32_t drawn = order[0];
  double reached = 0;
  for (int64_t i = 0; i < kept && reached <= target; ++i) {
    const double more = weight(order[i]);
    if (more == 0)
      break;  // if rounded sums left `uniform` behind the last token with a probability
    drawn = order[i];
    reached += more;
  }
  return drawn;
}

void CheckOptions(const ChoiceOptions& options, double uniform) {
  CHECK(options.temperature >= 0 && std::isfinite(options.temperature)) << options.temperature;
  CHECK(options.top_k >= 0) << options.top_k;
  CHECK(options.top_p >= 0 && options.top_p <= 1) << options.top_p;
  CHECK(uniform >= 0 && uniform < 1) << uniform;
}

}  // namespace

absl::Status CheckFinite(Logits logits) {
  if (AllFinite(logits)) return absl::OkStatus();
  const auto at = std::find_if_not(logits.begin(), logits.end(),
                                   [](float logit) { return std::isfinite(logit); });
  return absl::FailedPreconditionError(
      absl::StrCat("the logit of token ", at - logits.begin(), " is ", *at, "; must be finite"));
}

absl::StatusOr<std::vector<Candidate>> Likeliest(Logits logits, int count, Tokens forbidden) {
  CHECK(count > 0 && !logits.empty()) << count << " of " << logits.size();
  RETURN_IF_ERROR(CheckFinite(logits));
  const Row row(logits);
  const LogSoftmax log_softmax(logits, row.greatest);
  std::vector<Candidate> candidates;
  for (const int32_t token : LikeliestTokens(row, count, forbidden)) {
    candidates.push_back({token, log_softmax.Of(token)});
  }
  return candidates;
}

absl::StatusOr<Candidate> Sample(Logits logits, const ChoiceOptions& options, double uniform,
                                 Tokens forbidden) {
  CheckOptions(options, uniform);
  RETURN_IF_ERROR(CheckFinite(logits));
  const Row row(logits);
  const int64_t most = options.temperature == 0 ? 1 : options.top_k;
  std::vector<int32_t> tokens =
      most > 0 ? LikeliestTokens(row, most, forbidden) : AllowedTokens(logits, forbidden);
  CHECK(!tokens.empty()) << "every token is forbidden";
  const int32_t token =
      tokens.size() == 1 ? tokens[0] : Draw(logits, std::move(tokens), options, uniform);
  return Candidate{token, LogSoftmax(logits, row.greatest).Of(token)};
}

absl::StatusOr<std::vector<Candidate>> Choose(Logits logits, const ChoiceOptions& options,
                                              double uniform, Tokens forbidden) {
  if (!options.sample) return Likeliest(logits, options.candidates, forbidden);
  ASSIGN_OR_RETURN(const Candidate sampled, Sample(logits, options, uniform, forbidden));
  return std::vector<Candidate>{sampled};
}

}  // namespace stagecoach
