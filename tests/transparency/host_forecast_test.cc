// The forecast of a stage's memory on a processor against what its allocator saw, with the kernels
// that compute: an upper bound for every number of threads, precision and shape, and a limit that
// the planner takes is enough.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/numbers/random.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/convolution.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "network/zoo/unet.h"
#include "network/zoo/vit.h"
#include "plan/costs/host_memory.h"
#include "plan/optimizers/lamb.h"
#include "plan/optimizers/sgd.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

struct Case {
  Network network;
  int64_t batch_size = 4, micro_batches = 2;
  OptimizerSpec optimizer = AdamWSpec{};
};

JobSpec SpecOf(const Case& c) {
  JobSpec spec;
  spec.training.batch_size = c.batch_size;
  spec.training.micro_batches = c.micro_batches;
  spec.training.optimizer = c.optimizer;
  spec.evaluation.every_steps = 1;
  return spec;
}

HostForecast Forecast(const Case& c, const PipelineHarness& pipeline, int stage, int64_t limit,
                      const HostProfile& host) {
  return ForecastOnHost(
      SpecOf(c), c.network, pipeline.programs(true), pipeline.programs(false),
      {.stage = stage,
       .cells = pipeline.partition().LayersOf(stage, static_cast<int>(c.network.layers.size())),
       .limit = limit,
       .host = host});
}

int64_t Peak(Backend& backend) { return backend.allocator().Use().total_peak; }

// What a step and an evaluation take of the forecast at most, of any stage.
double Taken(const Case& c, int stages, int threads) {
  HarnessOptions options{.stages = stages,
                         .batch_size = c.batch_size,
                         .micro_batches = c.micro_batches,
                         .evaluation_sequences = c.batch_size,
                         .precision = c.network.precision,
                         .network = c.network,
                         .optimizer = c.optimizer};
  options.own_memory = true;
  options.make_backend = [threads] { return MakeCpuBackend({.threads = threads}); };
  PipelineHarness pipeline(options);
  EXPECT_TRUE(pipeline.TrainStep().ok());
  EXPECT_TRUE(pipeline.TrainStep().ok());
  EXPECT_TRUE(pipeline.Evaluate(0).ok());
  double most = 0;
  for (int k = 0; k < stages; ++k) {
    Backend& backend = pipeline.backend(k);
    const int64_t forecast = Forecast(c, pipeline, k, 0, backend.Host()).memory.total();
    EXPECT_LE(Peak(backend), forecast)
        << "stage " << k << " of " << stages << ", " << threads << " threads";
    most = std::max(most, static_cast<double>(Peak(backend)) / static_cast<double>(forecast));
  }
  return most;
}

// The least that the planner takes for one stage is enough, whatever the number of threads.
void ExpectTheLeastLimitIsEnough(const Case& c, int threads) {
  HarnessOptions options{.batch_size = c.batch_size,
                         .micro_batches = c.micro_batches,
                         .evaluation_sequences = c.batch_size,
                         .precision = c.network.precision,
                         .network = c.network,
                         .optimizer = c.optimizer};
  const HostProfile host = MakeCpuBackend({.threads = threads})->Host();
  const PipelineHarness unlimited(options);
  const int64_t limit = Forecast(c, unlimited, 0, 1, host).memory.total();
  const HostForecast forecast = Forecast(c, unlimited, 0, limit, host);
  ASSERT_LE(forecast.memory.total(), limit);
  options.make_backend = [&] {
    auto backend = MakeCpuBackend({.threads = threads, .memory_limit_bytes = limit});
    backend->UseSpareMemory(forecast.spare);
    return backend;
  };
  PipelineHarness pipeline(options);
  for (int step = 0; step < 2; ++step) {
    const absl::Status trained = pipeline.TrainStep();
    EXPECT_TRUE(trained.ok()) << threads << " threads: " << trained;
  }
  EXPECT_TRUE(pipeline.Evaluate(0).ok());
}

struct Row {
  NetworkSpec spec;
  double least = 0;  // of the forecast that is taken, with one thread in float32
  // With AVX-512 it has convolutions by Winograd's filtering, whose room is loose
  // (operations/images/winograd.h).
  bool winograd = false;
};
std::map<std::string, Row> Zoo() {
  AmoebanetDSpec amoebanet_d;
  amoebanet_d.image = {32, 32, 3};
  amoebanet_d.classes = 10;
  amoebanet_d.layers = 3;
  amoebanet_d.filters = 16;
  amoebanet_d.stem = AmoebanetStem::kSmall;
  AmoebanetBSpec amoebanet_b;
  static_cast<AmoebanetFields&>(amoebanet_b) = amoebanet_d;
  const GptSpec gpt{.layers = 2, .width = 128, .heads = 4, .context = 256, .vocabulary = 256};
  GptSpec dropped = gpt;
  dropped.dropout = 0.1;
  return {{"amoebanet_b", {amoebanet_b, 0.96}},
          {"amoebanet_d", {amoebanet_d, 0.96}},
          {"gpt", {gpt, 0.97}},
          {"gpt_dropout", {dropped, 0.97}},
          {"llama",
           {LlamaSpec{.layers = 2,
                      .width = 128,
                      .heads = 4,
                      .key_heads = 2,
                      .hidden = 256,
                      .context = 256,
                      .vocabulary = 256},
            0.97}},
          {"mlp",
           {MlpNetworkSpec{.image = {28, 28, 1}, .hidden = 512, .layers = 4, .classes = 10}, 0.97}},
          {"resnet",
           {ResnetSpec{.image = {32, 32, 3}, .classes = 10, .depth = 8, .width = 32}, 0.96, true}},
          {"resnet_groups",
           {ResnetSpec{.image = {32, 32, 3},
                       .classes = 10,
                       .depth = 8,
                       .width = 32,
                       .norm = ResnetNorm::kGroup},
            0.96, true}},
          {"transformer",
           {TransformerSpec{.vocabulary = 256,
                            .source_context = 192,
                            .target_context = 160,
                            .width = 128,
                            .hidden = 256,
                            .heads = 4,
                            .encoder_layers = 1,
                            .decoder_layers = 1,
                            .dropout = 0.1,
                            .logit_clip = 30},
            0.97}},
          {"unet",
           {UnetSpec{.image = {64, 64, 3}, .channels_out = 2, .base = 16, .depth = 3}, 0.96, true}},
          {"vit",
           {VitSpec{.image = {64, 64, 3},
                    .classes = 10,
                    .patch = 8,
                    .layers = 2,
                    .width = 128,
                    .heads = 4,
                    .dropout = 0.1},
            0.97}}};
}

// One has no room of its own, eight have the most.
constexpr int kThreads[] = {1, 8};

TEST(HostForecastTest, IsAnUpperBoundForTheZooAndClose) {
  for (const auto& [name, row] : Zoo()) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      const Case c{*ExpandNetwork(row.spec, precision)};
      std::string taken;
      for (const int threads : kThreads) {
        SCOPED_TRACE(absl::StrCat(name, ", ", PrecisionName(precision)));
        const double alone = Taken(c, 1, threads), cut = Taken(c, 2, threads);
        absl::StrAppendFormat(&taken, " %.3f %.3f", alone, cut);
        const bool close = precision == Precision::kFloat32 &&
                           !(row.winograd && MakeCpuBackend({})->Host().avx512);
        if (threads == 1 && close) {
          EXPECT_GE(alone, row.least);
        }
      }
      RecordProperty(absl::StrCat(name, "_", PrecisionName(precision)), taken);
      if (std::getenv("STAGECOACH_SHOW") != nullptr) {
        absl::PrintF("%-14s %-8s%s\n", name, PrecisionName(precision), taken);
      }
    }
  }
}

TEST(HostForecastTest, TheLeastLimitThatIsPlannedIsEnoughForAnyNumberOfThreads) {
  for (const auto& [name, row] : Zoo()) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      SCOPED_TRACE(absl::StrCat(name, ", ", PrecisionName(precision)));
      const Case c{*ExpandNetwork(row.spec, precision)};
      for (const int threads : {1, 8}) ExpectTheLeastLimitIsEnough(c, threads);
    }
  }
}

// One head of one sequence is one unit. Every thread has a room all the same.
TEST(HostForecastTest, IsAnUpperBoundForAttentionWithMoreThreadsThanUnits) {
  const GptSpec gpt{.layers = 1, .width = 40, .heads = 1, .context = 600, .vocabulary = 32};
  LlamaSpec llama{.layers = 1, .width = 80, .heads = 2, .key_heads = 1};
  llama.hidden = 32, llama.context = 600, llama.vocabulary = 32;
  for (const NetworkSpec& spec : {NetworkSpec(gpt), NetworkSpec(llama)}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      Case c{*ExpandNetwork(spec, precision)};
      c.batch_size = c.micro_batches = 2;
      SCOPED_TRACE(absl::StrCat(spec.kind, ", ", PrecisionName(precision)));
      for (const int threads : {3, 16}) {
        Taken(c, 1, threads);
        ExpectTheLeastLimitIsEnough(c, threads);
      }
    }
  }
}

// Numbers drawn from a seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : stream_{.seed = seed} {}
  int64_t From(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(RandomBits(stream_, next_++) % (most - least + 1));
  }

 private:
  const RandomStream stream_;
  uint64_t next_ = 0;
};

NetworkSpec RandomNetwork(Draw& draw) {
  const int64_t heads = draw.From(1, 4), head_width = 2 * draw.From(1, 40);
  switch (draw.From(0, 3)) {
    case 0:
      return GptSpec{.layers = draw.From(1, 3),
                     .width = heads * head_width,
                     .heads = heads,
                     .context = draw.From(1, 150),
                     .vocabulary = draw.From(2, 3000)};
    case 1:
      return LlamaSpec{.layers = draw.From(1, 3),
                       .width = heads * head_width,
                       .heads = heads,
                       .key_heads = 1,
                       .hidden = draw.From(1, 400),
                       .context = draw.From(1, 150),
                       .vocabulary = draw.From(2, 3000)};
    case 2:
      return MlpNetworkSpec{.image = {draw.From(1, 30), draw.From(1, 30), draw.From(1, 3)},
                            .hidden = draw.From(1, 2000),
                            .layers = draw.From(2, 5),
                            .classes = draw.From(2, 500)};
    default:
      return SequenceSpec{.layers = {ConvolutionSpec{.out = draw.From(1, 70),
                                                     .kernel = {draw.From(1, 5)},
                                                     .stride = {draw.From(1, 3)},
                                                     .padding = {0}},
                                     BatchNormSpec{}, ReluSpec{}, GlobalPoolSpec{},
                                     LinearSpec{.out = draw.From(2, 300)}},
                          .image = {draw.From(7, 40), draw.From(7, 40), draw.From(1, 40)},
                          .classes = 300};
  }
}

TEST(HostForecastTest, IsAnUpperBoundForRandomShapes) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Draw draw(seed);
    const NetworkSpec spec = RandomNetwork(draw);
    const auto precision = draw.From(0, 1) == 0 ? Precision::kFloat32 : Precision::kBfloat16;
    auto network = ExpandNetwork(spec, precision);
    if (!network.ok()) continue;
    Case c{*std::move(network)};
    c.micro_batches = draw.From(1, 4);
    c.batch_size = c.micro_batches * draw.From(1, 9) + draw.From(0, c.micro_batches - 1);
    if (draw.From(0, 2) == 0) c.optimizer = LambSpec{};
    if (draw.From(0, 2) == 0) c.optimizer = SgdSpec{};
    const int threads = static_cast<int>(draw.From(1, 8));
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", spec.kind, ", ", PrecisionName(precision),
                              ", batch ", c.batch_size, " in ", c.micro_batches, ", ", threads,
                              " threads"));
    Taken(c, 1, threads);
    ExpectTheLeastLimitIsEnough(c, threads);
  }
}

}  // namespace
}  // namespace stagecoach
