#include "decoding/beam_search.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/errors/check.h"

namespace stagecoach {
namespace {

struct Extension {
  double sum = 0;
  BeamSearch::Next next;
};

bool IsBetter(const Extension& a, const Extension& b) {
  return std::tuple(-a.sum, a.next.parent, a.next.token) <
         std::tuple(-b.sum, b.next.parent, b.next.token);
}

double LengthPenalty(int64_t length, double alpha) {
  return std::pow((5 + static_cast<double>(length)) / 6, alpha);
}

std::vector<Extension> BestExtensions(std::vector<Extension> all, int64_t count) {
  const auto end = all.begin() + std::min(count, std::ssize(all));
  std::partial_sort(all.begin(), end, all.end(), IsBetter);
  all.erase(end, all.end());
  return all;
}

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options) : options_(options), live_(1) {
  CHECK(options.beam >= 1) << options.beam;
  CHECK(options.most_tokens >= 1) << options.most_tokens;
  CHECK(options.least_tokens >= 0) << options.least_tokens;
  CHECK(std::isfinite(options.length_penalty)) << options.length_penalty;
}

std::vector<BeamSearch::Next> BeamSearch::Advance(
    std::span<const std::vector<Candidate>> candidates) {
  CHECK(!over() && candidates.size() == live_.size())
      << candidates.size() << " lists of candidates for " << live_.size() << " live hypotheses";
  std::vector<Extension> all;
  for (int parent = 0; parent < live(); ++parent) {
    for (const auto& [token, log_probability] : candidates[parent]) {
      if (token == options_.end && steps_ < options_.least_tokens) continue;
      all.push_back({live_[parent].sum + log_probability, {parent, token}});
    }
  }
  const std::vector<Extension> best =
      BestExtensions(std::move(all), 2 * static_cast<int64_t>(options_.beam));

  std::vector<Next> next;
  std::vector<Hypothesis> live;
  for (int64_t rank = 0; rank < std::ssize(best); ++rank) {
    const auto& [sum, step] = best[rank];
    Hypothesis hypothesis{.tokens = live_[step.parent].tokens, .sum = sum};
    if (step.token == options_.end) {
      hypothesis.ended = true;
      if (rank < options_.beam) Finish(std::move(hypothesis));
    } else if (std::ssize(live) < options_.beam) {
      hypothesis.tokens.push_back(step.token);
      live.push_back(std::move(hypothesis));
      next.push_back(step);
    }
  }
  live_ = std::move(live);
  if (++steps_ == options_.most_tokens) {
    for (Hypothesis& hypothesis : live_) Finish(std::move(hypothesis));
    live_.clear();
  }
  if (full() || (options_.only_best && BestIsFound())) live_.clear();
  if (over()) next.clear();
  return next;
}

// Sums only fall. So no score is above that of the best live sum at the length that helps it most.
bool BeamSearch::BestIsFound() const {
  if (finished_.empty() || live_.empty()) return false;
  double found = finished_.front().score;
  for (const Hypothesis& one : finished_) found = std::max(found, one.score);
  const double sum = live_.front().sum;
  for (const int64_t length : {std::min(steps_ + 1, options_.most_tokens), options_.most_tokens}) {
    if (sum / LengthPenalty(length, options_.length_penalty) > found) return false;
  }
  return true;
}

// fairseq too keeps no more than `beam`, even if more end in one step.
void BeamSearch::Finish(Hypothesis hypothesis) {
  if (full()) return;
  const int64_t length = std::ssize(hypothesis.tokens) + (hypothesis.ended ? 1 : 0);
  hypothesis.score = hypothesis.sum / LengthPenalty(length, options_.length_penalty);
  finished_.push_back(std::move(hypothesis));
}

std::vector<BeamSearch::Hypothesis> BeamSearch::Best() const {
  std::vector<Hypothesis> best = finished_;
  std::stable_sort(best.begin(), best.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return best;
}

}  // namespace stagecoach
