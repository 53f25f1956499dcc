// An auxiliary output: its loss and gradient beside those of the output, with the same bits in
// every pipeline, wherever its logits are made and whatever is trained; an evaluation is as if it
// were not there.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/linear.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "network/objectives/cross_entropy.h"
#include "network/passes/freeze.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/staged_backend.h"
#include "stage/testing/weighted_images.h"

namespace stagecoach {
namespace {

constexpr int64_t kAuxiliarySamples = 5, kHeadClasses = 4;
constexpr double kHeadWeight = 0.7;

// Linear; a GELU, whose layer gives the auxiliary logits of what it reads as well; linear, GELU,
// linear, which they ride past. Without a weight all that is the same but for them.
Network NetworkWithHead(double weight, const KindSpec& objective = {},
                        Precision precision = Precision::kFloat32) {
  NetworkBuilder builder(0.02, {.images = true});
  const WireId x = builder.Input("images", ActivationType({6}), 0);
  const WireId labels =
      builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, kHeadClasses);
  const auto add = [&builder](const LayerSpec& spec, WireId in) {
    return builder.Add(spec, "model", in).value();
  };
  const auto fork = [weight](const std::vector<ValueId>& in,
                             LayerBuilder& layer) -> absl::StatusOr<std::vector<ValueId>> {
    std::vector<ValueId> out = {layer.writer().Emit("gelu", {}, {in[0]})[0]};
    if (weight == 0) return out;
    ASSIGN_OR_RETURN(out.emplace_back(),
                     BuildLayer(LinearSpec{.out = kHeadClasses}, in[0],
                                {.path = "model", .prefix = "auxiliary."}, layer));
    return out;
  };
  const WireId h = add(LinearSpec{.out = 8}, x);
  const std::vector<WireId> forked = builder.Add({"fork", "fork", "model"}, {h}, fork).value();
  const WireId y = add(GeluSpec{}, add(LinearSpec{.out = 8}, forked[0]));
  const WireId logits = add(LinearSpec{.out = kHeadClasses}, y);
  Network network = builder
                        .Finish({.output = logits,
                                 .targets = labels,
                                 .auxiliary = weight == 0 ? WireId() : forked[1],
                                 .auxiliary_weight = weight},
                                "model")
                        .value();
  CHECK_OK(SetObjective(objective, "objective", &network));
  network.precision = precision;
  return network;
}

HarnessOptions HeadOptions(const Network& network, int stages = 1, int64_t micro_batches = 3) {
  HarnessOptions options{
      .stages = stages, .batch_size = kAuxiliarySamples, .micro_batches = micro_batches};
  options.precision = network.precision;
  options.network = network;
  options.evaluation_sequences = kAuxiliarySamples;
  return options;
}

std::vector<StepReport> ReportsOfAStep(PipelineHarness& pipeline) {
  auto reports = pipeline.RunPass(true, 0);
  CHECK_OK(reports.status());
  return *std::move(reports);
}

TEST(Auxiliary, TheLossIsTheSumOfBothAndTheMeasureIsItsOwn) {
  PipelineHarness plain(HeadOptions(NetworkWithHead(0)));
  const StepReport without = ReportsOfAStep(plain).back();
  ASSERT_EQ(without.measures.size(), 1u);
  for (const int stages : {1, 2, 3, 5}) {
    PipelineHarness pipeline(HeadOptions(NetworkWithHead(kHeadWeight), stages));
    const StepReport with = ReportsOfAStep(pipeline).back();
    ASSERT_EQ(with.measures.size(), 2u);
    EXPECT_EQ(with.measures[0], without.measures[0]) << "accuracy is of the output";
    EXPECT_EQ(with.measures[1].name, "auxiliary_loss");
    EXPECT_GT(with.measures[1].value, 0);
    EXPECT_EQ(with.terms, without.terms);
    EXPECT_EQ(with.loss_sum, without.loss_sum + kHeadWeight * with.measures[1].value);
  }
}

TEST(Auxiliary, AnEvaluationIsAsIfItWereNotThere) {
  PipelineHarness plain(HeadOptions(NetworkWithHead(0)));
  const auto without = plain.Evaluate(0);
  ASSERT_TRUE(without.ok()) << without.status();
  for (const int stages : {1, 2, 3, 5}) {
    PipelineHarness pipeline(HeadOptions(NetworkWithHead(kHeadWeight), stages));
    const auto with = pipeline.Evaluate(0);
    ASSERT_TRUE(with.ok()) << with.status();
    EXPECT_EQ(with->loss_sum, without->loss_sum);
    EXPECT_EQ(with->measures, without->measures);
  }
}

// Everything in one list: with smoothing, with a class that is ignored, and with classes that
// weigh.
const std::vector<CrossEntropySpec> kHeadObjectives = {
    {.label_smoothing = 0.1, .top = 2},
    {.label_smoothing = 0.1, .ignore_index = 1},
    {.ignore_index = 2, .class_weights = {0.5, 2, 1, 3.25}},
};

// What the loss of a step is if one number of a parameter is another.
double LossWithMore(const Network& network, size_t parameter, size_t place, float more) {
  PipelineHarness pipeline(HeadOptions(network));
  const Tensor value = pipeline.cell(0).parameters().at(parameter)->value;
  std::vector<float> numbers(static_cast<size_t>(value.elements()));
  pipeline.backend(0).CopyToHost(value, std::as_writable_bytes(std::span(numbers)));
  numbers.at(place) += more;
  pipeline.backend(0).CopyFromHost(std::as_bytes(std::span(numbers)), value);
  pipeline.cell(0).RefreshCompute();
  const StepReport report = ReportsOfAStep(pipeline).back();
  return report.loss_sum / report.terms;
}

TEST(Auxiliary, TheGradientIsThatOfFiniteDifferences) {
  constexpr float kMore = 0.01f;
  for (const CrossEntropySpec& objective : kHeadObjectives) {
    const Network network = NetworkWithHead(kHeadWeight, objective);
    PipelineHarness pipeline(HeadOptions(network));
    ReportsOfAStep(pipeline);
    const std::vector<Parameter*> parameters = pipeline.cell(0).parameters();
    ASSERT_EQ(parameters.size(), 8u);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& gradient = parameters[i]->gradient;
      std::vector<float> numbers(static_cast<size_t>(gradient.elements()));
      pipeline.backend(0).CopyToHost(gradient, std::as_writable_bytes(std::span(numbers)));
      for (size_t k = 0; k < numbers.size(); k += 3) {
        const double up = LossWithMore(network, i, k, kMore),
                     down = LossWithMore(network, i, k, -kMore);
        EXPECT_NEAR(numbers[k], (up - down) / (2 * kMore), 1e-4)
            << parameters[i]->spec.name << "[" << k << "]";
      }
    }
  }
}

TEST(Auxiliary, TheGradientIsThatOfTheMiniBatchForEveryM) {
  const auto first_step = [](const Network& network, int64_t micro_batches) {
    HarnessOptions options = HeadOptions(network, 2, micro_batches);
    options.source =
        std::make_shared<WeightedImages>(WeightedImages::Sizes{micro_batches, 6, kHeadClasses},
                                         std::vector<float>{0.5f, 2, 0, 1, 3.25f});
    PipelineHarness pipeline(options);
    return ReportsOfAStep(pipeline);
  };
  for (const CrossEntropySpec& objective : kHeadObjectives) {
    const Network plain = NetworkWithHead(kHeadWeight, objective);
    for (const Network& network : {plain, WithSampleWeights(plain, "weights").value()}) {
      const std::vector<StepReport> whole = first_step(network, 1);
      for (const int64_t micro_batches : {2, 3, 4, 5}) {
        const std::vector<StepReport> cut = first_step(network, micro_batches);
        const double loss = whole.back().loss_sum, auxiliary = whole.back().measures.back().value;
        EXPECT_NEAR(cut.back().loss_sum, loss, 1e-5 * loss);
        EXPECT_NEAR(cut.back().measures.back().value, auxiliary, 1e-5 * auxiliary);
        for (size_t k = 0; k < whole.size(); ++k) {
          for (size_t i = 0; i < whole[k].layer_squared_norms.size(); ++i) {
            const double norm = whole[k].layer_squared_norms[i];
            EXPECT_NEAR(cut[k].layer_squared_norms[i], norm, 1e-5 * norm)
                << "stage " << k << ", its layer " << i << ", M = " << micro_batches;
          }
        }
      }
    }
  }
}

HarnessResult TrainedThreeSteps(const HarnessOptions& options) {
  PipelineHarness pipeline(options);
  auto result = pipeline.Train(3);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

void ExpectTheSameInEveryPipeline(const Network& network) {
  HarnessOptions first = HeadOptions(network);
  first.rematerialization = Rematerialization::kNever;
  const HarnessResult truth = TrainedThreeSteps(first);
  ASSERT_EQ(truth.losses.size(), 3u);
  EXPECT_NE(truth.losses[0], truth.losses[1]);
  for (int stages = 1; stages <= 5; stages += kSanitized ? 2 : 1) {
    for (const std::string& schedule : SchedulesFor(network.layers.size(), stages)) {
      for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                              Rematerialization::kNever}) {
        for (const bool own_memory : {false, true}) {
          HarnessOptions options = HeadOptions(network, stages);
          options.schedule = schedule;
          options.rematerialization = mode;
          options.own_memory = own_memory;
          options.order_seed = static_cast<uint64_t>(stages);
          EXPECT_TRUE(TrainedThreeSteps(options) == truth)
              << stages << " stages, " << schedule << ", " << RematerializationName(mode);
        }
      }
    }
  }
}

// The last of five stages has a layer that reads one value; the other one it keeps for the loss
// alone.
TEST(Auxiliary, HasTheSameBitsInEveryPipeline) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const CrossEntropySpec& objective : kHeadObjectives) {
      ExpectTheSameInEveryPipeline(NetworkWithHead(kHeadWeight, objective, precision));
    }
  }
}

// Layers behind the head through which no gradient comes, logits of either output that nothing
// trained is in front of.
TEST(Auxiliary, HasTheSameBitsWhateverIsTrained) {
  const std::vector<std::vector<std::string>> parts = {
      {"model/0000/*"},
      {"model/0000/*", "model/0002/*"},
      {"model/0000/*", "model/0002/*", "model/0004/*"},
      {"*auxiliary*"},
      {"model/0000/*", "*auxiliary*"},
      {"model/0000/*", "model/0002/*", "*auxiliary*"}};
  for (const std::vector<std::string>& patterns : parts) {
    SCOPED_TRACE(testing::PrintToString(patterns));
    const auto frozen = Freeze(NetworkWithHead(kHeadWeight), patterns, "training.freeze");
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    ExpectTheSameInEveryPipeline(*frozen);
  }
}

TEST(Auxiliary, IsCopiedToAndFromCards) {
  const HarnessResult truth = TrainedThreeSteps(HeadOptions(NetworkWithHead(kHeadWeight)));
  for (const int stages : {2, 5}) {
    HarnessOptions options = HeadOptions(NetworkWithHead(kHeadWeight), stages);
    options.patience = 1000;
    options.make_backend = [made = 0]() mutable {
      return std::make_unique<StagedBackend>(static_cast<uint64_t>(++made));
    };
    EXPECT_TRUE(TrainedThreeSteps(options) == truth) << stages << " stages";
  }
}

}  // namespace
}  // namespace stagecoach
