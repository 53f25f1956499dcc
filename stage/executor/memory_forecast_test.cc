// The planner's forecast against what a stage's allocator saw, in every precision. On cards:
// card_forecast_test.cc.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sanitized.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/network_kinds.h"
#include "network/objectives/cross_entropy.h"
#include "network/passes/freeze.h"
#include "network/zoo/amoebanet/amoebanet.h"
#include "network/zoo/bert.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/mlp.h"
#include "network/zoo/resnet.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "network/zoo/unet.h"
#include "network/zoo/vit.h"
#include "plan/costs/cost_model.h"
#include "plan/optimizers/adafactor.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/backends/simulated/simulated_backend.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

constexpr int64_t kBatch = 8, kMicroBatches = 4;

int64_t Activations(Backend& backend) {
  return backend.allocator().Use().peak[static_cast<int>(MemoryKind::kActivations)];
}

double Ratio(int64_t seen, int64_t forecast) {
  return static_cast<double>(seen) / static_cast<double>(forecast);
}

// What allocations of whole 64 bytes take more for the copies in bfloat16.
int64_t RoundedUp(const Network& network) {
  int64_t bytes = 0;
  if (network.precision != Precision::kBfloat16) return bytes;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const int64_t copy = 2 * parameter.shape.elements();
      bytes += (copy + 63) / 64 * 64 - copy;
    }
  }
  return bytes;
}

// Tensors are those of other back ends, and nothing is computed.
std::unique_ptr<Backend> Uncomputed() {
  constexpr double kAtOnce = 1e30;
  return MakeSimulatedBackend(BackendOptions{}, {kAtOnce, kAtOnce});
}

// Nor is anything drawn.
Network WithWeightsOfOne(Network network) {
  for (NetworkLayer& layer : network.layers) {
    for (ParameterSpec& parameter : layer.parameters) parameter.init = ParameterSpec::Init::kOnes;
  }
  return network;
}

StageMemory ForecastOf(const PipelineHarness& pipeline, const HarnessOptions& options, int stage,
                       bool training) {
  const int layers = static_cast<int>(pipeline.network().layers.size());
  std::span<const StageProgram> steps, evaluation;
  (training ? steps : evaluation) = pipeline.programs(training);
  return ForecastStageMemory(pipeline.network(), steps, stage,
                             {.cells = pipeline.partition().LayersOf(stage, layers),
                              .batch_size = options.batch_size,
                              .micro_batches = options.micro_batches,
                              .optimizer = options.optimizer,
                              .link_capacity = pipeline.link_capacity(),
                              .evaluation = evaluation,
                              .placement = pipeline.partition().placement});
}

std::vector<int> Stages(const HarnessOptions& options) {
  std::vector<int> stages(static_cast<size_t>(options.stages));
  std::iota(stages.begin(), stages.end(), 0);
  return stages;
}

// The neighbour may send the next message while values that came are still being copied, but not
// where one thread does all.
bool IsWithinAReceive(const PipelineHarness& pipeline, int stage, const StageMoment& at) {
  const StageProgram& program = pipeline.programs(!at.evaluation)[stage];
  return at.position > 0 && program.instructions[at.position - 1].op == Opcode::kReceiveTiedValues;
}

// In one pass the neighbours of `fullest` are as fast and as slow as it takes for all that its
// forecast counts; the others are at most as full as theirs.
void ExpectReachedAndNotPassed(PipelineHarness* pipeline, const HarnessOptions& options,
                               int fullest, bool training) {
  SCOPED_TRACE(absl::StrCat(training ? "step" : "evaluation", ", fullest stage ", fullest));
  const StageMoment at = ForecastOf(*pipeline, options, fullest, training).fullest;
  // Of several edges each is forecast at its fullest, and they need not be so together.
  const bool reached = pipeline->partition().placement.empty();
  if (reached)
    pipeline->set_stop(
        {.stage = fullest,
         .positions = {
             {fullest - 1, at.upstream}, {fullest, at.position}, {fullest + 1, at.downstream}}});
  for (const int k : Stages(options)) pipeline->backend(k).allocator().ResetPeak();
  const absl::Status passed = training ? pipeline->TrainStep() : pipeline->Evaluate(0).status();
  ASSERT_TRUE(passed.ok()) << passed;
  for (const int k : Stages(options)) {
    const StageMemory forecast = ForecastOf(*pipeline, options, k, training);
    const double ratio = Ratio(Activations(pipeline->backend(k)), forecast.activations);
    // Allocations are of whole 64 bytes, which small statistics do not fill.
    EXPECT_LE(ratio, 1.01) << "stage " << k << ": more than is forecast";
    if (!reached && training) {
      EXPECT_GE(ratio, 0.3) << "stage " << k;
    }
    if (reached && k == fullest && !IsWithinAReceive(*pipeline, k, at)) {
      EXPECT_GE(ratio, 0.99) << "stage " << k << " at instruction " << at.position;
    }
  }
}

// Of every stage and kind of memory. fullest: for which stages neighbours are as it takes; empty:
// each in turn.
void ExpectForecast(const Network& network, const HarnessOptions& asked, int64_t batch = kBatch,
                    const std::vector<int>& fullest = {}) {
  HarnessOptions options = asked;
  options.network = network;
  options.precision = network.precision;
  options.own_memory = true;
  options.batch_size = batch;
  options.evaluation_sequences = batch;
  options.micro_batches = kMicroBatches;
  SCOPED_TRACE(absl::StrCat(PrecisionName(options.precision), ", ", options.stages, " stages, ",
                            options.schedule, ", ",
                            RematerializationName(options.rematerialization)));
  PipelineHarness pipeline(options);
  for (const bool training : {true, false}) {
    for (const int k : fullest.empty() ? Stages(options) : fullest) {
      ExpectReachedAndNotPassed(&pipeline, options, k, training);
    }
  }
  for (const int k : Stages(options)) {
    SCOPED_TRACE(absl::StrCat("stage ", k));
    const MemoryUse use = pipeline.backend(k).allocator().Use();
    const auto of = [&](MemoryKind kind) { return use.peak[static_cast<int>(kind)]; };
    const StageMemory forecast = ForecastOf(pipeline, options, k, true);
    EXPECT_GE(of(MemoryKind::kParameters), forecast.parameters);
    EXPECT_LE(of(MemoryKind::kParameters), forecast.parameters + RoundedUp(network));
    EXPECT_EQ(of(MemoryKind::kGradients), forecast.gradients);
    EXPECT_EQ(of(MemoryKind::kOptimizer), forecast.optimizer);
  }
}

void ExpectForecastInEveryPipeline(const Network& drawn, int64_t batch = kBatch) {
  const Network network = WithWeightsOfOne(drawn);
  const int most = std::min(4, static_cast<int>(network.layers.size()));
  for (int stages = 1; stages <= most; stages += kSanitized ? 2 : 1) {
    for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
      if (stages == 1 && schedule != "gpipe") continue;  // the same
      for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                              Rematerialization::kNever}) {
        ExpectForecast(network,
                       {.stages = stages,
                        .schedule = schedule,
                        .rematerialization = mode,
                        .make_backend = Uncomputed},
                       batch);
      }
    }
  }
}

// Of the first two layers that have parameters: in front there are forwards alone.
Network WithFrontFrozen(const Network& network) {
  std::vector<std::string> patterns;
  for (const NetworkLayer& layer : network.layers) {
    if (layer.parameters.empty() || patterns.size() == 2) continue;
    patterns.push_back(absl::StrFormat("model/%04d/*", layer.index));
  }
  return *Freeze(network, patterns, "training.freeze");
}

// Widths whose tensors are whole 64 bytes in either type, so that nothing is rounded up.
std::map<std::string, NetworkSpec> ZooForMemory() {
  const LayerSpec block = ResidualSpec{{LayerNormSpec{}, LinearSpec{.out = 128}, GeluSpec{},
                                        LinearSpec{.out = 64}, DropoutSpec{.rate = 0.1}}};
  const GptSpec gpt{
      .layers = 3, .width = 64, .heads = 4, .context = 16, .vocabulary = 128, .dropout = 0.1};
  GptSpec tied = gpt;
  tied.tied_embeddings = true;
  const LlamaSpec llama{.layers = 3,
                        .width = 64,
                        .heads = 4,
                        .key_heads = 2,
                        .hidden = 96,
                        .context = 16,
                        .vocabulary = 128};
  AmoebanetDSpec amoebanet_d;
  amoebanet_d.image = {4, 4, 8};
  amoebanet_d.classes = 64;
  amoebanet_d.layers = 3;
  amoebanet_d.filters = 64;
  amoebanet_d.stem = AmoebanetStem::kSmall;
  AmoebanetBSpec amoebanet_b;
  static_cast<AmoebanetFields&>(amoebanet_b) = amoebanet_d;
  AmoebanetDSpec auxiliary = amoebanet_d;
  auxiliary.auxiliary_weight = 0.4;
  return {
      {"amoebanet_b", amoebanet_b},
      {"amoebanet_d", amoebanet_d},
      {"amoebanet_d_auxiliary", auxiliary},
      {"bert",
       BertSpec{
           .layers = 2, .width = 64, .heads = 4, .context = 16, .vocabulary = 128, .dropout = 0.1}},
      {"gpt", gpt},
      {"gpt_tied", tied},
      {"llama", llama},
      {"mlp", MlpNetworkSpec{.image = {16, 16, 1}, .hidden = 128, .layers = 4, .classes = 32}},
      {"resnet", ResnetSpec{.image = {4, 4, 8}, .classes = 64, .depth = 8, .width = 32}},
      {"resnet_imagenet", ResnetSpec{.image = {8, 8, 8},
                                     .classes = 64,
                                     .depth = 18,
                                     .width = 32,
                                     .form = ResnetForm::kImagenet,
                                     .drop_path = 0.2}},
      {"resnet_groups",
       ResnetSpec{
           .image = {4, 4, 8}, .classes = 64, .depth = 8, .width = 32, .norm = ResnetNorm::kGroup}},
      {"sequence",
       SequenceSpec{.width = 64,
                    .context = 32,
                    .vocabulary = 128,
                    .layers = {EmbeddingSpec{}, block, block, block, LinearSpec{.out = 128}}}},
      {"transformer", TransformerSpec{.vocabulary = 128,
                                      .source_context = 16,
                                      .target_context = 16,
                                      .width = 64,
                                      .hidden = 96,
                                      .heads = 4,
                                      .encoder_layers = 1,
                                      .decoder_layers = 1,
                                      .dropout = 0.1,
                                      .logit_clip = 30}},
      {"unet", UnetSpec{.image = {16, 16, 4}, .channels_out = 16, .base = 16, .depth = 2}},
      {"vit", VitSpec{.image = {16, 16, 4},
                      .classes = 256,
                      .patch = 4,
                      .layers = 2,
                      .width = 128,
                      .heads = 4,
                      .dropout = 0.1}}};
}

TEST(MemoryForecast, EveryNetworkThatAJobCanNameHasARowInThisTest) {
  std::set<std::string> rows, known;
  for (const auto& [name, spec] : ZooForMemory()) rows.insert(spec.kind);
  for (const NetworkKind* kind : AllNetworkKinds()) known.emplace(kind->name());
  EXPECT_EQ(rows, known);
}

TEST(MemoryForecast, HoldsForEveryNetworkOfTheZoo) {
  for (const auto& [name, spec] : ZooForMemory()) {
    SCOPED_TRACE(name);
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      ExpectForecastInEveryPipeline(*ExpandNetwork(spec, precision));
    }
  }
}

TEST(MemoryForecast, HoldsWithFrozenLayers) {
  for (const auto& [name, spec] : ZooForMemory()) {
    SCOPED_TRACE(name);
    ExpectForecastInEveryPipeline(WithFrontFrozen(*ExpandNetwork(spec)));
  }
}

// Few classes: so targets and their weights are no small part of what the last stage has.
TEST(MemoryForecast, HoldsWithWeightsOfTargets) {
  NetworkSpec spec =
      SequenceSpec{.width = 16,
                   .context = 16,
                   .vocabulary = 16,
                   .layers = {EmbeddingSpec{}, LinearSpec{.out = 16}, LinearSpec{.out = 16}}};
  spec.objective = CrossEntropySpec{.class_weights = std::vector<double>(16, 0.5)};
  ExpectForecastInEveryPipeline(*ExpandNetwork(spec), 64);
}

// Means of rows and columns, and of vectors all.
TEST(MemoryForecast, HoldsForStatesOfOtherShapesThanTheParameters) {
  for (const double beta1 : {0.0, 0.9}) {
    ExpectForecast(
        WithWeightsOfOne(*ExpandNetwork(ZooForMemory().at("gpt"))),
        {.stages = 3, .make_backend = Uncomputed, .optimizer = AdafactorSpec{.beta1 = beta1}});
  }
}

// With the reference back end, which computes.
TEST(MemoryForecast, HoldsForMicroBatchesOfDifferentSizes) {
  for (const auto& [name, spec] : ZooForMemory()) {
    SCOPED_TRACE(name);
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      ExpectForecast(*ExpandNetwork(spec, precision), {.stages = 3}, kBatch + 1, {1});
    }
  }
}

TEST(MemoryForecast, IsTheSameForTensorFloat32) {
  ExpectForecast(*ExpandNetwork(ZooForMemory().at("gpt"), Precision::kTensorFloat32),
                 {.stages = 3});
}

// Statistics are there once for all samples of a micro-batch, beside values of one place a sample:
// not negligible. So are running moments and what gathers for them.
TEST(MemoryForecast, HoldsWithBatchNorms) {
  const SequenceSpec list{
      .width = 128,
      .context = 1,
      .vocabulary = 128,
      .layers = {EmbeddingSpec{.position = false}, BatchNormSpec{}, ReluSpec{},
                 LinearSpec{.out = 128}, BatchNormSpec{}, ReluSpec{}, LinearSpec{.out = 128}}};
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Network network = *ExpandNetwork(list, precision);
    ExpectForecastInEveryPipeline(network, 64);
    ExpectForecastInEveryPipeline(WithFrontFrozen(network), 64);
  }
}

}  // namespace
}  // namespace stagecoach
