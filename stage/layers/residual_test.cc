// What a residual promises beside its gradients (layers_test.cc): that the sum costs no operation
// where the branch's ends can do it, and that the bits are still those of a sum.
#include "network/layers/residual.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors/status.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "stage/backends/operation_testing.h"
#include "stage/backends/reference/reference_backend.h"
#include "stage/layers/layer_runner.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kTrunkWidth = 6, kTrunkContext = 4, kTrunkSequences = 3,
                  kTrunkRows = kTrunkSequences * kTrunkContext;
constexpr ForwardContext kContextOfRun = {
    .seed = 5, .step = 1, .micro_batch = MicroBatchId(1), .sequences = kTrunkSequences};

class CountingBackend final : public ReferenceBackend {
 public:
  CountingBackend() : ReferenceBackend(BackendOptions{}) {}
  absl::StatusOr<Kernel> Prepare(const Call& call, const CallTypes& types,
                                 DType activation) override {
    ASSIGN_OR_RETURN(Kernel kernel, ReferenceBackend::Prepare(call, types, activation));
    if (call.operation != "add") return kernel;
    return [this, kernel](const KernelContext& context, const KernelArguments& arguments) {
      ++additions_;
      kernel(context, arguments);
    };
  }
  // Since the last call.
  int TakeAdditions() { return std::exchange(additions_, 0); }

 private:
  int additions_ = 0;
};

std::unique_ptr<LayerRunner> MakeOrDie(const Network& network, size_t index, Backend& backend,
                                       uint32_t* stream) {
  absl::StatusOr<std::unique_ptr<LayerRunner>> layer =
      LayerRunner::Create(network, network.layers[index], backend);
  CHECK_OK(layer.status());
  for (Parameter& parameter : (*layer)->parameters()) {
    const std::vector<float> values = NormalValues(parameter.value.elements(), (*stream)++, 0.5f);
    backend.CopyFromHost(std::as_bytes(std::span(values)), parameter.value);
  }
  return *std::move(layer);
}

Tensor MatrixOf(Backend& backend, uint32_t stream) {
  return TensorOf(backend, NormalValues(kTrunkRows * kTrunkWidth, stream), DType::kF32,
                  {kTrunkRows, kTrunkWidth});
}

struct Additions {
  int forward = 0, joint = 0, split = 0;
  friend bool operator==(const Additions&, const Additions&) = default;
};
void PrintTo(const Additions& a, std::ostream* out) {
  *out << a.forward << " forward, " << a.joint << " in the backward, " << a.split << " if split";
}

Additions AdditionsOf(const Network& network, size_t index) {
  CountingBackend backend;
  uint32_t stream = 10;
  const std::unique_ptr<LayerRunner> layer = MakeOrDie(network, index, backend, &stream);
  const Tensor x = MatrixOf(backend, 1), dy = MatrixOf(backend, 2);
  Additions additions;
  Stash joint, split;
  CHECK_OK(layer->Forward({x}, kContextOfRun, &joint).status());
  additions.forward = backend.TakeAdditions();
  CHECK_OK(layer->Forward({x}, kContextOfRun, &split).status());
  CHECK_EQ(backend.TakeAdditions(), additions.forward);
  CHECK_OK(layer->Backward({dy}, std::move(joint)).status());
  additions.joint = backend.TakeAdditions();
  CHECK_OK(layer->BackwardInput({dy}, &split).status());
  CHECK_OK(layer->BackwardWeight(std::move(split)));
  additions.split = backend.TakeAdditions();
  return additions;
}

TEST(Residual, TheSumsOfAGptBlockAreNoOperations) {
  GptSpec spec = {
      .layers = 1, .width = kTrunkWidth, .heads = 2, .context = kTrunkContext, .vocabulary = 7};
  for (const size_t index : {1, 2}) {
    EXPECT_EQ(AdditionsOf(ExpandOrDie(spec), index), (Additions{0, 0, 0})) << index;
  }
  spec.dropout = 0.1;  // stands behind the projection
  for (const size_t index : {1, 2}) {
    EXPECT_EQ(AdditionsOf(ExpandOrDie(spec), index), (Additions{1, 0, 0})) << index;
  }
}

Network NetworkOfLayers(std::vector<LayerSpec> layers) {
  layers.insert(layers.begin(), LayerSpec{EmbeddingSpec{}});
  layers.push_back(LayerSpec{LinearSpec{7, false}});
  return ExpandOrDie(SequenceSpec{kTrunkWidth, kTrunkContext, 7, std::move(layers)});
}

TEST(Residual, WhatCannotAddIsFollowedByASum) {
  const LayerSpec keep{DropoutSpec{0.0}}, dense{LinearSpec{kTrunkWidth, true}}, gelu{GeluSpec{}};
  const auto of = [](std::vector<LayerSpec> layers) {
    return AdditionsOf(NetworkOfLayers({LayerSpec{ResidualSpec{std::move(layers)}}}), 1);
  };
  EXPECT_EQ(of({dense}), (Additions{0, 1, 1}));
  EXPECT_EQ(of({LayerSpec{LayerNormSpec{}}}), (Additions{1, 0, 0}));
  EXPECT_EQ(of({gelu, dense, keep}), (Additions{1, 1, 1}));
  EXPECT_EQ(of({keep}), (Additions{1, 1, 1})) << "twice x";
  // The inner sum is the projection's, the outer one an operation.
  EXPECT_EQ(of({gelu, LayerSpec{ResidualSpec{{gelu, dense}}}}), (Additions{1, 2, 2}));
}

// The branch once more as layers of their own, and the sum by hand.
void ExpectBitsOfASum(const std::string& name, const std::vector<LayerSpec>& branch) {
  CountingBackend backend;
  const Network whole = NetworkOfLayers({LayerSpec{ResidualSpec{branch}}}),
                parts = NetworkOfLayers(branch);
  uint32_t stream = 10;
  const std::unique_ptr<LayerRunner> residual = MakeOrDie(whole, 1, backend, &stream);
  std::vector<std::unique_ptr<LayerRunner>> layers;
  stream = 10;
  for (size_t i = 0; i < branch.size(); ++i) {
    layers.push_back(MakeOrDie(parts, 1 + i, backend, &stream));
  }
  const Tensor x = MatrixOf(backend, 1), dy = MatrixOf(backend, 2);
  Stash stash;
  std::vector<Stash> stashes(branch.size());
  const Tensor y = residual->Forward({x}, kContextOfRun, &stash)->front();
  const Tensor dx = residual->Backward({dy}, std::move(stash))->front();
  Tensors forward = {x}, backward = {dy};
  for (size_t i = 0; i < layers.size(); ++i) {
    forward = *layers[i]->Forward(std::move(forward), kContextOfRun, &stashes[i]);
  }
  for (size_t i = layers.size(); i-- > 0;) {
    backward = *layers[i]->Backward(std::move(backward), std::move(stashes[i]));
  }
  const auto add_to = [&](const Tensor& sum, const Tensor& share) {
    RunOn(backend, {.operation = "add", .inputs = {share, sum}, .outputs = {sum}});
  };
  add_to(forward.front(), x);
  add_to(backward.front(), dy);
  const auto values = [&](const Tensor& tensor) { return ValuesOf<float>(backend, tensor); };
  EXPECT_TRUE(SameBits(values(y), values(forward.front()))) << name;
  EXPECT_TRUE(SameBits(values(dx), values(backward.front()))) << name;
}

TEST(Residual, InFloat32HasTheBitsOfItsBranchAndASum) {
  const LayerSpec norm{LayerNormSpec{}}, attend{AttentionSpec{2, 0.0}}, mlp{MlpSpec{10}};
  const LayerSpec dense{LinearSpec{kTrunkWidth, true}}, plain{LinearSpec{kTrunkWidth, false}};
  ExpectBitsOfASum("attention", {norm, attend});
  ExpectBitsOfASum("mlp", {norm, mlp});
  ExpectBitsOfASum("linear", {dense});
  ExpectBitsOfASum("linear without bias", {norm, plain});
  ExpectBitsOfASum("layer norm", {norm});
  ExpectBitsOfASum("residual", {dense, LayerSpec{ResidualSpec{{norm, mlp}}}});
}

// x is read by both sums and by the branch: their gradients are summed from the last reader to the
// first, (outer + inner) + branch, and not as a sum inside of a sum.
TEST(Residual, ThatBeginsWithAResidualSumsItsGradientsFromTheLastReader) {
  const LayerSpec gelu{GeluSpec{}};
  CountingBackend backend;
  const Network whole =
      NetworkOfLayers({LayerSpec{ResidualSpec{{LayerSpec{ResidualSpec{{gelu}}}}}}});
  const Network alone = NetworkOfLayers({gelu});
  uint32_t stream = 10;
  const auto residual = MakeOrDie(whole, 1, backend, &stream),
             branch = MakeOrDie(alone, 1, backend, &stream);
  const Tensor x = MatrixOf(backend, 1), dy = MatrixOf(backend, 2);
  Stash stash, stash_of_branch;
  CHECK_OK(residual->Forward({x}, kContextOfRun, &stash).status());
  CHECK_OK(branch->Forward({x}, kContextOfRun, &stash_of_branch).status());
  const std::vector<float> dx =
      ValuesOf<float>(backend, residual->Backward({dy}, std::move(stash))->front());
  const std::vector<float> share =
      ValuesOf<float>(backend, branch->Backward({dy}, std::move(stash_of_branch))->front());
  const std::vector<float> trunk = ValuesOf<float>(backend, dy);
  std::vector<float> expected(share.size());
  for (size_t i = 0; i < share.size(); ++i) expected[i] = (trunk[i] + trunk[i]) + share[i];
  EXPECT_TRUE(SameBits(dx, expected));
}

}  // namespace
}  // namespace stagecoach
