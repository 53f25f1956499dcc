// Translations through pipelines of any number of stages, against those of one cell.
#include "stage/executor/decoding_executor.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/numbers/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/zoo/transformer.h"
#include "stage/decoding/local_token_model.h"
#include "stage/layers/layer_testing.h"
#include "stage/link/testing/in_process_link.h"
#include "stage/testing/made_up_pairs.h"

namespace stagecoach {
namespace {

constexpr int32_t kBegin = 2, kEnd = 3;
constexpr int64_t kContext = 9, kVocabulary = 23;

TransformerSpec SmallTransformer() {
  return {.vocabulary = kVocabulary,
          .source_context = 7,
          .target_context = kContext,
          .width = 12,
          .hidden = 20,
          .heads = 3,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .dropout = 0.3};
}

struct Options {
  std::vector<int> cuts;  // first layers of the stages behind the first
  int groups = 3;
  int64_t samples = 10;  // held out
  int beam = 2;
  int capacity = 2;    // messages of a link
  int64_t rounds = 0;  // behind so many a pass pauses
  uint64_t order = 0;
};

// Stages in one thread, advanced in an order drawn from a seed.
class Pipeline {
 public:
  explicit Pipeline(const Options& options)
      : options_(options),
        network_(ExpandOrDie(SmallTransformer())),
        search_{.beam = {.beam = options.beam,
                         .length_penalty = 1,
                         .most_tokens = kContext,
                         .least_tokens = 1,
                         .end = kEnd,
                         .only_best = true},
                .begin = kBegin,
                .context = kContext},
        form_(DecodingOf(network_, TranslationGroup::MostRows(search_, 10)).value()),
        source_(network_, {.batch_size = 10,
                           .micro_batches = options.groups,
                           .evaluation_samples = options.samples,
                           .lengths_vary = true}) {
    choice_.options.candidates = 2 * options.beam;
    std::vector<int> bounds = {0};
    bounds.insert(bounds.end(), options.cuts.begin(), options.cuts.end());
    bounds.push_back(static_cast<int>(network_.layers.size()));
    const int stages = static_cast<int>(bounds.size()) - 1;
    stages_.resize(static_cast<size_t>(stages));
    for (int k = 0; k + 1 < stages; ++k) {
      std::tie(At(k).downstream, At(k + 1).upstream) =
          MakeInProcessLinkPair({.capacity_messages = options.capacity});
    }
    for (int k = 0; k < stages; ++k)
      Build(k, bounds[static_cast<size_t>(k)], bounds[static_cast<size_t>(k) + 1]);
  }

  // Passes until all is over.
  absl::Status Run(uint64_t attempt = 0) {
    bool goes_on = false;
    BeginSearches();
    do {
      RETURN_IF_ERROR(RunPass(attempt++, goes_on));
      ++passes_;
      goes_on = std::any_of(groups_.begin(), groups_.end(),
                            [](const auto& group) { return !group->over(); });
      EXPECT_EQ(stages_.back().executor->paused() && options_.rounds == 0, false);
    } while (goes_on);
    return absl::OkStatus();
  }

  absl::Status RunPass(uint64_t attempt, bool goes_on) {
    for (Stage& stage : stages_) stage.executor->Begin(Work(attempt, goes_on));
    std::vector<int> running(stages_.size());
    for (size_t k = 0; k < running.size(); ++k) running[k] = static_cast<int>(k);
    int blocked = 0;
    for (uint64_t draw = 0; !running.empty(); ++draw) {
      const RandomStream order{.seed = options_.order};
      const size_t at = RandomBits(order, draw) % running.size();
      ASSIGN_OR_RETURN(const Progress progress, At(running[at]).executor->Advance(1));
      blocked = progress == Progress::kBlocked ? blocked + 1 : 0;
      if (progress == Progress::kFinished) running.erase(running.begin() + static_cast<int>(at));
      if (blocked < 200) continue;
      return absl::InternalError("deadlock: " + At(running[0]).executor->WaitingFor());
    }
    return absl::OkStatus();
  }

  std::vector<TranslationGroup::Translation> Translations() {
    std::vector<TranslationGroup::Translation> all;
    for (const auto& group : groups_) {
      for (TranslationGroup::Translation& one : group->TakeDone()) all.push_back(std::move(one));
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
  }
  int passes() const { return passes_; }

  void BeginSearches() {
    groups_.clear();
    pool_ = std::make_unique<RowPool>(static_cast<int32_t>(form_.pool));
    int64_t first = 0;
    for (int g = 0; g < options_.groups; ++g) {
      std::vector<int64_t> numbers(
          static_cast<size_t>(source_.Evaluation(0, MicroBatchId(g), {}).value().samples));
      std::iota(numbers.begin(), numbers.end(), first);
      first += std::ssize(numbers);
      groups_.push_back(std::make_unique<TranslationGroup>(search_, numbers, pool_.get()));
    }
  }

  // The same by one cell, a group at a time.
  std::vector<TranslationGroup::Translation> ByOneCell() {
    const auto model =
        LocalTokenModel::Create(form_, *stages_.front().cell, *stages_.front().backend).value();
    RowPool pool(static_cast<int32_t>(form_.pool));
    std::vector<TranslationGroup::Translation> all;
    int64_t first = 0;
    for (int g = 0; g < options_.groups; ++g) {
      const std::vector<std::string> names = {"source", "source_length"};
      const HostBatch batch = source_.Evaluation(0, MicroBatchId(g), names).value();
      if (batch.samples == 0) continue;
      SourceBatch source{.samples = batch.samples, .lengths = batch.lengths};
      for (size_t i = 0; i < names.size(); ++i) {
        const auto* const ids = reinterpret_cast<const int32_t*>(batch.arrays[i].data());
        source.ids[names[i]].assign(ids, ids + batch.arrays[i].size() / sizeof(int32_t));
      }
      EXPECT_TRUE(model->Begin(g, source).ok());
      std::vector<int64_t> numbers;
      for (int64_t i = 0; i < batch.samples; ++i) numbers.push_back(first++);
      TranslationGroup group(search_, numbers, &pool);
      while (!group.over()) {
        const RowBatch rows = group.Rows().value();
        EXPECT_TRUE(group.Take(model->Step(g, rows, choice_).value()).ok());
        if (const auto kept = group.Shrink()) {
          EXPECT_TRUE(model->Keep(g, *kept).ok());
        }
        for (auto& one : group.TakeDone()) all.push_back(std::move(one));
      }
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    return all;
  }

  DecodingExecutor& executor(int k) { return *At(k).executor; }
  int layers() const { return static_cast<int>(network_.layers.size()); }
  DecodingWork Work(uint64_t attempt, bool goes_on = false) const {
    std::vector<TokenSearch*> searches;
    for (const auto& group : groups_) searches.push_back(group.get());
    return {.fence = {.job = "a",
                      .term = 1,
                      .generation = 1,
                      .step = 3,
                      .attempt = static_cast<uint32_t>(attempt)},
            .batch = 0,
            .groups = options_.groups,
            .searches = std::move(searches),
            .choice = choice_,
            .rounds = options_.rounds,
            .goes_on = goes_on};
  }

 private:
  struct Stage {
    std::unique_ptr<Backend> backend = MakeReferenceBackend({});
    std::unique_ptr<Link> upstream, downstream;
    std::unique_ptr<PhaseClock> phases;
    std::unique_ptr<Cell> cell;
    std::unique_ptr<CellDecoder> decoder;
    std::unique_ptr<DecodingExecutor> executor;
  };
  Stage& At(int k) { return stages_[static_cast<size_t>(k)]; }

  // Weights are larger than initial ones, so that choices differ.
  void Build(int k, int first, int last) {
    Stage& stage = At(k);
    stage.phases = std::make_unique<PhaseClock>(SystemClock::Get());
    stage.cell = Cell::Create(network_, first, last, /*seed=*/7, /*micro_batches=*/1,
                              *stage.backend, nullptr, Cell::Head::kWhole)
                     .value();
    for (auto& [name, tensor] : stage.cell->Values()) {
      std::vector<float> values = ValuesOf<float>(*stage.backend, tensor);
      for (float& value : values) value *= 2.5f;
      stage.backend->CopyFromHost(std::as_bytes(std::span(values)), tensor);
    }
    stage.decoder = CellDecoder::Create(form_, *stage.cell, *stage.backend).value();
    stage.executor = std::make_unique<DecodingExecutor>(
        DecodingExecutor::Parts{.stage = StageId(k),
                                .stages = static_cast<int>(stages_.size()),
                                .decoder = stage.decoder.get(),
                                .form = &form_,
                                .backend = stage.backend.get(),
                                .upstream = stage.upstream.get(),
                                .downstream = stage.downstream.get(),
                                .data = &source_,
                                .phases = stage.phases.get(),
                                .clock = SystemClock::Get()});
  }

  const Options options_;
  const Network network_;
  const TranslationOptions search_;
  const DecodingForm form_;
  const MadeUpPairs source_;
  StepChoice choice_;
  std::vector<Stage> stages_;
  std::unique_ptr<RowPool> pool_;
  std::vector<std::unique_ptr<TranslationGroup>> groups_;
  int passes_ = 0;
};

std::vector<TranslationGroup::Translation> Translated(const Options& options) {
  Pipeline pipeline(options);
  const absl::Status status = pipeline.Run();
  EXPECT_TRUE(status.ok()) << status;
  return pipeline.Translations();
}

void ExpectSame(const std::vector<TranslationGroup::Translation>& is,
                const std::vector<TranslationGroup::Translation>& expected) {
  ASSERT_EQ(is.size(), expected.size());
  for (size_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(is[i].number, expected[i].number);
    EXPECT_EQ(is[i].best.tokens, expected[i].best.tokens) << "sample " << expected[i].number;
    EXPECT_EQ(is[i].best.sum, expected[i].best.sum) << "sample " << expected[i].number;
  }
}

TEST(DecodingExecutor, GivesWhatOneCellGives) {
  Pipeline pipeline({});
  const auto expected = pipeline.ByOneCell();
  ASSERT_EQ(expected.size(), 10u);
  ASSERT_TRUE(pipeline.Run().ok());
  ExpectSame(pipeline.Translations(), expected);
}

// Every cut: in the encoder, at the embedding of the target, in the decoder, before the head.
TEST(DecodingExecutor, EveryCutGivesTheSame) {
  const auto expected = Translated({});
  const int layers = Pipeline({}).layers();
  for (int cut = 1; cut < layers; ++cut) {
    SCOPED_TRACE(cut);
    ExpectSame(Translated({.cuts = {cut}, .order = static_cast<uint64_t>(cut)}), expected);
  }
}

TEST(DecodingExecutor, ManyStagesGroupsAndOrdersGiveTheSame) {
  const auto expected = Translated({});
  for (uint64_t order = 0; order < 12; ++order) {
    SCOPED_TRACE(order);
    const int groups = 1 + static_cast<int>(order % 10);
    const int capacity = 1 + static_cast<int>(order % 2);
    for (const std::vector<int>& cuts :
         {std::vector{3, 8, 11}, std::vector{7, 9}, std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      ExpectSame(Translated({.cuts = cuts, .groups = groups, .capacity = capacity, .order = order}),
                 expected);
    }
  }
}

// A pass that pauses has the same groups and rows in the same order.
TEST(DecodingExecutor, PausesChangeNothing) {
  const auto expected = Translated({});
  for (const int64_t rounds : {1, 2, 3, 7, 100}) {
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector{9}, std::vector{3, 8, 11},
                                         std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      SCOPED_TRACE(absl::StrCat(rounds, " rounds, ", cuts.size() + 1, " stages"));
      Pipeline pipeline({.cuts = cuts, .groups = 4, .capacity = 1, .rounds = rounds});
      const absl::Status status = pipeline.Run();
      ASSERT_TRUE(status.ok()) << status;
      ExpectSame(pipeline.Translations(), expected);
      EXPECT_EQ(pipeline.passes() > 1, rounds < kContext) << pipeline.passes();
    }
  }
}

// A pause ends with the mini-batch it belongs to.
TEST(DecodingExecutor, AnotherMiniBatchMayFollowAPause) {
  const auto expected = Translated({.cuts = {4, 9}});
  Pipeline pipeline({.cuts = {4, 9}, .rounds = 2});
  pipeline.BeginSearches();
  ASSERT_TRUE(pipeline.RunPass(0, false).ok());
  for (int k = 0; k < 3; ++k) EXPECT_TRUE(pipeline.executor(k).paused()) << k;
  const absl::Status status = pipeline.Run(/*attempt=*/1);
  ASSERT_TRUE(status.ok()) << status;
  ExpectSame(pipeline.Translations(), expected);
}

// The last mini-batch of an evaluation may leave groups without a sentence.
TEST(DecodingExecutor, GroupsMayBeEmpty) {
  for (const int64_t samples : {0, 1, 3, 7}) {
    const auto expected = Translated({.samples = samples});
    EXPECT_EQ(std::ssize(expected), samples);
    ExpectSame(Translated({.cuts = {4, 9}, .samples = samples}), expected);
  }
}

TEST(DecodingExecutor, BeginsAgainAfterItWasAbandoned) {
  const auto expected = Translated({.cuts = {4, 9}});
  Pipeline pipeline({.cuts = {4, 9}});
  pipeline.BeginSearches();
  for (int k = 0; k < 3; ++k) pipeline.executor(k).Begin(pipeline.Work(0));
  bool over = false;  // the first stage has a part of the encoder only
  for (int i = 0; i < 40; ++i) {
    for (int k = over ? 1 : 0; k < 3; ++k) {
      const absl::StatusOr<Progress> progress = pipeline.executor(k).Advance(1);
      ASSERT_TRUE(progress.ok()) << progress.status();
      if (*progress != Progress::kFinished) continue;
      ASSERT_EQ(k, 0);
      over = true;
    }
  }
  EXPECT_THAT(pipeline.executor(0).WaitingFor(),
              testing::AnyOf("", testing::HasSubstr("of micro-batch")));
  for (int k = 0; k < 3; ++k) pipeline.executor(k).Abandon();
  const absl::Status status = pipeline.Run(/*attempt=*/1);
  ASSERT_TRUE(status.ok()) << status;
  ExpectSame(pipeline.Translations(), expected);
}

}  // namespace
}  // namespace stagecoach
