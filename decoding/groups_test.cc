// Groups of texts and of sentences, on a model whose next token is a hash of the text before it. The
// model reads texts by places and history alone, so a wrong row would give another text.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "decoding/text_group.h"
#include "decoding/translation_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr int32_t kWords = 11, kStop = 0, kFirst = 1;
using Text = std::vector<int32_t>;

// Logits of the token behind a text. Ends are likely, so that texts end apart.
std::vector<float> LogitsBehind(const Text& text, uint64_t seed = 17) {
  for (const int32_t token : text) seed = seed * 31 + static_cast<uint64_t>(token) + 1;
  std::vector<float> logits;
  for (int32_t token = 0; token < kWords; ++token) {
    logits.push_back(3 * RandomNormal({.seed = seed}, static_cast<uint64_t>(token)));
  }
  return logits;
}

class HashModel final : public TokenModel {
 public:
  HashModel(int64_t context, int64_t rows)
      : context_(context), token_at_(static_cast<size_t>(rows)) {}
  // The source of a sample is its seed.
  absl::Status Begin(int, const SourceBatch& source) override {
    seeds_ = source.ids.at("source");
    return absl::OkStatus();
  }
  absl::Status Keep(int, std::span<const int64_t> samples) override {
    std::vector<int32_t> kept;
    for (const int64_t sample : samples) kept.push_back(seeds_[static_cast<size_t>(sample)]);
    seeds_ = std::move(kept);
    return absl::OkStatus();
  }
  void Drop(int) override {}

  absl::StatusOr<CandidatesOfRows> Step(int, const RowBatch& rows,
                                        const StepChoice& choice) override {
    const auto count = static_cast<size_t>(rows.samples * rows.rows);
    EXPECT_EQ(rows.tokens.size(), count);
    for (size_t i = 0; i < count; ++i) {
      if (rows.places[i] >= 0) token_at_[static_cast<size_t>(rows.places[i])] = rows.tokens[i];
    }
    CandidatesOfRows candidates(count);
    for (size_t i = 0; i < count; ++i) {
      if (!rows.wanted[i]) continue;
      Text text;
      for (int32_t at = 0; at <= rows.positions[i]; ++at) {
        const size_t place = i * static_cast<size_t>(context_) + static_cast<size_t>(at);
        text.push_back(token_at_[static_cast<size_t>(rows.history[place])]);
      }
      EXPECT_EQ(text.back(), rows.tokens[i]);
      const double uniform = rows.uniforms.empty() ? 0 : rows.uniforms[i];
      const size_t sample = i / static_cast<size_t>(rows.rows);
      const uint64_t seed = seeds_.empty() ? 17 : static_cast<uint64_t>(seeds_.at(sample));
      candidates[i] = *Choose(LogitsBehind(text, seed), choice.options, uniform, choice.forbidden);
    }
    return candidates;
  }

 private:
  const int64_t context_;
  std::vector<int32_t> token_at_, seeds_;
};

std::vector<Text> Continued(const TextOptions& options, const std::vector<Text>& prompts) {
  const int64_t rows = TextGroup::MostRows(options, prompts);
  HashModel model(options.context, rows);
  RowPool pool(static_cast<int32_t>(rows));
  std::vector<Text> texts(prompts.size());
  {
    TextGroup group(options, prompts, &pool);
    while (!group.over()) {
      const RowBatch batch = group.Rows().value();
      EXPECT_TRUE(
          group.Take(model.Step(0, batch, {.options = {.sample = options.sample}}).value()).ok());
      for (const TextGroup::Token& token : group.TakeNew()) {
        texts[static_cast<size_t>(token.text)].push_back(token.token);
      }
    }
  }
  EXPECT_EQ(pool.free(), rows) << "every row is given back";
  return texts;
}

// What the model sees of a text: after a full context its latter half, and what came since.
Text PlainContinuation(const TextOptions& options, Text text) {
  Text seen(text.end() - std::min<ptrdiff_t>(std::ssize(text), options.context), text.end());
  Text written;
  while (std::ssize(written) < options.most_tokens) {
    const Candidate next = Likeliest(LogitsBehind(seen), 1, {}).value().front();
    if (next.token == kStop) break;
    written.push_back(next.token);
    text.push_back(next.token);
    const bool full = std::ssize(seen) == options.context;
    if (full) seen.assign(text.end() - std::max<int64_t>(1, options.context / 2), text.end());
    if (!full) seen.push_back(next.token);
  }
  return written;
}

TEST(TextGroup, EachTextIsThatOfItsPromptAlone) {
  const std::vector<Text> prompts = {{2, 3}, {4}, {5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7}, {2, 2}};
  for (const int64_t context : {1, 2, 3, 7, 40}) {
    const TextOptions options{.stops = {kStop}, .most_tokens = 25, .context = context};
    const std::vector<Text> texts = Continued(options, prompts);
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(texts[i], PlainContinuation(options, prompts[i])) << "context " << context;
    }
  }
}

TEST(TextGroup, ALongPromptIsReadInPieces) {
  Text prompt;
  for (int i = 0; i < 3 * TextGroup::kPieceRows + 5; ++i) prompt.push_back(2 + i % 7);
  const TextOptions options{.stops = {kStop}, .most_tokens = 4, .context = 300};
  EXPECT_EQ(Continued(options, {prompt, {3}}),
            (std::vector{PlainContinuation(options, prompt), PlainContinuation(options, {3})}));
}

TEST(TextGroup, DrawnTokensDependOnSeedAndPlaceAlone) {
  TextOptions options{.stops = {}, .most_tokens = 12, .context = 30, .sample = true, .seed = 4};
  const std::vector<Text> both = Continued(options, {{2, 3}, {2, 3}});
  EXPECT_NE(both[0], both[1]) << "each text has numbers of its own";
  EXPECT_EQ(Continued(options, {{2, 3}, {5}})[0], both[0]);
  options.seed = 5;
  EXPECT_NE(Continued(options, {{2, 3}})[0], both[0]);
}

constexpr int32_t kSentences = 12;

std::map<int64_t, Text> Searched(const BeamOptions& beam, int64_t* shrunk) {
  const TranslationOptions options{.beam = beam, .begin = kFirst, .context = beam.most_tokens};
  const int64_t rows = TranslationGroup::MostRows(options, kSentences);
  HashModel model(options.context, rows);
  RowPool pool(static_cast<int32_t>(rows));
  std::vector<int64_t> numbers;
  SourceBatch source{.samples = kSentences};
  for (int32_t i = 0; i < kSentences; ++i) {
    numbers.push_back(100 + i);
    source.ids["source"].push_back(i);
  }
  EXPECT_TRUE(model.Begin(0, source).ok());
  std::map<int64_t, Text> done;
  {
    TranslationGroup group(options, numbers, &pool);
    while (!group.over()) {
      const RowBatch batch = group.Rows().value();
      const StepChoice choice{.options = {.candidates = 2 * beam.beam}};
      EXPECT_TRUE(group.Take(model.Step(0, batch, choice).value()).ok());
      if (const auto kept = group.Shrink()) {
        ++*shrunk;
        EXPECT_LT(std::ssize(*kept), batch.samples);
        EXPECT_TRUE(model.Keep(0, *kept).ok());
      }
      for (auto& one : group.TakeDone()) done[one.number] = std::move(one.best.tokens);
    }
  }
  EXPECT_EQ(pool.free(), rows) << "every row is given back";
  return done;
}

Text SearchedAlone(const BeamOptions& options, uint64_t seed) {
  BeamSearch search(options);
  std::vector<Text> live = {{kFirst}};
  while (!search.over()) {
    std::vector<std::vector<Candidate>> candidates;
    for (const Text& text : live) {
      candidates.push_back(Likeliest(LogitsBehind(text, seed), 2 * options.beam, {}).value());
    }
    std::vector<Text> next;
    for (const BeamSearch::Next& one : search.Advance(candidates)) {
      next.push_back(live[static_cast<size_t>(one.parent)]);
      next.back().push_back(one.token);
    }
    live = std::move(next);
  }
  return search.Best().front().tokens;
}

// Each sentence has a model of its own, so that they end apart and a mix-up gives another text.
TEST(TranslationGroup, EachSentenceHasTheTranslationOfItsSearch) {
  for (const int beam : {1, 2, 5}) {
    const BeamOptions options{.beam = beam, .length_penalty = 1, .most_tokens = 9, .end = kStop};
    int64_t shrunk = 0;
    const std::map<int64_t, Text> found = Searched(options, &shrunk);
    EXPECT_GT(shrunk, 0);
    ASSERT_EQ(std::ssize(found), kSentences);
    for (const auto& [number, text] : found) {
      EXPECT_EQ(text, SearchedAlone(options, static_cast<uint64_t>(number - 100)))
          << number << ", beam " << beam;
    }
  }
}

}  // namespace
}  // namespace stagecoach
