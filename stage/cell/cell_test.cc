// One cell or two, cut anywhere, in any order of keeping, recomputing and splitting: the same bits.
#include "stage/cell/cell.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "stage/backends/loss_testing.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kContext = 6, kVocabulary = 13;
constexpr uint64_t kSeed = 21;
const std::vector<int64_t> kSequences = {2, 2, 1};  // of each micro-batch

Network SmallNetwork() { return ExpandOrDie(GptSpec{2, 8, 2, kContext, kVocabulary, 0.2}); }

ForwardContext ContextOf(int micro_batch) {
  return {.seed = kSeed,
          .step = 5,
          .micro_batch = MicroBatchId(micro_batch),
          .sequences = kSequences[micro_batch]};
}

// What a step may do with a micro-batch between its forward and the end of its backward.
struct Way {
  std::string name;
  bool keep = true;
  bool split = false;
  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

struct Result {
  std::vector<std::vector<float>> logits;  // by micro-batch
  std::vector<std::vector<float>> gradients;
  std::vector<std::string> names;
  std::vector<double> norms;
  friend bool operator==(const Result&, const Result&) = default;
};

class CellTest : public testing::Test {
 protected:
  std::unique_ptr<Cell> MakeCell(int first, int last) {
    absl::StatusOr<std::unique_ptr<Cell>> cell =
        Cell::Create(network_, first, last, kSeed, static_cast<int>(kSequences.size()), *backend_);
    CHECK_OK(cell.status());
    return *std::move(cell);
  }

  Tensor Ids(int micro_batch) {
    const int64_t rows = kSequences[micro_batch] * kContext;
    return TensorOf(*backend_, TokenValues(rows, micro_batch, kVocabulary), DType::kI32, {rows});
  }

  // The gradient of the summed cross-entropy.
  Tensor LossGradient(const Tensor& logits, int micro_batch) {
    const int64_t rows = logits.shape()[0];
    const Tensor targets =
        TensorOf(*backend_, TokenValues(rows, 50 + micro_batch, kVocabulary), DType::kI32, {rows});
    const Tensor sums = TensorOf(*backend_, std::vector<double>(2), DType::kF64, {2});
    const Tensor scale = TensorOf(*backend_, std::vector<float>{0.01f}, DType::kF32, {1});
    const Tensor gradient =
        TensorOf(*backend_, std::vector<float>(logits.elements()), DType::kF32, logits.shape());
    RunLoss(*backend_, {logits, targets, sums, scale, gradient});
    return gradient;
  }

  // One step over all micro-batches: every forward, then the backwards in ascending order.
  Result Step(const std::vector<std::unique_ptr<Cell>>& cells, const Way& way) {
    Result result;
    const int micro_batches = static_cast<int>(kSequences.size());
    for (int i = 0; i < micro_batches; ++i) {
      Tensors tensors{Ids(i)};
      for (const auto& cell : cells) {
        tensors = *cell->Forward(std::move(tensors), ContextOf(i), way.keep);
      }
    }
    for (int i = 0; i < micro_batches; ++i) {
      const MicroBatchId id(i);
      if (!way.keep) {
        for (const auto& cell : cells) CHECK_OK(cell->Recompute(id));
      }
      const Tensor logits = cells.back()->outputs(id).front();
      result.logits.push_back(ValuesOf<float>(*backend_, logits));
      Tensors gradients{LossGradient(logits, i)};
      for (size_t k = cells.size(); k-- > 0;) {
        gradients = way.split ? *cells[k]->BackwardInput(id, std::move(gradients))
                              : *cells[k]->Backward(id, std::move(gradients));
        if (way.split) CHECK_OK(cells[k]->BackwardWeight(id));
      }
      CHECK(gradients.empty()) << "ids have no gradient";
    }
    for (const auto& cell : cells) {
      for (Parameter* parameter : cell->parameters()) {
        result.names.push_back(parameter->spec.name);
        result.gradients.push_back(ValuesOf<float>(*backend_, parameter->gradient));
      }
      const std::vector<double> norms = *cell->LayerSquaredGradientNorms();
      result.norms.insert(result.norms.end(), norms.begin(), norms.end());
    }
    return result;
  }

  std::vector<std::unique_ptr<Cell>> Cut(std::vector<int> cuts) {
    cuts.push_back(static_cast<int>(network_.layers.size()));
    std::vector<std::unique_ptr<Cell>> cells;
    int first = 0;
    for (int last : cuts) {
      cells.push_back(MakeCell(first, last));
      first = last;
    }
    return cells;
  }

  int64_t Activations() {
    return backend_->allocator().Use().current[static_cast<int>(MemoryKind::kActivations)];
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  const Network network_ = SmallNetwork();
};

class CellWayTest : public CellTest, public testing::WithParamInterface<Way> {};

TEST_P(CellWayTest, EveryCutHasTheBitsOfTheWholeNetwork) {
  const Result whole = Step(Cut({}), Way{"keep"});
  ASSERT_EQ(whole.norms.size(), network_.layers.size());
  EXPECT_EQ(Step(Cut({}), GetParam()), whole);
  for (int cut = 1; cut < static_cast<int>(network_.layers.size()); ++cut) {
    EXPECT_EQ(Step(Cut({cut}), GetParam()), whole) << "cut before layer " << cut;
  }
  EXPECT_EQ(Step(Cut({1, 2, 3, 4, 5, 6}), GetParam()), whole) << "a stage for each layer";
}

TEST_P(CellWayTest, NothingOfAStepStaysInMemory) {
  const std::vector<std::unique_ptr<Cell>> cells = Cut({3});
  const int64_t before = Activations();
  Step(cells, GetParam());
  EXPECT_EQ(Activations(), before);
}

INSTANTIATE_TEST_SUITE_P(Ways, CellWayTest,
                         testing::Values(Way{"keep", true, false}, Way{"recompute", false, false},
                                         Way{"keep_and_split", true, true},
                                         Way{"recompute_and_split", false, true}),
                         [](const auto& info) { return info.param.name; });

TEST_F(CellTest, NormsAreThoseOfTheGradients) {
  const Result result = Step(Cut({}), Way{"keep"});
  std::vector<double> norms(network_.layers.size(), 0.0);
  for (size_t p = 0; p < result.gradients.size(); ++p) {
    double sum = 0.0;
    for (float g : result.gradients[p]) sum += double{g} * g;
    norms[std::stoi(result.names[p].substr(6, 4))] += sum;
  }
  for (size_t i = 0; i < norms.size(); ++i) {
    EXPECT_GT(norms[i], 0.0) << network_.layers[i].label;
    EXPECT_NEAR(result.norms[i], norms[i], 1e-12 * norms[i]) << network_.layers[i].label;
  }
}

TEST_F(CellTest, InitialWeightsDoNotDependOnTheCut) {
  std::vector<std::vector<float>> whole, parts;
  std::vector<std::unique_ptr<Cell>> one = Cut({}), three = Cut({2, 5});
  for (Parameter* p : one[0]->parameters()) whole.push_back(ValuesOf<float>(*backend_, p->value));
  for (const auto& cell : three) {
    for (Parameter* p : cell->parameters()) parts.push_back(ValuesOf<float>(*backend_, p->value));
  }
  EXPECT_EQ(parts, whole);
}

TEST_F(CellTest, AForwardThatIsRecomputedKeepsOnlyItsBoundaryInput) {
  const std::unique_ptr<Cell> cell = MakeCell(1, 7);
  const int64_t rows = kSequences[0] * kContext;
  const int64_t before = Activations();
  {
    Tensor x = TensorOf(*backend_, NormalValues(rows * 8, 1), DType::kF32, {rows, 8});
    ASSERT_TRUE(cell->Forward({std::move(x)}, ContextOf(0), false).ok());
  }
  EXPECT_EQ(Activations() - before, rows * 8 * 4);
}

TEST_F(CellTest, AStashedMicroBatchKeepsNoBoundaryInput) {
  // A dropout stashes nothing, so nobody but the cell would hold on to its input.
  const Network network = ExpandOrDie(SequenceSpec{
      8, kContext, kVocabulary, {{EmbeddingSpec{}}, {DropoutSpec{0.2}}, {LinearSpec{13, false}}}});
  const std::unique_ptr<Cell> cell = *Cell::Create(network, 1, 3, kSeed, 2, *backend_);
  const int64_t before = Activations(), rows = kSequences[0] * kContext;
  const int64_t stash_and_logits = rows * 8 * 4 + 64 * ((rows * 13 * 4 + 63) / 64);
  const auto input = [&] {
    return Tensors{TensorOf(*backend_, NormalValues(rows * 8, 1), DType::kF32, {rows, 8})};
  };
  ASSERT_TRUE(cell->Forward(input(), ContextOf(0), true).ok());
  EXPECT_EQ(Activations() - before, stash_and_logits) << "kept";
  cell->DropAllMicroBatches();
  ASSERT_TRUE(cell->Forward(input(), ContextOf(0), false).ok());
  EXPECT_EQ(Activations() - before, rows * 8 * 4) << "the boundary input alone";
  ASSERT_TRUE(cell->Recompute(MicroBatchId(0)).ok());
  EXPECT_EQ(Activations() - before, stash_and_logits) << "recomputed";
}

TEST_F(CellTest, EvaluationLeavesNoTraceAndDrawsNoDropout) {
  const std::unique_ptr<Cell> cell = MakeCell(0, 7);
  const Tensor ids = Ids(0);
  const int64_t before = Activations();
  const std::vector<float> first =
      ValuesOf<float>(*backend_, cell->Evaluate({ids}, ContextOf(0))->front());
  EXPECT_EQ(Activations(), before);
  // A kept micro-batch 0 lives through an evaluation of the same number.
  const std::vector<float> trained =
      ValuesOf<float>(*backend_, cell->Forward({ids}, ContextOf(0), true)->front());
  ForwardContext later = ContextOf(0);
  later.step = 1000;
  EXPECT_TRUE(SameBits(ValuesOf<float>(*backend_, cell->Evaluate({ids}, later)->front()), first));
  EXPECT_FALSE(SameBits(trained, first));
  EXPECT_TRUE(
      SameBits(ValuesOf<float>(*backend_, cell->outputs(MicroBatchId(0)).front()), trained));
}

TEST_F(CellTest, AfterAnAbortEveryMicroBatchIsAbsentAgain) {
  const std::unique_ptr<Cell> cell = MakeCell(0, 7);
  const int64_t before = Activations();
  ASSERT_TRUE(cell->Forward({Ids(0)}, ContextOf(0), true).ok());
  ASSERT_TRUE(cell->Forward({Ids(1)}, ContextOf(1), false).ok());
  Tensors logits = *cell->Forward({Ids(2)}, ContextOf(2), true);
  ASSERT_TRUE(cell->BackwardInput(MicroBatchId(2), std::move(logits)).ok());
  cell->DropAllMicroBatches();
  EXPECT_EQ(Activations(), before);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cell->Forward({Ids(i)}, ContextOf(i), false).ok());
}

TEST_F(CellTest, ZeroGradientsForgetsAllOfThem) {
  std::vector<std::unique_ptr<Cell>> cells = Cut({});
  Cell* const cell = cells[0].get();
  Tensors logits = *cell->Forward({Ids(0)}, ContextOf(0), true);
  ASSERT_TRUE(cell->Backward(MicroBatchId(0), std::move(logits)).ok());
  EXPECT_THAT(*cell->LayerSquaredGradientNorms(), testing::Each(testing::Gt(0.0)));
  cell->ZeroGradients();
  EXPECT_THAT(*cell->LayerSquaredGradientNorms(), testing::Each(0.0));
}

TEST_F(CellTest, MemoryThatRunsOutNamesTheLayerAndLeavesTheMicroBatchAbsent) {
  const std::vector<Tensor> ids = {Ids(0), Ids(1), Ids(2)};
  ASSERT_TRUE(MakeCell(0, 7)->Forward({ids[0]}, ContextOf(0), true).ok());
  const std::unique_ptr<Backend> roomy = std::exchange(
      backend_,
      MakeReferenceBackend({.memory_limit_bytes = backend_->allocator().Use().total_peak}));
  const std::unique_ptr<Cell> cell = MakeCell(0, 7);
  absl::Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) {
    status = cell->Forward({ids[i]}, ContextOf(i), true).status();
  }
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("forward of layer"), testing::HasSubstr("step 5"),
                             testing::HasSubstr("micro-batch 1")));
  cell->DropAllMicroBatches();
  EXPECT_TRUE(cell->Forward({ids[0]}, ContextOf(0), true).ok());
}

using CellDeathTest = CellTest;

TEST_F(CellDeathTest, ACallInTheWrongStateIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::unique_ptr<Cell> cell = MakeCell(0, 7);
  EXPECT_DEATH((void)cell->Recompute(MicroBatchId(0)), "micro-batch 0 is absent");
  EXPECT_DEATH((void)cell->Backward(MicroBatchId(0), {}), "micro-batch 0 is absent");
  EXPECT_DEATH((void)cell->BackwardWeight(MicroBatchId(0)), "micro-batch 0 is absent");
  EXPECT_DEATH((void)cell->Backward(MicroBatchId(3), {}), "micro-batch 3 of 3");
  EXPECT_DEATH((void)cell->Backward(MicroBatchId(), {}), "micro-batch -1 of 3");
  ASSERT_TRUE(cell->Forward({Ids(0)}, ContextOf(0), false).ok());
  EXPECT_DEATH((void)cell->Forward({Ids(0)}, ContextOf(0), true), "is boundary only, not absent");
  EXPECT_DEATH((void)cell->Backward(MicroBatchId(0), {}), "is boundary only, not stashed");
  EXPECT_DEATH((void)cell->outputs(MicroBatchId(0)), "is boundary only, not stashed");
  ASSERT_TRUE(cell->Recompute(MicroBatchId(0)).ok());
  EXPECT_DEATH((void)cell->Recompute(MicroBatchId(0)), "is stashed, not boundary only");
}

}  // namespace
}  // namespace stagecoach
