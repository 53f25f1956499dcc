// Linear maps whose weight is a parameter that does not change: packed once for all calls, with the
// same results as packed for each call.
#include <functional>
#include <string>
#include <vector>

#include "devices/host/linear_blocks.h"
#include "gtest/gtest.h"
#include "operations/linear.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/cpu/cpu_backend.h"
#include "stage/backends/operation_testing.h"

namespace stagecoach::conformance {
namespace {

constexpr int64_t kIn = 40, kOut = 72;
// Fewer rows than pay for packing, one block, whole blocks, and a lower last block.
const std::vector<int64_t> kRows = {5, 100, 2 * kRowBlock, 2 * kRowBlock + 7};

// One weight, and a forward and an input gradient for each number of rows.
struct Mapped {
  explicit Mapped(cpu::CpuBackend& backend) : bench(backend), weight(bench.Normal({kOut, kIn})) {
    const Tensor bias = bench.Normal({kOut});
    for (const int64_t rows : kRows) {
      const Tensor x = bench.Normal({rows, kIn}), dy = bench.Normal({rows, kOut});
      outputs.push_back(bench.Blank({rows, kOut}));
      calls.push_back(
          PrepareOn(backend, {.operation = "linear",
                              .attributes = ToAttributes(LinearAttributes{.bias = true}),
                              .inputs = {x, Whole(weight), Whole(bias)},
                              .outputs = {outputs.back()}}));
      outputs.push_back(bench.Blank({rows, kIn}));
      calls.push_back(
          PrepareOn(backend, {.operation = "linear_input_gradient",
                              .attributes = ToAttributes(LinearInputGradientAttributes{}),
                              .inputs = {dy, Whole(weight)},
                              .outputs = {outputs.back()}}));
    }
  }
  Outputs Run() {
    Outputs read;
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i]();
      read.push_back(bench.Read(std::to_string(i), outputs[i]));
    }
    return read;
  }
  Bench bench;
  Tensor weight;
  Tensors outputs;
  std::vector<std::function<void()>> calls;
};

class PackedProducts : public testing::Test {
 protected:
  int64_t made() { return backend.packed_weights().made(); }
  cpu::CpuBackend backend{BackendOptions{.threads = 2}};
};

TEST_F(PackedProducts, HaveTheResultsOfThoseMadeForOneCall) {
  Mapped mapped(backend);
  mapped.weight.buffer()->CountVersions();
  const Outputs once = mapped.Run();
  EXPECT_EQ(made(), 0) << "of a training, which has no memory for them";
  backend.UseSpareMemory({.packed_products = true});
  for (int time = 0; time < 3; ++time) EXPECT_EQ(Disagreement(mapped.Run(), once, 0.0), "");
  const int64_t orders = made();
  EXPECT_EQ(orders, 2) << "rows of every number read one packing, and gradients another";
  mapped.Run();
  EXPECT_EQ(made(), orders);
  backend.UseSpareMemory({});
  EXPECT_EQ(Disagreement(mapped.Run(), once, 0.0), "");
  EXPECT_EQ(made(), orders) << "without room";
}

TEST_F(PackedProducts, AreMadeAgainForOtherValues) {
  backend.UseSpareMemory({.packed_products = true});
  Mapped mapped(backend), fresh(backend);
  mapped.weight.buffer()->CountVersions();
  const Outputs before = mapped.Run();
  for (const Tensor& weight : {mapped.weight, fresh.weight}) backend.Fill(weight, 0.25f);
  const Outputs after = mapped.Run();
  EXPECT_NE(Disagreement(after, before, 0.0), "");
  EXPECT_EQ(Disagreement(after, fresh.Run(), 1e-5), "");
}

TEST_F(PackedProducts, OfAWeightWithoutVersionsAreNotKept) {
  backend.UseSpareMemory({.packed_products = true});
  Mapped mapped(backend);
  mapped.Run();
  EXPECT_EQ(made(), 0);
}

TEST_F(PackedProducts, GoWithTheCell) {
  backend.UseSpareMemory({.packed_products = true});
  Mapped mapped(backend);
  mapped.weight.buffer()->CountVersions();
  mapped.Run();
  const int64_t of_the_cell = made();
  EXPECT_GE(of_the_cell, 2);
  backend.EndCell();
  EXPECT_EQ(backend.allocator().Use().current[static_cast<size_t>(MemoryKind::kWorkspace)], 0);
  mapped.Run();
  EXPECT_EQ(made(), of_the_cell) << "in the next job";
}

}  // namespace
}  // namespace stagecoach::conformance
