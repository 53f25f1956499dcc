// step-bench: whole training steps of one stage with one thread, as a share of the core's
// multiply-add peak, for the job of examples/gpt-text.yaml (6 layers, width 384, context 256, 8
// micro-batches of 4).
//
// A step is what StageExecutor runs for K = 1 plus gradient norms and AdamW. Model FLOPs: 3 x
// forward, recomputation not counted; attention once below the diagonal (what is computed) and once
// in full (how other projects count). Rounds alternate the modes and measure the peak each time;
// medians are shown. With another precision every step is followed by one in float32, and the last
// column is the median of the rounds' ratios; the share is of the float32 peak, which BF16
// instructions may pass.
//
//   step-bench [rounds] [--precision=bfloat16] [--only=never]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "bench/fma_peak.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedules/schedule.h"
#include "stage/cell/optimizer.h"
#include "stage/data/token_source.h"
#include "stage/executor/executor.h"

namespace stagecoach {
namespace {

constexpr int64_t kBatch = 32, kMicroBatches = 8;
const GptSpec kGpt = {.layers = 6, .width = 384, .heads = 6, .context = 256, .vocabulary = 256};

// Tokens from the counter-based generator: the values do not matter for speed.
class RandomTokens final : public TokenSource {
 public:
  const DatasetManifest& manifest() const override { return manifest_; }
  absl::StatusOr<TokenBatch> TrainTokens(uint64_t step, MicroBatchId micro_batch) const override {
    TokenBatch batch;
    batch.sequences = MicroBatchSize(kBatch, kMicroBatches, micro_batch.value);
    const int64_t tokens = batch.sequences * kGpt.context;
    const RandomStream stream = {.seed = 1,
                                 .step = static_cast<uint32_t>(step),
                                 .micro_batch = static_cast<uint32_t>(micro_batch.value)};
    for (int64_t i = 0; i <= tokens; ++i) {
      const int32_t token = static_cast<int32_t>(RandomBits(stream, i) % kGpt.vocabulary);
      if (i < tokens) batch.inputs.push_back(token);
      if (i > 0) batch.targets.push_back(token);
    }
    return batch;
  }
  absl::StatusOr<TokenBatch> EvaluationTokens(uint64_t, MicroBatchId) const override {
    return TokenBatch{};
  }
  int64_t evaluation_batches() const override { return 0; }

 private:
  DatasetManifest manifest_;
};

struct Mode {
  const char* name;
  const char* schedule;
  Rematerialization rematerialization;
};

class Trainer {
 public:
  explicit Trainer(const Network& network)
      : backend_(MakeCpuBackend({.threads = 1})), network_(network) {
    auto cell = Cell::Create(network, 0, static_cast<int>(network.layers.size()), 1, kMicroBatches,
                             *backend_);
    CHECK(cell.ok()) << cell.status().ToString();
    cell_ = *std::move(cell);
    auto optimizer = MakeOptimizer(AdamWSpec{}, cell_->parameters(), *backend_);
    CHECK(optimizer.ok()) << optimizer.status().ToString();
    optimizer_ = *std::move(optimizer);
  }

  // Seconds of this thread for one step.
  double Step(const Mode& mode) {
    const Schedule schedule = MakeSchedule({.kind = mode.schedule,
                                            .rematerialization = mode.rematerialization,
                                            .stages = 1,
                                            .micro_batches = kMicroBatches});
    PhaseClock phases(SystemClock::Get());
    StageExecutor executor({.stage = StageId(0),
                            .seed = 1,
                            .cells = {{.id = CellId(0), .cell = cell_.get()}},
                            .backend = backend_.get(),
                            .data = &data_,
                            .network = &network_,
                            .phases = &phases,
                            .clock = SystemClock::Get()});
    const double start = ThreadSeconds();
    executor.BeginStep({.fence = {.job = "bench", .step = step_},
                        .program = &schedule.programs[0],
                        .loss_scale = 1.0 / static_cast<double>(kBatch * kGpt.context)});
    const auto progress = executor.Advance();
    CHECK(progress.ok() && *progress == Progress::kFinished) << progress.status().ToString();
    executor.TakeReport();
    optimizer_->Apply(step_++, 1e-4, 1.0);
    cell_->ZeroGradients();
    return ThreadSeconds() - start;
  }

 private:
  const std::unique_ptr<Backend> backend_;
  const Network network_;
  const RandomTokens data_;
  std::unique_ptr<Cell> cell_;
  std::unique_ptr<Optimizer> optimizer_;
  uint64_t step_ = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Per token; counts the scores and values above the diagonal as well.
double FullAttentionFlops(double causal_flops) {
  const double below = 3.0 * 4 * (kGpt.context + 1) / 2.0 * kGpt.width * kGpt.layers;
  const double full = 3.0 * 4 * kGpt.context * kGpt.width * kGpt.layers;
  return causal_flops - below + full;
}

constexpr Mode kModes[] = {
    {"never", "gpipe", Rematerialization::kNever},
    {"always, 1F1B (nothing to recompute)", "one_forward_one_backward", Rematerialization::kAlways},
    {"except_first, GPipe", "gpipe", Rematerialization::kExceptFirst},
    {"always, GPipe", "gpipe", Rematerialization::kAlways},
};

// modes: the first ones of kModes.
int Main(int rounds, Precision precision, size_t modes) {
  const auto network = ExpandNetwork(kGpt, precision), plain = ExpandNetwork(kGpt);
  CHECK(network.ok()) << network.status().ToString();
  const bool compares = precision != Precision::kFloat32;
  Trainer trainer(*network);
  std::optional<Trainer> other;
  trainer.Step(kModes[0]);  // first touch of memory, creation of primitives
  if (compares) other.emplace(*plain).Step(kModes[0]);
  std::vector<double> peaks, seconds[std::size(kModes)], ratios[std::size(kModes)];
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < modes; ++i) {
      peaks.push_back(MeasureFmaPeak(ThreadSeconds));
      seconds[i].push_back(trainer.Step(kModes[i]));
      if (compares) ratios[i].push_back(other->Step(kModes[i]) / seconds[i].back());
    }
  }
  const double peak = Median(peaks), tokens = static_cast<double>(kBatch * kGpt.context);
  const double causal = ModelFlopsPerToken(*network) * tokens;
  const double full = FullAttentionFlops(ModelFlopsPerToken(*network)) * tokens;
  std::printf("%s, one thread, multiply-add peak %.1f GFLOP/s, %d rounds\n\n",
              PrecisionName(precision), peak, rounds);
  std::printf(
      "| rematerialization | step s | tokens/s | model GFLOP/s | share of peak | attention "
      "counted in full |%s\n| --- | --- | --- | --- | --- | --- |%s\n",
      compares ? " float32 / this |" : "", compares ? " --- |" : "");
  for (size_t i = 0; i < modes; ++i) {
    const double step = Median(seconds[i]);
    std::printf("| %s | %.3f | %.0f | %.1f | %.1f %% | %.1f %% |", kModes[i].name, step,
                tokens / step, causal / step / 1e9, 100 * causal / step / 1e9 / peak,
                100 * full / step / 1e9 / peak);
    if (compares) std::printf(" %.2f |", Median(ratios[i]));
    std::printf("\n");
  }
  return 0;
}

// Null for a name that is none.
std::optional<Precision> NamedPrecision(const std::string& name) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return std::nullopt;
}

int Start(int argc, char** argv) {
  const std::string flag = "--precision=";
  int rounds = 5;
  size_t modes = std::size(kModes);
  Precision precision = Precision::kFloat32;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--only=never") {
      modes = 1;
      continue;
    }
    if (!argument.starts_with(flag)) {
      rounds = std::max(1, std::atoi(argv[i]));
      continue;
    }
    const auto named = NamedPrecision(argument.substr(flag.size()));
    if (!named.has_value()) {
      std::fprintf(stderr, "no such precision: %s\n", argument.c_str());
      return 2;
    }
    precision = *named;
  }
  return Main(rounds, precision, modes);
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) { return stagecoach::Start(argc, argv); }
