// network-bench: training steps of networks on the cpu back end, one stage, and where their time
// goes.
//
//   network-bench [--network=NAME] [--batch=N] [--micro-batches=M] [--threads=T]
//     [--rounds=R] [--calls]
//
// Samples are drawn from a seed: images, or pairs of 64 + 64 tokens. A step is what StageExecutor
// runs for K = 1 without recomputation, plus SGD with momentum or the row's AdamW. Seconds are this
// thread's own with one thread, the wall's with more; medians of the rounds. Model FLOPs: 3 x forward, products only. --calls: a table of the
// operations by shape, of the seconds of all rounds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/fma_peak.h"
#include "bench/timed_backend.h"
#include "network/network_kinds.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/resnet.h"
#include "network/zoo/transformer.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/optimizers/sgd.h"
#include "plan/schedules/schedule.h"
#include "stage/cell/optimizer.h"
#include "stage/executor/executor.h"
#include "stage/testing/made_up_images.h"
#include "stage/testing/made_up_pairs.h"

namespace stagecoach {
namespace {

constexpr int64_t kClasses = 10;
constexpr int64_t kVocabulary = 31000, kLength = 64;

struct Row {
  const char* name;
  NetworkSpec spec;
  int64_t side = 0, channels = 0;  // of the image; 0: pairs of sequences
};

const std::vector<Row>& Rows() {
  using Sides = std::vector<int64_t>;
  constexpr auto kSmall = AmoebanetStem::kSmall;
  static const auto* const rows = new std::vector<Row>{
      {"resnet_20",
       ResnetSpec{.image = Sides{32, 32, 3}, .classes = kClasses, .depth = 20, .width = 64}, 32, 3},
      {"resnet_18",
       ResnetSpec{.image = Sides{32, 32, 3},
                  .classes = kClasses,
                  .depth = 18,
                  .form = ResnetForm::kImagenet,
                  .stem = ResnetStem::kSmall},
       32, 3},
      {"resnet_50",
       ResnetSpec{.image = Sides{64, 64, 3},
                  .classes = kClasses,
                  .depth = 50,
                  .form = ResnetForm::kImagenet,
                  .stem = ResnetStem::kSmall},
       64, 3},
      {"amoebanet_d_6_64",
       AmoebanetDSpec{{.image = Sides{32, 32, 3},
                       .classes = kClasses,
                       .layers = 6,
                       .filters = 64,
                       .stem = kSmall}},
       32, 3},
      {"amoebanet_b_6_64",
       AmoebanetBSpec{{.image = Sides{32, 32, 3},
                       .classes = kClasses,
                       .layers = 6,
                       .filters = 64,
                       .stem = kSmall}},
       32, 3},
      {"amoebanet_d_3_16",
       AmoebanetDSpec{{.image = Sides{28, 28, 1},
                       .classes = kClasses,
                       .layers = 3,
                       .filters = 16,
                       .stem = kSmall}},
       28, 1},
      {"transformer_60m", TransformerSpec{.vocabulary = kVocabulary,
                                          .source_context = kLength,
                                          .target_context = kLength,
                                          .width = 512,
                                          .hidden = 2048,
                                          .heads = 8,
                                          .encoder_layers = 6,
                                          .decoder_layers = 6}},
  };
  return *rows;
}

struct Options {
  std::string network = "amoebanet_d_6_64";
  int64_t batch = 32, micro_batches = 4, threads = 1, rounds = 5;
  bool calls = false;
};

std::unique_ptr<BatchSource> MakeData(const Row& row, const Options& options,
                                      const Network& network) {
  if (row.side == 0) {
    return std::make_unique<MadeUpPairs>(
        network,
        MadeUpPairs::Sizes{.batch_size = options.batch, .micro_batches = options.micro_batches});
  }
  return std::make_unique<MadeUpImages>(
      MadeUpImages::Sizes{.batch_size = options.batch,
                          .micro_batches = options.micro_batches,
                          .evaluation_samples = 0,
                          .numbers = row.side * row.side * row.channels,
                          .classes = kClasses});
}

OptimizerSpec OptimizerOf(const Row& row) {
  if (row.side == 0) return AdamWSpec();
  return SgdSpec{.momentum = 0.9};
}

class Trainer {
 public:
  Trainer(const Row& row, const Options& options)
      : options_(options),
        backend_(MakeCpuBackend({.threads = static_cast<int>(options.threads)}),
                 options.threads == 1 ? ThreadSeconds : WallSeconds),
        network_(*ExpandNetwork(row.spec)),
        data_(MakeData(row, options, network_)) {
    auto cell = Cell::Create(network_, 0, static_cast<int>(network_.layers.size()), 1,
                             static_cast<int>(options.micro_batches), backend_);
    CHECK(cell.ok()) << cell.status().ToString();
    cell_ = *std::move(cell);
    auto optimizer = MakeOptimizer(OptimizerOf(row), cell_->parameters(), backend_);
    CHECK(optimizer.ok()) << optimizer.status().ToString();
    optimizer_ = *std::move(optimizer);
  }

  double Step() {
    const Schedule schedule =
        MakeSchedule({.kind = "gpipe",
                      .rematerialization = Rematerialization::kNever,
                      .stages = 1,
                      .micro_batches = static_cast<int>(options_.micro_batches)});
    PhaseClock phases(SystemClock::Get());
    StageExecutor executor({.stage = StageId(0),
                            .seed = 1,
                            .cells = {{.id = CellId(0), .cell = cell_.get()}},
                            .backend = &backend_,
                            .data = data_.get(),
                            .network = &network_,
                            .phases = &phases,
                            .clock = SystemClock::Get()});
    const auto now = options_.threads == 1 ? ThreadSeconds : WallSeconds;
    const double start = now();
    executor.BeginStep({.fence = {.job = "bench", .step = step_},
                        .program = &schedule.programs[0],
                        .loss_scale = 1.0 / static_cast<double>(options_.batch)});
    const auto progress = executor.Advance();
    CHECK(progress.ok() && *progress == Progress::kFinished) << progress.status().ToString();
    executor.TakeReport();
    optimizer_->Apply(step_++, 1e-3, 1.0);
    cell_->ZeroGradients();
    return now() - start;
  }
  TimedBackend& backend() { return backend_; }
  const Network& network() const { return network_; }

 private:
  const Options options_;
  TimedBackend backend_;
  const Network network_;
  const std::unique_ptr<const BatchSource> data_;
  std::unique_ptr<Cell> cell_;
  std::unique_ptr<Optimizer> optimizer_;
  uint64_t step_ = 0;
};

void PrintCalls(const TimedBackend& backend, double rounds, double step) {
  using Entry = std::pair<std::string, TimedBackend::Calls>;
  std::vector<Entry> all(backend.calls().begin(), backend.calls().end());
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.second.seconds > b.second.seconds; });
  double sum = 0;
  std::printf(
      "\n| ms a step | share | calls | us each | operation, first input |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (const auto& [name, calls] : all) {
    if (calls.count == 0) continue;
    sum += calls.seconds / rounds;
    std::printf("| %.2f | %.1f %% | %.0f | %.1f | %s |\n", 1e3 * calls.seconds / rounds,
                100 * calls.seconds / rounds / step, static_cast<double>(calls.count) / rounds,
                1e6 * calls.seconds / static_cast<double>(calls.count), name.c_str());
  }
  std::printf("| %.2f | %.1f %% | | | beside calls |\n", 1e3 * (step - sum),
              100 * (step - sum) / step);
}

int Main(const Options& options) {
  for (const Row& row : Rows()) {
    if (options.network != row.name) continue;
    Trainer trainer(row, options);
    trainer.Step();  // first touch of memory, creation of primitives
    trainer.backend().Forget();
    std::vector<double> peaks, seconds;
    double total = 0;
    for (int64_t round = 0; round < options.rounds; ++round) {
      peaks.push_back(MeasureFmaPeak(ThreadSeconds));
      seconds.push_back(trainer.Step());
      total += seconds.back();
    }
    std::sort(peaks.begin(), peaks.end());
    std::sort(seconds.begin(), seconds.end());
    const double step = seconds[seconds.size() / 2];
    const double peak = peaks[peaks.size() / 2] * static_cast<double>(options.threads);
    const auto samples = static_cast<double>(options.batch);
    const double targets = samples * static_cast<double>(trainer.network().targets());
    const double rate = ModelFlopsPerToken(trainer.network()) * targets / step / 1e9;
    std::printf(
        "%s, %ld samples in %ld micro-batches, %ld threads: step %.4f s, %.1f samples/s, "
        "%.1f GFLOP/s, %.1f %% of %.1f\n",
        row.name, options.batch, options.micro_batches, options.threads, step, samples / step, rate,
        100 * rate / peak, peak);
    const auto rounds = static_cast<double>(options.rounds);
    if (options.calls) PrintCalls(trainer.backend(), rounds, total / rounds);
    return 0;
  }
  std::fprintf(stderr, "--network=%s is none of:", options.network.c_str());
  for (const Row& row : Rows()) std::fprintf(stderr, " %s", row.name);
  std::fprintf(stderr, "\n");
  return 2;
}

// The number behind "--name=", at least 1; none for another argument.
std::optional<int64_t> NumberOf(const std::string& argument, const std::string& name) {
  const std::string flag = "--" + name + "=";
  if (!argument.starts_with(flag)) return std::nullopt;
  return std::max(1L, std::atol(argument.c_str() + flag.size()));
}

int Start(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (const auto batch = NumberOf(argument, "batch")) {
      options.batch = *batch;
    } else if (const auto micro_batches = NumberOf(argument, "micro-batches")) {
      options.micro_batches = *micro_batches;
    } else if (const auto threads = NumberOf(argument, "threads")) {
      options.threads = *threads;
    } else if (const auto rounds = NumberOf(argument, "rounds")) {
      options.rounds = *rounds;
    } else if (argument == "--calls") {
      options.calls = true;
    } else if (argument.starts_with("--network=")) {
      options.network = argument.substr(10);
    } else {
      std::fprintf(stderr, "no such argument: %s\n", argument.c_str());
      return 2;
    }
  }
  return Main(options);
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) { return stagecoach::Start(argc, argv); }
