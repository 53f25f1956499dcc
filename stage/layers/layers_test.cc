// Every layer kind against finite differences, and the promises that the cell builds on: adding
// gradients, equal bits of split and joint backward and of a recompute, and what a stash weighs.
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/convolution.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/flatten.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/pools.h"
#include "network/layers/residual.h"
#include "network/layers/swiglu.h"
#include "network/lists/cost.h"
#include "network/zoo/sequence.h"
#include "stage/layers/layer_runner.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kWidth = 6, kContext = 4, kVocabulary = 7, kSequences = 2, kHidden = 10;
constexpr int64_t kRows = kSequences * kContext;

struct Case {
  std::string name;
  LayerSpec spec;
  int64_t stash_floats = 0;  // by the memory table, of all rows together
  bool draws = false;        // random numbers in training
  bool averages = false;     // in an evaluation, in the place of statistics
  bool on_image = false;     // reads an image and no rows of a text
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::vector<Case> Cases() {
  constexpr int64_t n = kRows, d = kWidth, h = kHidden, heads = 2;
  constexpr int64_t norm = n * d + 2 * n;
  constexpr int64_t rms = n * d + n;
  constexpr int64_t attention = 5 * n * d + heads * n;
  constexpr int64_t gated = n * d + 3 * n * h;
  // Of 2 heads of 4 and one key head: x, qkv, an rstd a head, qkv turned, out and log-sum-exp.
  constexpr int64_t qwen_stash = n * (d + 16 + 3 + 16 + 8 + 2);
  constexpr int64_t mlp = n * d + 2 * n * h;
  const LayerSpec attend{AttentionSpec{heads, 0.0}}, attend_drop{AttentionSpec{heads, 0.3}};
  const LayerSpec dense{LinearSpec{d, true}}, drop{DropoutSpec{0.4}}, keep{DropoutSpec{0.0}};
  const LayerSpec layer_norm{LayerNormSpec{}}, gelu{GeluSpec{}}, mlp_spec{MlpSpec{h}};
  const LayerSpec rms_norm = RmsNormSpec{1e-3}, swiglu = SwigluSpec{h};
  const LayerSpec qwen = AttentionSpec{.heads = 2,
                                       .key_heads = 1,
                                       .head_width = 4,
                                       .rotary_theta = 10,
                                       .qk_norm = true,
                                       .bias = false};
  const auto residual = [](std::vector<LayerSpec> layers) {
    return LayerSpec{ResidualSpec{std::move(layers)}};
  };
  return {
      {"embedding", {EmbeddingSpec{0.0}}, n},
      {"embedding_dropout", {EmbeddingSpec{0.4}}, n, true},
      {"embedding_without_position", {EmbeddingSpec{.position = false}}, n},
      {"embedding_scaled", {EmbeddingSpec{.scaled = true}}, n},
      {"embedding_sinusoidal", {EmbeddingSpec{.sinusoidal = true}}, n},
      {"embedding_of_a_transformer",
       {EmbeddingSpec{.dropout = 0.3, .sinusoidal = true, .scaled = true}},
       n,
       true},
      {"layer_norm", layer_norm, norm},
      {"layer_norm_epsilon", LayerNormSpec{.epsilon = 1e-2}, norm},
      {"rms_norm", rms_norm, rms},
      {"batch_norm", BatchNormSpec{1e-3}, n * d + 3 * d, false, true},
      {"attention", attend, attention},
      {"attention_dropout", attend_drop, attention, true},
      {"attention_qwen", qwen, qwen_stash},
      {"attention_grouped",
       AttentionSpec{.heads = 4, .dropout = 0.3, .key_heads = 2, .head_width = 3},
       n * (d + 24 + 12 + 4), true},
      {"attention_rotary", AttentionSpec{.heads = 3, .rotary_theta = 100}, 5 * n * d + 3 * n},
      {"attention_scaled",
       AttentionSpec{.heads = 3,
                     .rotary_theta = 100,
                     .bias = false,
                     .qkv_bias = true,
                     .scaling = {.form = RotaryScalingForm::kLinear, .factor = 3}},
       5 * n * d + 3 * n},
      {"attention_full", AttentionSpec{.heads = heads, .dropout = 0.3, .causal = false}, attention,
       true},
      {"mlp", mlp_spec, mlp},
      {"mlp_exact", MlpSpec{.hidden = h, .exact_gelu = true}, mlp},
      {"mlp_exact_dropout", MlpSpec{.hidden = h, .exact_gelu = true, .dropout = 0.3}, mlp, true},
      {"mlp_dropout", MlpSpec{.hidden = h, .dropout = 0.3}, mlp, true},
      {"mlp_without_bias", MlpSpec{.hidden = h, .bias = false}, mlp},
      {"swiglu", swiglu, gated},
      {"linear", {LinearSpec{9, true}}, n * d},
      {"linear_without_bias", {LinearSpec{9, false}}, n * d},
      {"gelu", gelu, n * d},
      {"gelu_exact", GeluSpec{.exact = true}, n * d},
      {"silu", SiluSpec{}, n * d},
      {"relu", ReluSpec{}, n * d},
      {"dropout", drop, 0, true},
      {"dropout_of_nothing", keep, 0},
      {"residual_attention", residual({layer_norm, attend}), norm + attention},
      {"residual_attention_dropout", residual({layer_norm, attend_drop, drop}), norm + attention,
       true},
      {"residual_mlp", residual({layer_norm, mlp_spec}), norm + mlp},
      {"residual_swiglu", residual({rms_norm, swiglu}), rms + gated},
      {"residual_qwen", residual({rms_norm, qwen}), rms + qwen_stash},
      {"residual_batch_norm", residual({BatchNormSpec{1e-3}, dense}), 2 * n * d + 3 * d, false,
       true},
      // One layer is both the first and the last of the branch.
      {"residual_linear", residual({dense}), n * d},
      {"residual_layer_norm", residual({layer_norm}), norm},
      {"residual_rms_norm", residual({rms_norm, dense}), rms + n * d},
      {"residual_first_and_last",
       residual({residual({layer_norm, dense}), gelu, residual({dense})}), norm + 3 * n * d},
      // Twice a kind, a residual inside, and inner layers that hand their input on.
      {"residual_nested", residual({residual({dense, gelu}), keep, dense, drop}), 3 * n * d, true},
      {"residual_of_identity", residual({keep}), 0},
  };
}

// Of images [4, 3, 2].
std::vector<Case> ImageCases() {
  constexpr int64_t x = kSequences * 4 * 3 * 2;
  const LayerSpec same = ConvolutionSpec{.out = 2, .kernel = {3}, .padding = {1}};
  const ConvolutionSpec grouped{.out = 4,
                                .kernel = {2, 3},
                                .stride = {2, 1},
                                .padding = {1, 0},
                                .dilation = {2, 1},
                                .groups = 2,
                                .bias = false};
  std::vector<Case> cases = {
      {"convolution", same, x},
      {"convolution_in_groups", grouped, x},
      {"group_norm", GroupNormSpec{.groups = 2}, x + 2 * kSequences * 2},
      {"residual_group_norm", ResidualSpec{{GroupNormSpec{.groups = 1}, same}},
       2 * x + 2 * kSequences},
      // One choice for each of 2x2 places of 2 channels.
      {"max_pool", MaxPoolSpec{.kernel = {3, 2}, .stride = {1}}, kSequences * 2 * 2 * 2},
      {"average_pool", AveragePoolSpec{.kernel = {3, 2}, .padding = {1}}, 0},
      {"average_pool_with_padding",
       AveragePoolSpec{.kernel = {2}, .padding = {1}, .count_padding = true}, 0},
      {"global_pool", GlobalPoolSpec{}, 0},
      {"flatten", FlattenSpec{}, 0},
      {"residual_convolution", ResidualSpec{{same, GeluSpec{}, same}}, 3 * x},
  };
  for (Case& c : cases) c.on_image = true;
  return cases;
}

// What layers on rows and on images stand in: an embedding or a convolution before them, a linear
// behind.
Network NetworkOf(const Case& c) {
  if (c.on_image) {
    return ExpandOrDie(SequenceSpec{.layers = {ConvolutionSpec{.out = 2, .kernel = {1}}, c.spec,
                                               FlattenSpec{}, LinearSpec{kVocabulary}},
                                    .image = {4, 3, 3},
                                    .classes = kVocabulary});
  }
  SequenceSpec list{kWidth, kContext, kVocabulary, {}};
  const bool embedding = c.spec.kind == "embedding";
  list.layers.push_back(embedding ? c.spec : LayerSpec{EmbeddingSpec{}});
  if (!embedding) list.layers.push_back(c.spec);
  list.layers.push_back(LayerSpec{LinearSpec{kVocabulary, false}});
  return ExpandOrDie(list);
}

// Apart from each other by more than a slope looks at, and so from 0: no slope over a ReLU's kink,
// or over the place where another number of a window becomes the largest.
std::vector<float> DistinctValues(int64_t count) {
  const std::vector<float> order = NormalValues(count, 2);
  std::vector<float> values;
  for (const float value : order) {
    const auto rank =
        std::count_if(order.begin(), order.end(), [value](float other) { return other < value; });
    values.push_back(0.15f * (static_cast<float>(rank - count / 2) + 0.5f));
  }
  return values;
}

class LayerTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const bool embedding = GetParam().spec.kind == "embedding";
    network_ = NetworkOf(GetParam());
    index_ = embedding ? 0 : 1;
    absl::StatusOr<std::unique_ptr<LayerRunner>> layer =
        LayerRunner::Create(network_, network_.layers[index_], *backend_);
    ASSERT_TRUE(layer.ok()) << layer.status();
    layer_ = *std::move(layer);
    uint32_t stream = 100;
    for (Parameter& parameter : layer_->parameters()) {
      SetValues(parameter.value, NormalValues(parameter.value.elements(), stream++, 0.6f));
    }
    for (LayerState& state : layer_->states()) {
      SetValues(state.value, NormalValues(state.value.elements(), stream++, 0.1f));
    }
    if (embedding) {
      x_ = TensorOf(*backend_, TokenValues(kRows, 1, kVocabulary), DType::kI32, {kRows});
    } else if (GetParam().on_image) {
      const ValueType& image = network_.wire(network_.layers[1].inputs[0]).type;
      x_ = TensorOf(*backend_, DistinctValues(TypeElements(image, kSequences)), DType::kF32,
                    RuntimeShape(image, kSequences));
    } else {
      std::vector<float> x = NormalValues(kRows * kWidth, 2);
      for (float& value : x) value += std::copysign(0.1f, value);  // no slope over a ReLU's kink
      x_ = TensorOf(*backend_, x, DType::kF32, {kRows, kWidth});
    }
    const Shape out = RuntimeShape(OutputType(), kSequences);
    weights_ = NormalValues(out.elements(), 3);
    dy_ = TensorOf(*backend_, weights_, DType::kF32, out);
  }

  bool reads_ids() const { return index_ == 0; }
  const ValueType& OutputType() const {
    return network_.wire(network_.layers[index_].outputs[0]).type;
  }

  void SetValues(const Tensor& tensor, const std::vector<float>& values) {
    backend_->CopyFromHost(std::as_bytes(std::span(values)), tensor);
  }

  Tensor Forward(Stash* stash) { return Forward(stash, context_); }
  Tensor Forward(Stash* stash, const ForwardContext& context) {
    absl::StatusOr<Tensors> y = layer_->Forward({x_}, context, stash);
    CHECK_OK(y.status());
    CHECK_EQ(y->size(), 1u);
    return y->front();
  }

  // Input gradient (no values for the embedding).
  std::vector<float> Backward(Stash stash) {
    absl::StatusOr<Tensors> dx = layer_->Backward({dy_}, std::move(stash));
    CHECK_OK(dx.status());
    return dx->empty() ? std::vector<float>() : ValuesOf<float>(*backend_, dx->front());
  }

  std::vector<std::vector<float>> Gradients() {
    std::vector<std::vector<float>> all;
    for (Parameter& p : layer_->parameters()) all.push_back(ValuesOf<float>(*backend_, p.gradient));
    return all;
  }

  void ZeroGradients() {
    for (Parameter& p : layer_->parameters()) backend_->Fill(p.gradient, 0.0f);
  }

  double Loss() {
    const std::vector<float> y = ValuesOf<float>(*backend_, Forward(nullptr));
    double sum = 0.0;
    for (size_t i = 0; i < y.size(); ++i) sum += double{weights_[i]} * y[i];
    return sum;
  }

  // The scalar loss by one element of a tensor, by the five-point stencil.
  double Slope(const Tensor& tensor, int64_t element) {
    constexpr float kStep = 0x1.0p-5f;
    float* const value = tensor.data<float>() + element;
    const float middle = *value;
    const auto at = [&](float offset) {
      *value = middle + offset;
      return Loss();
    };
    const double near = at(kStep) - at(-kStep), far = at(2 * kStep) - at(-2 * kStep);
    *value = middle;
    return (8.0 * near - far) / (12.0 * kStep);
  }

  void ExpectSlopes(const Tensor& tensor, const std::vector<float>& gradient,
                    const std::string& name) {
    double scale = 1.0;
    for (float g : gradient) scale = std::max(scale, std::abs(double{g}));
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      EXPECT_NEAR(gradient[i], Slope(tensor, i), 3e-4 * scale) << name << " element " << i;
    }
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  Network network_;
  int index_ = 0;
  std::unique_ptr<LayerRunner> layer_;
  Tensor x_, dy_;
  std::vector<float> weights_;
  const ForwardContext context_ = {.seed = 9,
                                   .step = 3,
                                   .micro_batch = MicroBatchId(2),
                                   .sequences = kSequences,
                                   .training = true};
};

TEST_P(LayerTest, GradientsAreTheSlopesOfTheLoss) {
  Stash stash;
  Forward(&stash);
  const std::vector<float> dx = Backward(std::move(stash));
  if (!reads_ids()) ExpectSlopes(x_, dx, "input");
  for (Parameter& parameter : layer_->parameters()) {
    ExpectSlopes(parameter.value, ValuesOf<float>(*backend_, parameter.gradient),
                 parameter.spec.name);
  }
}

TEST_P(LayerTest, BackwardAddsToTheParameterGradients) {
  Stash first, second;
  Forward(&first);
  Forward(&second);
  Backward(std::move(first));
  const std::vector<std::vector<float>> once = Gradients();
  Backward(std::move(second));
  const std::vector<std::vector<float>> twice = Gradients();
  for (size_t p = 0; p < once.size(); ++p) {
    double largest = 0.0;
    for (size_t i = 0; i < once[p].size(); ++i) {
      largest = std::max(largest, std::abs(double{once[p][i]}));
      EXPECT_NEAR(twice[p][i], 2.0 * once[p][i], 1e-5 * (1.0 + std::abs(once[p][i])));
    }
    EXPECT_GT(largest, 0.0) << layer_->parameters()[p].spec.name;
  }
}

TEST_P(LayerTest, SplitBackwardHasTheBitsOfJointBackward) {
  Stash joint, split;
  Forward(&joint);
  Forward(&split);
  const std::vector<float> dx = Backward(std::move(joint));
  const std::vector<std::vector<float>> gradients = Gradients();
  ZeroGradients();

  absl::StatusOr<Tensors> input_part = layer_->BackwardInput({dy_}, &split);
  ASSERT_TRUE(input_part.ok()) << input_part.status();
  if (reads_ids()) {
    EXPECT_TRUE(input_part->empty());
  } else {
    EXPECT_TRUE(SameBits(ValuesOf<float>(*backend_, input_part->front()), dx));
  }
  for (const std::vector<float>& gradient : Gradients()) {
    EXPECT_THAT(gradient, testing::Each(0.0f)) << "the input part leaves the weights alone";
  }
  ASSERT_TRUE(layer_->BackwardWeight(std::move(split)).ok());
  const std::vector<std::vector<float>> weight_part = Gradients();
  for (size_t p = 0; p < gradients.size(); ++p) {
    EXPECT_TRUE(SameBits(weight_part[p], gradients[p])) << layer_->parameters()[p].spec.name;
  }
}

TEST_P(LayerTest, RecomputeHasTheBitsOfTheFirstForward) {
  Stash kept, recomputed;
  const std::vector<float> without = ValuesOf<float>(*backend_, Forward(nullptr));
  EXPECT_TRUE(SameBits(ValuesOf<float>(*backend_, Forward(&kept)), without));
  EXPECT_TRUE(SameBits(ValuesOf<float>(*backend_, Forward(&recomputed)), without));
  const std::vector<float> dx = Backward(std::move(kept));
  const std::vector<std::vector<float>> gradients = Gradients();
  ZeroGradients();
  EXPECT_TRUE(SameBits(Backward(std::move(recomputed)), dx));
  EXPECT_EQ(Gradients(), gradients);
}

TEST_P(LayerTest, InputsAndGradientsHandedInStayAsTheyWere) {
  const auto bytes = [](const Tensor& t) {
    return std::vector<std::byte>(t.span().begin(), t.span().end());
  };
  const std::vector<std::byte> x = bytes(x_), dy = bytes(dy_);
  Stash stash;
  const Tensor y = Forward(&stash);
  const std::vector<std::byte> out = bytes(y);
  Backward(std::move(stash));
  EXPECT_EQ(bytes(x_), x);
  EXPECT_EQ(bytes(dy_), dy);
  EXPECT_EQ(bytes(y), out) << "the next layer may still hold it";
}

TEST_P(LayerTest, StashWeighsWhatTheMemoryTableSays) {
  Stash stash;
  Forward(&stash);
  EXPECT_EQ(StashBytes(stash), 4 * GetParam().stash_floats);
  EXPECT_EQ(StashBytes(stash), StashBytes(*network_.layers[index_].lists,
                                          ComputeDType(network_.precision), kSequences))
      << "cost model of " << network_.layers[index_].label;
}

// The layer, its input and its gradient in bfloat16; the backward must go through too.
TEST_P(LayerTest, InBfloat16TheStashAndTheParametersWeighWhatTheCostModelSays) {
  Network network = network_;
  network.precision = Precision::kBfloat16;
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  const std::unique_ptr<LayerRunner> layer =
      *LayerRunner::Create(network, network.layers[index_], *backend);
  for (Parameter& parameter : layer->parameters()) {
    EXPECT_EQ(parameter.value.dtype(), DType::kF32);
    EXPECT_EQ(parameter.gradient.dtype(), DType::kF32);
    EXPECT_EQ(parameter.compute.dtype(), DType::kBF16);
    const std::vector<float> values = NormalValues(parameter.value.elements(), 5, 0.6f);
    backend->CopyFromHost(std::as_bytes(std::span(values)), parameter.value);
    backend->Convert(parameter.value, parameter.compute);
  }
  const auto narrow = [&](const Tensor& wide) {
    if (wide.dtype() != DType::kF32) return wide;
    const Tensor tensor =
        *MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kBF16, wide.shape());
    backend->Convert(wide, tensor);
    return tensor;
  };
  Stash stash;
  const Tensors y = *layer->Forward({narrow(x_)}, context_, &stash);
  EXPECT_EQ(y.front().dtype(), DType::kBF16);
  EXPECT_EQ(StashBytes(stash),
            StashBytes(*network.layers[index_].lists, ComputeDType(network.precision), kSequences))
      << "cost model of " << network.layers[index_].label;
  const Tensors dx = *layer->Backward({narrow(dy_)}, std::move(stash));
  for (const Tensor& gradient : dx) EXPECT_EQ(gradient.dtype(), DType::kBF16);
}

TEST_P(LayerTest, NoActivationOutlivesItsUse) {
  const auto current = [&] {
    return backend_->allocator().Use().current[static_cast<int>(MemoryKind::kActivations)];
  };
  const int64_t before = current();
  { Forward(nullptr); }
  EXPECT_EQ(current(), before) << "a forward that keeps nothing";
  Stash stash;
  Forward(&stash);
  Backward(std::move(stash));
  EXPECT_EQ(current(), before) << "after the backward";
  Forward(&stash);
  ASSERT_TRUE(layer_->BackwardInput({dy_}, &stash).ok());
  ASSERT_TRUE(layer_->BackwardWeight(std::move(stash)).ok());
  EXPECT_EQ(current(), before) << "after the weight part";
}

TEST_P(LayerTest, RandomNumbersBelongToSeedStepAndMicroBatch) {
  const std::vector<float> y = ValuesOf<float>(*backend_, Forward(nullptr));
  std::vector<ForwardContext> others(3, context_);
  others[0].seed = 10;
  others[1].step = 4;
  others[2].micro_batch = MicroBatchId(1);
  for (const ForwardContext& other : others) {
    const bool same = SameBits(ValuesOf<float>(*backend_, Forward(nullptr, other)), y);
    EXPECT_EQ(same, !GetParam().draws);
  }
  ForwardContext evaluation = context_, later = context_;
  evaluation.training = later.training = false;
  later.step = 77;
  const std::vector<float> plain = ValuesOf<float>(*backend_, Forward(nullptr, evaluation));
  EXPECT_TRUE(SameBits(ValuesOf<float>(*backend_, Forward(nullptr, later)), plain));
  EXPECT_EQ(SameBits(plain, y), !GetParam().draws && !GetParam().averages)
      << "no dropout and no statistics in an evaluation";
}

TEST_P(LayerTest, AnEmptyMicroBatchPassesThrough) {
  ForwardContext none = context_;
  none.sequences = 0;
  const Tensor x =
      reads_ids() ? TensorOf(*backend_, std::vector<int32_t>(), DType::kI32, {0})
                  : TensorOf(*backend_, std::vector<float>(), DType::kF32, {0, x_.shape().back()});
  absl::StatusOr<Tensors> y = layer_->Forward({x}, none, nullptr);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->front().shape(), RuntimeShape(OutputType(), 0));
}

INSTANTIATE_TEST_SUITE_P(Kinds, LayerTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(OnImages, LayerTest, testing::ValuesIn(ImageCases()),
                         [](const auto& info) { return info.param.name; });

TEST(RandomOperationTest, TwoDropoutsOfOneLayerDrawDifferentMasks) {
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  const LayerSpec drop{DropoutSpec{0.5}};
  const Network network = ExpandOrDie(SequenceSpec{
      64, 4, 7, {{EmbeddingSpec{}}, {ResidualSpec{{drop, drop}}}, {LinearSpec{7, false}}}});
  const std::unique_ptr<LayerRunner> layer =
      *LayerRunner::Create(network, network.layers[1], *backend);
  const Tensor x = TensorOf(*backend, std::vector<float>(256, 1.0f), DType::kF32, {4, 64});
  const Tensors y = *layer->Forward({x}, {.micro_batch = MicroBatchId(0), .sequences = 1}, nullptr);
  // 1 + 4 where both keep; with one mask twice it would be half of the elements.
  const std::vector<float> values = ValuesOf<float>(*backend, y.front());
  const int64_t both = std::count(values.begin(), values.end(), 5.0f);
  EXPECT_GT(both, 256 / 4 - 30);
  EXPECT_LT(both, 256 / 4 + 30);
}

TEST(LayerRunnerTest, AnOperationThatTheBackEndHasNoKernelForIsAnErrorThatNamesTheLayer) {
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  Network network =
      ExpandOrDie(SequenceSpec{8, 4, 7, {{EmbeddingSpec{}}, {GeluSpec{}}, {LinearSpec{7, true}}}});
  LayerLists lists = *network.layers[1].lists;
  lists.backward.calls.front().call.operation = "levitate";
  network.layers[1].lists = std::make_shared<const LayerLists>(lists);
  const absl::Status status = LayerRunner::Create(network, network.layers[1], *backend).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith(network.layers[1].label + ": "),
                             testing::HasSubstr("reference"), testing::HasSubstr("levitate")));
}

}  // namespace
}  // namespace stagecoach
