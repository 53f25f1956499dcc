#include <cmath>
#include <string>
#include <vector>

#include "base/errors/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/linear.h"
#include "network/network_builder.h"
#include "network/objective_kind.h"
#include "network/objectives/cross_entropy.h"
#include "network/objectives/mean_squared_error.h"
#include "operations/losses/loss_types.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kFeatures = 6, kClassCount = 4;

// A linear layer on `features` numbers, with labels and, with `images`, numbers to compare with.
Network LinearNetwork(int64_t out, bool images) {
  NetworkBuilder builder(0.02, {});
  const WireId x = builder.Input("images", ActivationType({kFeatures}), 0);
  const ValueType label{Element::kIds, Leading::kSamples, {}};
  const WireId labels = builder.Input("labels", label, kClassCount);
  const auto y = builder.Add(LinearSpec{.out = out}, "model.layers[0]", x);
  EXPECT_TRUE(y.ok()) << y.status();
  auto network = builder.Finish({*y, images ? x : labels}, "model");
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

TEST(ObjectiveKindsTest, AnUnknownOneIsRefusedWithTheNearestName) {
  const absl::Status status = FindObjectiveKind("cross_entorpy").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cross_entropy"));
}

TEST(ObjectiveKindsTest, ALabelIsCrossEntropyWithAccuracyIfNothingIsSaid) {
  Network network = LinearNetwork(kClassCount, false);
  ASSERT_TRUE(SetObjective({}, "model.objective", &network).ok());
  EXPECT_EQ(network.objective.operation, "cross_entropy");
  EXPECT_THAT(network.objective.sums, ElementsAre("loss", "terms", "accuracy"));
  EXPECT_FALSE(network.objective.ignored.has_value());
}

TEST(ObjectiveKindsTest, CrossEntropyCountsWhatAJobAsksFor) {
  Network network = LinearNetwork(kClassCount, false);
  const CrossEntropySpec spec{.ignore_index = 3, .top = 2};
  ASSERT_TRUE(SetObjective(spec, "model.objective", &network).ok());
  EXPECT_THAT(network.objective.sums, ElementsAre("loss", "terms", "accuracy", "top_2"));
  EXPECT_EQ(network.objective.ignored, 3);
}

TEST(ObjectiveKindsTest, CrossEntropyCountsClassesWhereAJobAsksForIt) {
  Network network = LinearNetwork(kClassCount, false);
  ASSERT_TRUE(SetObjective({}, "model.objective", &network).ok());
  EXPECT_THAT(network.objective.measures(), ElementsAre("accuracy"));
  const CrossEntropySpec spec{.mean_iou = true, .per_class = true};
  ASSERT_TRUE(SetObjective(spec, "model.objective", &network).ok());
  EXPECT_THAT(network.objective.sums, ElementsAre("loss", "terms", "accuracy"));
  EXPECT_THAT(network.objective.measures(), ElementsAre("accuracy", "mean_iou"));
  const auto refusal = [](const KindSpec& refused, int64_t classes) {
    NetworkBuilder builder(0.02, {});
    const WireId x = builder.Input("images", ActivationType({kFeatures}), 0);
    const WireId labels = builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, classes);
    auto y = builder.Add(LinearSpec{.out = classes}, "model.layers[0]", x);
    CHECK_OK(y.status());
    Network large = builder.Finish({*y, labels}, "model").value();
    return std::string(SetObjective(refused, "model.objective", &large).message());
  };
  EXPECT_EQ(refusal(CrossEntropySpec{.mean_iou = true}, 1024), "");
  EXPECT_EQ(refusal(CrossEntropySpec{.per_class = true}, 1025),
            "model.objective: attribute per_class: true; must be false with 1025 classes: of more "
            "than 1024 none is counted on its own");
  EXPECT_EQ(refusal(CrossEntropySpec{.no_accuracy = true, .per_class = true}, 10),
            "model.objective.cross_entropy.per_class: true; needs something to measure of each "
            "class: leave no_accuracy out, or set mean_iou");
}

TEST(ObjectiveKindsTest, EachTakesTheInputThatItCanCompareWith) {
  Network network = LinearNetwork(kFeatures, false);
  ASSERT_TRUE(SetObjective(MeanSquaredErrorSpec{}, "model.objective", &network).ok());
  EXPECT_EQ(network.input(network.objective.targets).name, "images");
  EXPECT_EQ(network.objective.target_type.element, Element::kFloat32) << "never rounded";
  Network classifier = LinearNetwork(kClassCount, true);
  ASSERT_TRUE(SetObjective(CrossEntropySpec{}, "model.objective", &classifier).ok());
  EXPECT_EQ(classifier.input(classifier.objective.targets).name, "labels");
}

TEST(ObjectiveKindsTest, WhatDoesNotFitIsRefusedWithThePathInTheJob) {
  const auto refusal = [](const KindSpec& spec, int64_t out) {
    Network network = LinearNetwork(out, false);
    const absl::Status status = SetObjective(spec, "model.objective", &network);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(CrossEntropySpec{.top = 5}, kClassCount),
              AllOf(HasSubstr("model.objective"), HasSubstr("5"), HasSubstr("4")));
  EXPECT_THAT(refusal(CrossEntropySpec{.label_smoothing = 1}, kClassCount),
              HasSubstr("model.objective.cross_entropy.label_smoothing: 1"));
  EXPECT_THAT(refusal(CrossEntropySpec{}, 5),
              AllOf(HasSubstr("model.objective"), HasSubstr("activation[n, 5]"),
                    HasSubstr("logits of the 4 classes")));
  EXPECT_THAT(refusal(MeanSquaredErrorSpec{}, 5),
              AllOf(HasSubstr("model.objective: the last layer gives activation[n, 5]"),
                    HasSubstr("images, which is float32[n, 6]")));
  EXPECT_THAT(refusal(CrossEntropySpec{.ignore_index = kClassCount}, kClassCount),
              HasSubstr("model.objective.cross_entropy.ignore_index: 4; must be below the 4"));
}

TEST(ObjectiveKindsTest, ClassWeightsAreOneForEachClassAndNotWithSmoothing) {
  Network network = LinearNetwork(kClassCount, false);
  const CrossEntropySpec good{.class_weights = {1, 0, 2.5, kLeastWeight}};
  ASSERT_TRUE(SetObjective(good, "model.objective", &network).ok());
  EXPECT_TRUE(network.objective.weighted());
  EXPECT_THAT(network.objective.class_weights, ElementsAre(1, 0, 2.5, float{kLeastWeight}));
  const auto refusal = [](const CrossEntropySpec& spec) {
    Network refused = LinearNetwork(kClassCount, false);
    const absl::Status status = SetObjective(spec, "model.objective", &refused);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const std::string path = "model.objective.cross_entropy.class_weights";
  EXPECT_EQ(refusal({.class_weights = {1, 1}}),
            path + ": 2 numbers; must be one for each of the 4 classes");
  EXPECT_EQ(refusal({.class_weights = {1, 1, -1, 1}}),
            path + "[2]: -1; must be 0 or a number in [1e-09, 1e+09]");
  EXPECT_THAT(refusal({.class_weights = {1, INFINITY, 1, 1}}), HasSubstr(path + "[1]: inf; must"));
  EXPECT_THAT(refusal({.class_weights = {1, 1, 1, NAN}}), HasSubstr(path + "[3]: nan; must"));
  EXPECT_EQ(refusal({.class_weights = {0, 0, 0, 0}}),
            path + ": all 0; must have a class that counts: give it a weight above 0");
  EXPECT_THAT(refusal({.ignore_index = 1, .class_weights = {0, 5, 0, 0}}),
              HasSubstr(path + ": all 0 but of the ignored class; must have a class that counts"));
  EXPECT_EQ(refusal({.label_smoothing = 0.1, .class_weights = {1, 1, 1, 1}}),
            "model.objective.cross_entropy.label_smoothing: 0.1; must be 0 with class_weights: "
            "leave one of the two out");
}

// Of a network without weights, another one that reads them; everything behind the inputs stands
// one place later.
TEST(ObjectiveKindsTest, WeightsOfSamplesAreAnotherInput) {
  for (const KindSpec& spec :
       {KindSpec(CrossEntropySpec{.class_weights = {1, 1, 1, 1}}), KindSpec(CrossEntropySpec{})}) {
    Network network = LinearNetwork(kClassCount, false);
    ASSERT_TRUE(SetObjective(spec, "model.objective", &network).ok());
    const auto weighted = WithSampleWeights(network, "data.idx.weights");
    ASSERT_TRUE(weighted.ok()) << weighted.status();
    EXPECT_EQ(weighted->InputNamed("weights"), WireId(2));
    EXPECT_EQ(weighted->objective.weights, WireId(2));
    EXPECT_EQ(weighted->wire(WireId(2)).type, SampleWeightType());
    EXPECT_TRUE(weighted->objective.weighted());
    EXPECT_EQ(weighted->objective.targets, network.objective.targets);
    EXPECT_EQ(weighted->objective.output.value, network.objective.output.value + 1);
    EXPECT_EQ(weighted->wire(weighted->objective.output), network.wire(network.objective.output));
    ASSERT_EQ(weighted->layers.size(), 1u);
    EXPECT_EQ(weighted->layers[0].inputs, network.layers[0].inputs) << "the images";
    EXPECT_EQ(weighted->layers[0].outputs, std::vector{weighted->objective.output});
    EXPECT_THAT(weighted->objective.loaded(),
                ElementsAre(weighted->objective.target_type, SampleWeightType()));
  }
}

// Of the hidden values h the logits of both outputs.
Network NetworkWithAuxiliary(int64_t out, double weight) {
  NetworkBuilder builder(0.02, {});
  const WireId x = builder.Input("images", ActivationType({kFeatures}), 0);
  const WireId labels =
      builder.Input("labels", {Element::kIds, Leading::kSamples, {}}, kClassCount);
  const auto h = builder.Add(LinearSpec{.out = kFeatures}, "model.layers[0]", x);
  CHECK_OK(h.status());
  const auto auxiliary = builder.Add(LinearSpec{.out = out}, "model.layers[1]", *h);
  CHECK_OK(auxiliary.status());
  const auto y = builder.Add(LinearSpec{.out = kClassCount}, "model.layers[2]", *h);
  CHECK_OK(y.status());
  auto network = builder.Finish(
      {.output = *y, .targets = labels, .auxiliary = *auxiliary, .auxiliary_weight = weight},
      "model");
  CHECK_OK(network.status());
  return *std::move(network);
}

TEST(ObjectiveKindsTest, AnAuxiliaryOutputIsReadBesideTheOutput) {
  Network network = NetworkWithAuxiliary(kClassCount, 0.4);
  ASSERT_TRUE(SetObjective(CrossEntropySpec{}, "model.objective", &network).ok());
  const Objective& objective = network.objective;
  EXPECT_EQ(objective.auxiliary_weight, 0.4);
  EXPECT_THAT(objective.outputs(), ElementsAre(objective.auxiliary, objective.output));
  EXPECT_EQ(objective.output_place(), 1u);
  EXPECT_THAT(objective.measures(), ElementsAre("accuracy")) << "of an evaluation";
  EXPECT_EQ(WiresOfCell(network, 1, 3).sent, objective.outputs());
  const auto weighted = WithSampleWeights(network, "data.idx.weights");
  ASSERT_TRUE(weighted.ok()) << weighted.status();
  EXPECT_EQ(weighted->objective.auxiliary.value, objective.auxiliary.value + 1);
  EXPECT_EQ(weighted->wire(weighted->objective.auxiliary), network.wire(objective.auxiliary));
}

TEST(ObjectiveKindsTest, AnAuxiliaryOutputThatCannotBeComparedIsRefused) {
  const auto refusal = [](Network network) {
    return std::string(SetObjective({}, "model.objective", &network).message());
  };
  EXPECT_EQ(refusal(NetworkWithAuxiliary(5, 0.4)),
            "model.objective: the auxiliary output is activation[n, 5]; must be a value beside the "
            "output, and as that activation[n, 4]");
  for (const double weight : {0.0, -1.0, 1e6, std::nan("")}) {
    EXPECT_THAT(refusal(NetworkWithAuxiliary(kClassCount, weight)),
                HasSubstr("must be a number in [1e-06, 1000]"));
  }
  Network twice = NetworkWithAuxiliary(kClassCount, 0.4);
  twice.objective.auxiliary = twice.objective.output;
  EXPECT_THAT(refusal(twice), HasSubstr("must be a value beside the output"));
}

TEST(ObjectiveKindsTest, AnObjectiveThatReadsNoWeightsOfSamplesRefusesThem) {
  Network network = LinearNetwork(kClassCount, false);
  ASSERT_TRUE(SetObjective({}, "model.objective", &network).ok());
  network.objective.attributes = Attributes();  // as of a loss that has no such attribute
  EXPECT_EQ(WithSampleWeights(network, "data.idx.weights").status().message(),
            "data.idx.weights: given; cross_entropy reads no weights of samples: leave it out");
}

}  // namespace
}  // namespace stagecoach
