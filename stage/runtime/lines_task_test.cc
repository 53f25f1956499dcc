// Jobs with `write` on stage runtimes with their threads: any number of stages and pauses, the same texts.
#include <map>

#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/costs/host_memory.h"
#include "plan/data/parallel_text.h"
#include "stage/data/parallel/pair_network_testing.h"
#include "stage/testing/pair_transformer.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kSentences = {"a b", "c", "dd e", "ab", "cd e f", "b", "a"};
const std::vector<std::string> kTurned = {"B A", "C", "E dd", "ba", "F e dc", "B", "A"};
// Bytes below 8, as the text that is trained on.
const std::vector<std::string> kPrompts = {"\1\2", "\3", "\1\2\3\4\5\6\7", "\5\5", "\7", "\2\1"};
constexpr uint64_t kTrained = 20;  // steps

testing::AssertionResult IsOk(const absl::Status& status) {
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status;
}

void OnPairs(const TemporaryFolder& folder, JobSpec* spec) {
  spec->network = PairTransformer();
  const auto joined = [](const std::vector<std::string>& lines) {
    return absl::StrJoin(lines, "\n") + "\n";
  };
  ParallelTextData data;
  data.tokenizer = folder.Write("tokenizer", ModelFileText(PairPieces()));
  data.sources = data.test_sources = {folder.Write("sources", joined(kSentences))};
  data.targets = data.test_targets = {folder.Write("targets", joined(kTurned))};
  spec->data = data;
}

using Change = std::function<void(const TemporaryFolder&, JobSpec*)>;

constexpr char kCheckpoint[] = "/checkpoint";

// Stages that have trained the weights, and load them again to write.
class WritingFleet : public RuntimeFleet {
 public:
  WritingFleet(int stages, const Change& change)
      : RuntimeFleet({.stages = stages, .change = change}) {
    CHECK_OK(LoadAll(1));
    CHECK_OK(TrainSteps(1, 0, kTrained).status());
    CHECK_OK(Checkpoint(1, kTrained, kCheckpoint).status());
  }
  absl::Status Load(const WriteSpec& write, uint64_t generation = 2) {
    spec().evaluation = {};
    spec().resume.job = "trained";
    spec().write = write;
    return LoadAll(generation, kTrained, kCheckpoint);
  }
};

RunCommand Command(uint64_t batch, int64_t rounds, bool goes_on) {
  static uint32_t attempt = 0;  // the coordinator counts them
  RunCommand command{.fence = RuntimeFleet::FenceOf(2, kTrained), .work = WorkKind::kWrite};
  command.fence.attempt = ++attempt;
  command.evaluation_batch = batch;
  command.rounds = rounds;
  command.goes_on = goes_on;
  return command;
}

struct Line {
  std::string text;
  int64_t tokens = 0;
  double score = 0;
  bool done = false, ended = false;
  friend bool operator==(const Line&, const Line&) = default;
};
std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << testing::PrintToString(line.text) << " " << line.tokens << " " << line.score << " "
             << line.done << line.ended;
}

struct Written {
  std::map<int64_t, Line> lines;
  int commands = 0, pieces = 0;
};

// What the last stage tells, command by command.
void Add(const StepReport& report, Written* written) {
  ++written->commands;
  for (const WrittenPiece& piece : report.written) {
    ++written->pieces;
    Line& line = written->lines[piece.line];
    EXPECT_FALSE(line.done) << "line " << piece.line;
    EXPECT_EQ(piece.offset, std::ssize(line.text)) << "line " << piece.line;
    line = {line.text + piece.text, piece.tokens, piece.score, piece.done, piece.ended};
  }
}

absl::StatusOr<Written> Write(RuntimeFleet& fleet, int64_t rounds) {
  const auto batch = static_cast<size_t>(fleet.spec().training.batch_size);
  const size_t batches = (fleet.spec().write->lines.size() + batch - 1) / batch;
  Written written;
  for (uint64_t i = 0; i < batches; ++i) {
    for (bool goes_on = false;; goes_on = true) {
      ASSIGN_OR_RETURN(const auto reports, fleet.RunAll(Command(i, rounds, goes_on)));
      for (size_t k = 0; k + 1 < reports.size(); ++k) EXPECT_TRUE(reports[k].written.empty());
      Add(reports.back(), &written);
      if (reports.back().write_over) break;
      EXPECT_GT(rounds, 0) << "a pass without pauses is over";
    }
  }
  return written;
}

Written WriteWith(const Change& change, int stages, const WriteSpec& write, int64_t rounds) {
  WritingFleet fleet(stages, change);
  EXPECT_TRUE(IsOk(fleet.Load(write)));
  absl::StatusOr<Written> written = Write(fleet, rounds);
  EXPECT_TRUE(written.ok()) << written.status();
  return written.ok() ? *std::move(written) : Written();
}

TEST(LinesTask, TranslatesAsAnEvaluationDoes) {
  const WriteSpec write{.lines = kSentences, .translate = TranslateSpec{.beam = 2, .tokens = 6}};
  const Written expected = WriteWith(OnPairs, 1, write, 0);
  ASSERT_EQ(expected.lines.size(), kSentences.size());

  RuntimeFleet::Options options{.stages = 2};
  options.change = [](const TemporaryFolder& folder, JobSpec* spec) {
    OnPairs(folder, spec);
    spec->evaluation.translate = TranslateSpec{.beam = 2, .tokens = 6};
  };
  WritingFleet evaluating(2, options.change);
  ASSERT_TRUE(IsOk(evaluating.LoadAll(2, kTrained, kCheckpoint)));
  int seen = 0;
  for (const uint64_t batch : {0, 1}) {
    RunCommand command = Command(batch, 0, false);
    command.work = WorkKind::kTranslate;
    const auto reports = evaluating.RunAll(command);
    ASSERT_TRUE(reports.ok()) << reports.status();
    for (const ShownTranslation& one : reports->back().shown_translations) {
      ++seen;
      EXPECT_EQ(expected.lines.at(one.number).text, one.translation) << one.source;
    }
  }
  EXPECT_EQ(seen, 7);

  for (const int stages : {1, 2, 3, 6}) {
    if (kSanitized && stages != 3) continue;
    for (const int64_t rounds : {0, 1, 3}) {
      SCOPED_TRACE(absl::StrCat(stages, " stages, ", rounds, " rounds"));
      const Written written = WriteWith(OnPairs, stages, write, rounds);
      EXPECT_EQ(written.lines, expected.lines);
      EXPECT_EQ(written.commands > 2, rounds > 0);
    }
  }
}

TEST(LinesTask, ContinuesPromptsTheSameForEveryNumberOfStages) {
  for (const double temperature : {0.0, 0.9}) {
    GenerateSpec generate{.tokens = 11, .temperature = temperature, .stops = {"\3"}};
    const WriteSpec write{.lines = kPrompts, .generate = generate};
    const Written expected = WriteWith(nullptr, 1, write, 0);
    ASSERT_EQ(expected.lines.size(), kPrompts.size());
    int64_t tokens = 0;
    for (const auto& [number, line] : expected.lines) {
      tokens += line.tokens;
      EXPECT_TRUE(line.done);
      EXPECT_EQ(line.tokens, std::ssize(line.text)) << "tokens are bytes";
      EXPECT_EQ(line.ended, line.tokens < generate.tokens);
      EXPECT_EQ(line.text.find('\3'), line.text.npos) << "the stop is none of the text";
    }
    for (const int stages : {1, 2, 4}) {
      if (kSanitized && stages != 2) continue;
      for (const int64_t rounds : {0, 1, 2, 5}) {
        SCOPED_TRACE(absl::StrCat(stages, " stages, ", rounds, " rounds"));
        const Written written = WriteWith(nullptr, stages, write, rounds);
        EXPECT_EQ(written.lines, expected.lines);
        if (rounds == 1) {
          EXPECT_GE(written.pieces, tokens) << "each as it comes";
        }
      }
    }
  }
}

void WithALongContext(const TemporaryFolder& folder, JobSpec* spec) {
  spec->network = GptSpec{
      .layers = 3, .width = 8, .heads = 2, .context = 80, .vocabulary = 8, .tied_embeddings = true};
  spec->data = TextData{.path = folder.Write("long", std::string(2000, '\1')), .bytes = true};
}

// Prompts are read in pieces of 64 rows, one after the other. The last one is longer than the context,
// and each text fills it. Embeddings are tied: the last stage has a copy.
TEST(LinesTask, PromptsMayBeLongAndTextsMayFillTheContext) {
  std::vector<std::string> prompts;
  for (const int length : {3, 64, 65, 79, 80, 200}) {
    if (kSanitized && length != 65 && length != 80) continue;
    std::string& prompt = prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompt += static_cast<char>(1 + (i * i + length) % 7);
  }
  const WriteSpec write{.lines = prompts, .generate = GenerateSpec{.tokens = 90, .temperature = 1}};
  const Written expected = WriteWith(WithALongContext, 1, write, 0);
  ASSERT_EQ(expected.lines.size(), prompts.size());
  for (const auto& [number, line] : expected.lines) EXPECT_EQ(line.tokens, 90);
  for (const auto& [stages, rounds] : {std::pair(2, 0), std::pair(2, 1), std::pair(3, 7)}) {
    if (kSanitized && rounds != 7) continue;
    SCOPED_TRACE(absl::StrCat(stages, " stages, ", rounds, " rounds"));
    EXPECT_EQ(WriteWith(WithALongContext, stages, write, rounds).lines, expected.lines);
  }
}

// A lost stage ends the mini-batch; it begins anew on the next load and says the same.
TEST(LinesTask, BeginsAnewAfterAnotherLoad) {
  const WriteSpec write{.lines = kPrompts, .generate = GenerateSpec{.tokens = 9}};
  const Written expected = WriteWith(nullptr, 1, write, 0);
  WritingFleet fleet(2, nullptr);
  ASSERT_TRUE(IsOk(fleet.Load(write)));
  ASSERT_TRUE(fleet.RunAll(Command(0, 2, false)).ok());
  fleet.Restart(1);
  ASSERT_TRUE(IsOk(fleet.Load(write, 3)));
  RunCommand first = Command(0, 2, false), rest = Command(0, 0, true);
  first.fence.generation = rest.fence.generation = 3;
  Written written;
  for (const RunCommand& command : {first, rest}) {
    const auto reports = fleet.RunAll(command);
    ASSERT_TRUE(reports.ok()) << reports.status();
    Add(reports->back(), &written);
  }
  for (const auto& [number, line] : written.lines) EXPECT_EQ(line, expected.lines.at(number));
  EXPECT_EQ(written.lines.size(), 5u) << "the first mini-batch";
}

TEST(LinesTask, RefusesCommandsThatDoNotFit) {
  const WriteSpec write{.lines = kPrompts, .generate = GenerateSpec{.tokens = 4}};
  WritingFleet fleet(2, nullptr);
  ASSERT_TRUE(IsOk(fleet.Load(write)));
  RunCommand train = Command(0, 0, false);
  train.work = WorkKind::kTrain;
  for (const auto& [command, words] :
       {std::pair(train, "does nothing else"), std::pair(Command(2, 0, false), "mini-batch 2 of"),
        std::pair(Command(0, -1, false), "rounds")}) {
    const absl::Status status = fleet.RunAll(command).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
  ASSERT_TRUE(fleet.RunAll(Command(0, 1, false)).ok());
  const absl::Status other = fleet.RunAll(Command(1, 1, true)).status();
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("mini-batch 1 goes on, and mini-batch 0 has"));
}

TEST(LinesTask, RefusesToGoOnWhereNothingHasPaused) {
  const WriteSpec write{.lines = kPrompts, .generate = GenerateSpec{.tokens = 4}};
  WritingFleet fleet(2, nullptr);
  ASSERT_TRUE(IsOk(fleet.Load(write)));
  const absl::Status status = fleet.RunAll(Command(0, 1, true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing has paused"));

  RuntimeFleet training({.stages = 1});
  ASSERT_TRUE(training.LoadAll(1).ok());
  RunCommand command = Command(0, 0, false);
  command.fence.generation = 1;
  command.fence.step = 0;
  EXPECT_THAT(std::string(training.RunAll(command).status().message()),
              HasSubstr("only jobs with"));
  command.work = WorkKind::kEvaluate;
  command.rounds = 1;
  EXPECT_THAT(std::string(training.RunAll(command).status().message()),
              HasSubstr("only writing has rounds"));
}

// No gradients and no optimizer; tensors stay below the forecast.
TEST(LinesTask, TakesNoMoreThanTheForecast) {
  const WriteSpec translate{.lines = kSentences, .translate = TranslateSpec{.beam = 3}};
  const WriteSpec generate{.lines = kPrompts, .generate = GenerateSpec{.tokens = 30}};
  // A sample of the network for a step of a group.
  const WriteSpec longer{.lines = {std::string(75, '\1'), "\2", std::string(30, '\3'), "\4"},
                         .generate = GenerateSpec{.tokens = 30}};
  for (const WriteSpec* write : {&translate, &generate, &longer}) {
    for (const int stages : {1, 3}) {
      if (kSanitized && stages != 3) continue;
      WritingFleet fleet(stages, write == &translate ? Change(OnPairs)
                                 : write == &longer  ? Change(WithALongContext)
                                                     : nullptr);
      ASSERT_TRUE(IsOk(fleet.Load(*write)));
      const auto reports = fleet.RunAll(Command(0, 0, false));
      ASSERT_TRUE(reports.ok()) << reports.status();
      for (int k = 0; k < stages; ++k) {
        const LoadCommand load = fleet.LoadOf(k, 2, kTrained);
        const DecodingSizes sizes = *DecodingSizesOf(load.spec, *load.network);
        const Schedule programs =
            MakeSchedule({.stages = stages, .micro_batches = 3, .forward_only = true});
        const int layers = static_cast<int>(load.network->layers.size());
        const StageMemory forecast =
            ForecastStageMemory(*load.network, {}, k,
                                {.cells = {{load.partition.first(k), load.partition.last(k, layers)}},
                                 .batch_size = ComputedSamples(load.spec, *load.network),
                                 .micro_batches = 3,
                                 .evaluation = programs.programs,
                                 .decoding = &sizes});
        const StageMemory& peak = (*reports)[static_cast<size_t>(k)].memory_peak;
        // Keys and values are states of layers, which a stage counts as parameters.
        EXPECT_LE(peak.activations + peak.parameters, forecast.activations + forecast.parameters)
            << "stage " << k << " of " << stages;
        EXPECT_EQ(peak.gradients, 0);
        EXPECT_EQ(peak.optimizer, 0);
        EXPECT_EQ(forecast.gradients + forecast.optimizer, 0);
      }
    }
  }
}

TEST(LinesTask, NamesLinesThatCannotBeWritten) {
  const TranslateSpec translate{.beam = 2};
  const struct {
    Change change;
    WriteSpec write;
    const char* words;
  } kCases[] = {
      {OnPairs,
       {.lines = {"a", "a b c d e f a b c d e f"}, .translate = translate},
       "write.lines[1]: has"},
      {OnPairs, {.lines = {"a"}, .tag = "<2xx>", .translate = translate}, "write.tag"},
      {nullptr, {.lines = {"\1", "\11"}, .generate = GenerateSpec()}, "write.lines[1]: byte 9"},
      {nullptr,
       {.lines = {"\1"}, .generate = GenerateSpec{.stops = {"\1", "ab"}}},
       "write.generate.stops[1]: \"ab\""},
  };
  for (const auto& one : kCases) {
    WritingFleet fleet(1, one.change);
    const absl::Status status = fleet.Load(one.write);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.words));
  }
}

}  // namespace
}  // namespace stagecoach
