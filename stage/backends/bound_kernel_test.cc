// A kernel of types with named extents computes what a kernel of each size computes.
#include "stage/backends/bound_kernel.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "operations/attention/attention.h"

namespace stagecoach {
namespace {

constexpr int64_t kSamples = 2, kHeads = 2, kWidth = 4;

Call Attention() {
  return {.operation = "attention",
          .attributes = ToAttributes(AttentionAttributes{.heads = kHeads}),
          .inputs = {ValueId(0)},
          .outputs = {ValueId(1), ValueId(2)}};
}

CallTypes TypesOf(Extent context) {
  return {{ActivationType(Shape::Of({context, {3 * kWidth}}))},
          {ActivationType(Shape::Of({context, {kWidth}})),
           {Element::kFloat32, Leading::kSamples, Shape::Of({{kHeads}, context})}},
          {}};
}

class BoundKernelTest : public testing::Test {
 protected:
  // The output of `kernel` in a micro-batch whose rows are 0.1, 0.2, ...
  std::vector<float> Run(const Kernel& kernel, int64_t rows) {
    Lengths lengths;
    lengths.Set(Length::kSource, rows);
    const ForwardContext run{.sequences = kSamples, .lengths = lengths};
    const CallTypes types = TypesOf({9, Length::kSource});
    Tensors inputs = {Make(types.inputs[0], run)};
    Tensors outputs = {Make(types.outputs[0], run), Make(types.outputs[1], run)};
    float next = 0;
    for (int64_t i = 0; i < inputs[0].elements(); ++i) inputs[0].data<float>()[i] = next += 0.1f;
    kernel({run}, {PlacesOf(inputs), PlacesOf(outputs), Operands()});
    const float* const first = outputs[0].data<float>();
    return {first, first + outputs[0].elements()};
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});

 private:
  Tensor Make(const ValueType& type, const ForwardContext& run) {
    return *MakeTensor(backend_->allocator(), MemoryKind::kActivations, DType::kF32,
                       RuntimeShape(type, run.binding()));
  }
};

TEST_F(BoundKernelTest, ComputesEachLengthAsAKernelOfThatSize) {
  const auto bound =
      PrepareBound(*backend_, Attention(), TypesOf({9, Length::kSource}), DType::kF32);
  ASSERT_TRUE(bound.ok()) << bound.status();
  for (const int64_t rows : {9, 4, 1, 4}) {
    const auto fixed = backend_->Prepare(Attention(), TypesOf({rows}), DType::kF32);
    ASSERT_TRUE(fixed.ok()) << fixed.status();
    EXPECT_EQ(Run(*bound, rows), Run(*fixed, rows)) << rows;
  }
}

TEST_F(BoundKernelTest, HandsOnWhatTheBackEndRefuses) {
  const auto bound = PrepareBound(*backend_, {.operation = "levitate"},
                                  TypesOf({9, Length::kSource}), DType::kF32);
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace stagecoach
