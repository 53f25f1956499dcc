#include "stage/executor/shown_answers.h"

#include <cmath>
#include <span>
#include <vector>

#include "base/numbers/bfloat16.h"
#include "gtest/gtest.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "network/zoo/mlp.h"

namespace stagecoach {
namespace {

class ShownAnswersTest : public testing::Test {
 protected:
  template <typename Value>
  Tensor Put(DType dtype, const Shape& shape, const std::vector<Value>& values) {
    Tensor tensor =
        MakeTensor(backend_->allocator(), MemoryKind::kActivations, dtype, shape).value();
    backend_->CopyFromHost(std::as_bytes(std::span(values)), tensor);
    return tensor;
  }
  std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
};

TEST_F(ShownAnswersTest, AreTheLikeliestClassesAndTheirProbabilities) {
  const std::vector<float> logits = {0, std::log(3.0f), 0, 5, 5, -100, NAN, 0, 0};
  const Tensor labels = Put(DType::kI32, Shape{3}, std::vector<int32_t>{1, 2, 0});
  const auto answers =
      AnswersOf(Put(DType::kF32, Shape{3, 3}, logits), labels, 3, *backend_).value();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].label, 1);
  EXPECT_EQ(answers[0].answer, 1);
  EXPECT_NEAR(answers[0].probability, 0.6, 1e-7);
  EXPECT_EQ(answers[1].label, 2);
  EXPECT_EQ(answers[1].answer, 0) << "of equal ones the first";
  EXPECT_NEAR(answers[1].probability, 0.5, 1e-7);
  EXPECT_TRUE(std::isnan(answers[2].probability));
}

TEST_F(ShownAnswersTest, AreOfTheFirstSamplesAndOfRoundedLogitsToo) {
  std::vector<Bfloat16> logits;
  for (const float logit : {0.0f, 1.0f, 2.0f, 0.0f}) logits.emplace_back(logit);
  const Tensor labels = Put(DType::kI32, Shape{2}, std::vector<int32_t>{0, 0});
  const auto answers =
      AnswersOf(Put(DType::kBF16, Shape{2, 2}, logits), labels, 1, *backend_).value();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].answer, 1);
  EXPECT_NEAR(answers[0].probability, 1 / (1 + std::exp(-1.0)), 1e-7);
}

TEST_F(ShownAnswersTest, AreOfTheFirstMiniBatchesOfAnEvaluationOfImages) {
  const Network images =
      *ExpandNetwork(MlpNetworkSpec{.image = {2, 2, 1}, .hidden = 3, .classes = 4});
  const auto shown = [&images](const RunCommand& command) {
    return ShownSamples(command, 10, images);
  };
  EXPECT_EQ(shown({.work = WorkKind::kEvaluate, .evaluation_batch = 1}), 10);
  EXPECT_EQ(shown({.work = WorkKind::kEvaluate, .evaluation_batch = 2}), kShownPictures - 20);
  EXPECT_EQ(shown({.work = WorkKind::kEvaluate, .evaluation_batch = 3}), 0);
  EXPECT_EQ(shown({.work = WorkKind::kEvaluate, .evaluation_batch = ~uint64_t{0}}), 0);
  EXPECT_EQ(shown({.work = WorkKind::kEvaluate, .average = true}), 0);
  EXPECT_EQ(shown({.work = WorkKind::kTrain}), 0);
  const Network text =
      *ExpandNetwork(GptSpec{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 10});
  EXPECT_EQ(ShownSamples({.work = WorkKind::kEvaluate}, 10, text), 0);
}

}  // namespace
}  // namespace stagecoach
