// Every operation's case as a layer: the memory that its lists forecast is what the allocator saw,
// and the backward in two parts gives the bits of the joint one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "network/lists/case_testing.h"
#include "network/lists/cost.h"
#include "network/lists/lists.h"
#include "stage/layers/layer_runner.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

class CaseLists : public testing::TestWithParam<OperationCase> {
 protected:
  static constexpr DType kActivation = DType::kF32;
  static constexpr int64_t kAllocationStep = 64;  // bytes that the allocator counts in
  static constexpr int64_t kSamples = 16;         // of any number of floats a whole number of steps

  void SetUp() override {
    const LayerGraph graph = GraphOfCase(GetParam());
    layer_.label = GetParam().name();
    layer_.lists = std::make_shared<const LayerLists>(Differentiate(graph));
    for (const ValueId id : graph.parameters) {
      layer_.parameters.push_back({.name = "w", .shape = graph.value(id).type.shape});
    }
    for (const ValueId id : graph.states) {
      layer_.states.push_back({.name = "s", .shape = graph.value(id).type.shape});
    }
    auto runner = Runner();
    if (absl::IsUnimplemented(runner.status())) GTEST_SKIP() << runner.status().message();
    ASSERT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
  }

  absl::StatusOr<std::unique_ptr<LayerRunner>> Runner() {
    auto runner = LayerRunner::Create(Network(), layer_, *backend_);
    if (!runner.ok()) return runner;
    uint32_t stream = 100;
    for (Parameter& parameter : (*runner)->parameters()) {
      const auto values = NormalValues(parameter.value.elements(), stream++);
      backend_->CopyFromHost(std::as_bytes(std::span(values)), parameter.value);
    }
    return runner;
  }

  // Values for a tuple of the layer.
  Tensors Make(const std::vector<ValueId>& ids, uint32_t stream) {
    Tensors tuple;
    for (const ValueId id : ids) {
      if (!id.valid()) continue;
      const ValueType& type = layer_.lists->value(id).type;
      const Shape shape = RuntimeShape(type, kSamples);
      const bool ids_of_a_table = type.element == Element::kIds;
      tuple.push_back(
          ids_of_a_table
              ? TensorOf(*backend_, TokenValues(shape.elements(), stream++, 3), DType::kI32, shape)
              : TensorOf(*backend_, NormalValues(shape.elements(), stream++), DType::kF32, shape));
    }
    return tuple;
  }
  Tensors Inputs() { return Make(layer_.lists->inputs, 1); }
  Tensors OutputGradients() { return Make(layer_.lists->output_gradients, 50); }

  // What was alive at most beyond what is alive now is what was forecast. What is there once for
  // all samples may be some bytes more.
  template <typename Run>
  void ExpectPeak(int64_t forecast, Run run) {
    constexpr auto kKind = static_cast<size_t>(MemoryKind::kActivations);
    backend_->allocator().ResetPeak();
    const int64_t before = backend_->allocator().Use().current[kKind];
    ASSERT_TRUE(run().ok());
    const int64_t peak = backend_->allocator().Use().peak[kKind] - before;
    EXPECT_GE(peak, forecast);
    EXPECT_LE(peak, forecast + MadeOnce() * (kAllocationStep - 1));
  }

  int64_t MadeOnce() const {
    int64_t once = 0;
    for (const CallList* list : {&layer_.lists->forward, &layer_.lists->backward}) {
      for (const ListedCall& listed : list->calls) {
        for (const ValueType& type : layer_.lists->TypesOf(listed.call).outputs) {
          if (type.leading == Leading::kOne) ++once;
        }
      }
    }
    return once;
  }

  std::vector<std::vector<float>> ParameterGradients(LayerRunner& runner) {
    std::vector<std::vector<float>> all;
    for (Parameter& parameter : runner.parameters()) {
      all.push_back(ValuesOf<float>(*backend_, parameter.gradient));
    }
    return all;
  }
  ForwardContext context() const {
    return {.seed = 5, .micro_batch = MicroBatchId(0), .sequences = kSamples};
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  NetworkLayer layer_;
  std::unique_ptr<LayerRunner> runner_;
};

TEST_P(CaseLists, NeedTheMemoryThatIsForecast) {
  const LayerLists& lists = *layer_.lists;
  const auto forecast = [&](const CallList& list, const std::vector<ValueId>& staying) {
    return PeakOfList(lists, list, kActivation, staying, kSamples);
  };
  Tensors inputs = Inputs();
  ExpectPeak(forecast(lists.forward_alone, lists.inputs),
             [&] { return runner_->Forward(inputs, context(), nullptr).status(); });
  Stash stash;
  ExpectPeak(forecast(lists.forward, {}),
             [&] { return runner_->Forward(std::move(inputs), context(), &stash).status(); });
  EXPECT_EQ(StashBytes(stash), StashBytes(lists, kActivation, kSamples));
  Tensors gradients = OutputGradients();
  ExpectPeak(forecast(lists.backward, {}),
             [&] { return runner_->Backward(std::move(gradients), std::move(stash)).status(); });
}

TEST_P(CaseLists, GiveTheSameBitsInTwoParts) {
  Stash joint, split;
  ASSERT_TRUE(runner_->Forward(Inputs(), context(), &joint).ok());
  const absl::StatusOr<Tensors> whole = runner_->Backward(OutputGradients(), std::move(joint));
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::unique_ptr<LayerRunner> other = *Runner();
  ASSERT_TRUE(other->Forward(Inputs(), context(), &split).ok());
  const absl::StatusOr<Tensors> part = other->BackwardInput(OutputGradients(), &split);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_TRUE(other->BackwardWeight(std::move(split)).ok());
  ASSERT_EQ(part->size(), whole->size());
  for (size_t i = 0; i < whole->size(); ++i) {
    EXPECT_TRUE(
        SameBits(ValuesOf<float>(*backend_, (*part)[i]), ValuesOf<float>(*backend_, (*whole)[i])))
        << "input " << i;
  }
  const auto expected = ParameterGradients(*runner_), actual = ParameterGradients(*other);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(SameBits(actual[i], expected[i])) << "parameter " << i;
  }
}

std::vector<OperationCase> CasesWithLists() {
  std::vector<OperationCase> cases = AllCases();
  std::erase_if(cases, [](const OperationCase& of) { return !of.call.differentiable; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Reference, CaseLists, testing::ValuesIn(CasesWithLists()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace stagecoach
