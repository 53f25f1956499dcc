// Translations of an evaluation by stage runtimes with their threads.
#include "stage/runtime/cell_writing.h"

#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/data/parallel_text.h"
#include "scores/corpus_counts.h"
#include "stage/data/parallel/pair_network_testing.h"
#include "stage/testing/pair_transformer.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kSources[] = {"a b", "c", "dd e", "ab", "cd e f", "b", "a"};
constexpr const char* kTargets[] = {"B A", "C", "E dd", "ba", "F e dc", "B", "A"};

constexpr uint64_t kSteps = 20;  // before them it writes nothing but spaces

std::string Lines(const char* const (&lines)[7]) {
  std::string text;
  for (const char* const line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

RuntimeFleet::Options Translating(int stages, Precision precision = Precision::kFloat32) {
  RuntimeFleet::Options options{.stages = stages};
  options.precision = precision;
  options.change = [](const TemporaryFolder& folder, JobSpec* spec) {
    spec->network = PairTransformer();
    ParallelTextData data;
    data.tokenizer = folder.Write("tokenizer", ModelFileText(PairPieces()));
    data.sources = data.test_sources = {folder.Write("sources", Lines(kSources))};
    data.targets = data.test_targets = {folder.Write("targets", Lines(kTargets))};
    spec->data = data;
    spec->evaluation.translate = TranslateSpec{.beam = 2, .tokens = 6};
  };
  return options;
}

RunCommand Command(WorkKind work, uint64_t batch, uint64_t step, bool average = false) {
  // The coordinator counts attempts.
  static uint32_t attempt = 0;
  RunCommand command{.fence = RuntimeFleet::FenceOf(1, step), .work = work};
  command.fence.attempt = ++attempt;
  command.evaluation_batch = batch;
  command.average = average;
  return command;
}

// Of both mini-batches, of 5 and 2 sentences, behind an evaluation of one.
std::vector<StepReport> Translate(RuntimeFleet& fleet, uint64_t step, bool average = false) {
  const auto evaluated = fleet.RunAll(Command(WorkKind::kEvaluate, 0, step, average));
  EXPECT_TRUE(evaluated.ok()) << evaluated.status();
  std::vector<StepReport> all;
  for (const uint64_t batch : {0, 1}) {
    auto reports = fleet.RunAll(Command(WorkKind::kTranslate, batch, step, average));
    EXPECT_TRUE(reports.ok()) << reports.status();
    if (!reports.ok()) break;
    for (size_t k = 0; k + 1 < reports->size(); ++k) {
      EXPECT_THAT((*reports)[k].translation_counts, SizeIs(0)) << "the last stage counts";
    }
    EXPECT_FALSE(reports->back().has_loss);
    all.push_back(reports->back());
  }
  return all;
}

std::vector<std::string> Texts(const std::vector<StepReport>& reports) {
  std::vector<std::string> texts;
  for (const StepReport& report : reports) {
    for (const ShownTranslation& one : report.shown_translations) texts.push_back(one.translation);
  }
  return texts;
}

TEST(CellWriting, CountsWhatItShows) {
  RuntimeFleet fleet(Translating(2));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, kSteps).ok());
  const std::vector<StepReport> reports = Translate(fleet, kSteps);
  ASSERT_THAT(reports, SizeIs(2));
  std::vector<int64_t> numbers;
  for (const StepReport& report : reports) {
    CorpusCounts counts;
    for (const ShownTranslation& one : report.shown_translations) {
      const auto i = static_cast<size_t>(one.number);
      EXPECT_EQ(one.source, kSources[i]);
      EXPECT_EQ(one.reference, kTargets[i]);
      counts += CountSegment(one.translation, one.reference);
      numbers.push_back(one.number);
    }
    EXPECT_EQ(CorpusCounts::FromNumbers(report.translation_counts), counts);
  }
  EXPECT_THAT(numbers, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Texts(reports), testing::Contains(testing::Not("")));
}

TEST(CellWriting, AnyNumberOfStagesGivesTheSameAndTrainingGoesOnAsWithout) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    SCOPED_TRACE(PrecisionName(precision));
    std::vector<std::string> expected;
    std::vector<double> losses;
    for (const int stages : {1, 2, 3, 6}) {
      if (kSanitized && stages > 2) continue;
      SCOPED_TRACE(stages);
      RuntimeFleet plain(Translating(stages, precision)), fleet(Translating(stages, precision));
      ASSERT_TRUE(plain.LoadAll(1).ok() && fleet.LoadAll(1).ok());
      ASSERT_TRUE(plain.TrainSteps(1, 0, kSteps).ok() && fleet.TrainSteps(1, 0, kSteps).ok());
      const std::vector<StepReport> reports = Translate(fleet, kSteps);
      EXPECT_EQ(Texts(Translate(fleet, kSteps)), Texts(reports)) << "again";
      const auto rest = plain.TrainSteps(1, kSteps, kSteps + 2),
                 after = fleet.TrainSteps(1, kSteps, kSteps + 2);
      ASSERT_TRUE(rest.ok() && after.ok()) << rest.status() << after.status();
      EXPECT_EQ(*after, *rest);
      EXPECT_NE(Texts(Translate(fleet, kSteps + 2)), Texts(reports)) << "other weights";
      if (stages == 1) {
        expected = Texts(reports);
        losses = *after;
      }
      EXPECT_EQ(Texts(reports), expected);
      EXPECT_EQ(*after, losses);
    }
  }
}

// Seen: the first step after an evaluation told of keys and values as its own memory.
TEST(CellWriting, AStepAfterItTakesWhatAStepTakes) {
  RuntimeFleet fleet(Translating(2));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 1).ok());
  Translate(fleet, 1);
  const auto after = fleet.RunAll(RuntimeFleet::Train(1, 1, false));
  const auto next = fleet.RunAll(RuntimeFleet::Train(1, 2, true));
  ASSERT_TRUE(after.ok() && next.ok()) << after.status() << next.status();
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ((*after)[static_cast<size_t>(k)].memory_peak.parameters,
              (*next)[static_cast<size_t>(k)].memory_peak.parameters);
  }
}

TEST(CellWriting, AveragesTranslateIfAsked) {
  RuntimeFleet::Options options = Translating(3);
  options.average = {.decay = 0.99};  // still close to the first weights
  RuntimeFleet fleet(options), first(Translating(3));
  ASSERT_TRUE(fleet.LoadAll(1).ok() && first.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, kSteps).ok());
  const std::vector<std::string> live = Texts(Translate(fleet, kSteps)),
                                 average = Texts(Translate(fleet, kSteps, /*average=*/true));
  EXPECT_NE(average, live);
  EXPECT_EQ(Texts(Translate(fleet, kSteps)), live) << "and back";
}

TEST(CellWriting, RefusesWhatDoesNotFit) {
  RuntimeFleet fleet(Translating(2));
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.TrainSteps(1, 0, 2).ok());
  const auto early = fleet.RunAll(Command(WorkKind::kTranslate, 0, 2));
  EXPECT_EQ(early.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(early.status().message()),
              HasSubstr("an evaluation with the same weights comes"));

  RuntimeFleet plain({.stages = 1});
  ASSERT_TRUE(plain.LoadAll(1).ok());
  const auto none = plain.RunAll(Command(WorkKind::kTranslate, 0, 0));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("evaluation.translate"));
}

TEST(CellWriting, TakesNoMoreThanTheForecast) {
  for (const int stages : {1, 3}) {
    for (const int64_t beam : {1, 9}) {
      RuntimeFleet::Options options = Translating(stages);
      options.change = [&, change = options.change](const TemporaryFolder& folder, JobSpec* spec) {
        change(folder, spec);
        spec->evaluation.translate->beam = beam;
      };
      RuntimeFleet fleet(options);
      ASSERT_TRUE(fleet.LoadAll(1).ok());
      ASSERT_TRUE(fleet.RunAll(Command(WorkKind::kEvaluate, 0, 0)).ok());
      for (const uint64_t batch : {0, 1}) {
        const auto reports = fleet.RunAll(Command(WorkKind::kTranslate, batch, 0));
        ASSERT_TRUE(reports.ok()) << reports.status();
        for (int k = 0; k < stages; ++k) {
          const LoadCommand load = fleet.LoadOf(k, 1, 0);
          const DecodingSizes sizes = *DecodingSizesOf(load.spec, *load.network);
          ScheduleOptions programs{.stages = stages, .micro_batches = 3, .forward_only = true};
          const int layers = static_cast<int>(load.network->layers.size());
          const StageMemory forecast =
              ForecastStageMemory(*load.network, {}, k,
                                  {.cells = {{load.partition.first(k), load.partition.last(k, layers)}},
                                   .batch_size = load.spec.training.batch_size,
                                   .micro_batches = 3,
                                   .optimizer = load.spec.training.optimizer,
                                   .evaluation = MakeSchedule(programs).programs,
                                   .decoding = &sizes});
          const int64_t most = (*reports)[static_cast<size_t>(k)].memory_peak.activations +
                               (*reports)[static_cast<size_t>(k)].memory_peak.parameters;
          EXPECT_LE(most, forecast.activations + forecast.parameters)
              << "stage " << k << " of " << stages << ", beam " << beam;
        }
      }
    }
  }
}

TEST(CellWriting, SaysWhatWouldNeedLessMemory) {
  RuntimeFleet::Options options = Translating(1);
  options.change = [change = options.change](const TemporaryFolder& folder, JobSpec* spec) {
    change(folder, spec);
    spec->evaluation.translate->beam = 9;
    spec->training.batch_size = 400;
    spec->training.micro_batches = 400;
  };
  options.memory_limit_bytes = 3 << 20;
  RuntimeFleet fleet(options);
  ASSERT_TRUE(fleet.LoadAll(1).ok());
  ASSERT_TRUE(fleet.RunAll(Command(WorkKind::kEvaluate, 0, 0)).ok());
  const auto report = fleet.RunAll(Command(WorkKind::kTranslate, 0, 0));
  EXPECT_EQ(report.status().code(), absl::StatusCode::kResourceExhausted) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("evaluation.translate.beam"));
}

}  // namespace
}  // namespace stagecoach
