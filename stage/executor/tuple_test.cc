// Networks that are no chain: what rides past layers and cuts, several values at a boundary, inputs
// that later stages read. Cuts change no bit, and neither does it make a difference whether calls
// stand in one layer or in six.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/golden_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/names/network_text.h"
#include "network/zoo/sequence.h"
#include "plan/optimizers/adamw.h"
#include "plan/schedules/schedule_kinds.h"
#include "stage/executor/boundary_port.h"
#include "stage/link/testing/in_process_link.h"
#include "stage/testing/pipeline_harness.h"
#include "stage/testing/skip_network.h"
#include "stage/testing/staged_backend.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kTrained = 3;

HarnessOptions Skipping(int stages, Precision precision = Precision::kFloat32) {
  HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 3};
  options.precision = precision;
  options.network = MakeSkipNetwork(false, precision);
  return options;
}

HarnessResult Trained(const HarnessOptions& options) {
  PipelineHarness pipeline(options);
  auto result = pipeline.Train(kTrained);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : HarnessResult{};
}

std::vector<int> Numbers(const std::vector<WireId>& ids) {
  std::vector<int> numbers;
  for (const WireId id : ids) numbers.push_back(id.value);
  return numbers;
}

TEST(Tuples, TheValuesAtACutAreThoseMadeBeforeAndReadBehind) {
  const Network network = MakeSkipNetwork(false);
  // tokens 0, targets 1, x 2, forked 3 and 4, middle 5, again 6, joined 7, logits 8.
  const CellWires middle = WiresOfCell(network, 2, 4);
  EXPECT_THAT(Numbers(middle.received), ElementsAre(2, 3, 4));
  EXPECT_THAT(Numbers(middle.loaded), ElementsAre(0));
  EXPECT_THAT(Numbers(middle.sent), ElementsAre(2, 4, 6));
  EXPECT_THAT(Numbers(middle.sent_gradients), ElementsAre(2, 3, 4));
  const CellWires last = WiresOfCell(network, 4, 6);
  EXPECT_THAT(Numbers(last.received), ElementsAre(2, 4, 6));
  EXPECT_THAT(Numbers(last.sent), ElementsAre(8));
  const int64_t value = 4 * kSkipContext * kSkipWidth;
  EXPECT_THAT(CutBytes(network), ElementsAre(value, 3 * value, 3 * value, 3 * value, 2 * value,
                                             4 * kSkipContext * kSkipVocabulary));
}

TEST(Tuples, AreShownByThePlanWithWhatRidesPastALayer) {
  std::vector<int64_t> own;
  std::vector<size_t> outputs;
  for (const LayerPlan& layer : PlanLayers(MakeSkipNetwork(false))) {
    own.push_back(layer.own_cut_bytes);
    outputs.push_back(layer.outputs.size());
  }
  const int64_t value = 4 * kSkipContext * kSkipWidth;
  EXPECT_THAT(
      own, ElementsAre(value, 2 * value, value, value, value, 4 * kSkipContext * kSkipVocabulary));
  EXPECT_THAT(outputs, ElementsAre(1, 2, 1, 1, 1, 1));
}

TEST(Tuples, HaveTheSameBitsForEveryCutScheduleAndMode) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const HarnessResult truth = Trained(Skipping(1, precision));
    ASSERT_EQ(truth.losses.size(), size_t{kTrained});
    EXPECT_NE(truth.losses[0], truth.losses[1]);
    for (int stages = 1; stages <= 6; ++stages) {
      for (const std::string& schedule : SchedulesFor(6, stages)) {
        for (const auto mode : {Rematerialization::kAlways, Rematerialization::kExceptFirst,
                                Rematerialization::kNever}) {
          HarnessOptions options = Skipping(stages, precision);
          options.schedule = schedule;
          options.rematerialization = mode;
          options.order_seed = static_cast<uint64_t>(stages);
          options.link_capacity = 1 + stages % 2;
          EXPECT_TRUE(Trained(options) == truth)
              << stages << " stages, " << schedule << ", " << RematerializationName(mode) << ", "
              << PrecisionName(precision);
        }
      }
    }
  }
}

TEST(Tuples, AreCopiedToAndFromCardsWholeAndInOrder) {
  const HarnessResult truth = Trained(Skipping(1));
  for (const int stages : {2, 4, 6}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      HarnessOptions options = Skipping(stages);
      options.patience = 1000;
      options.order_seed = seed;
      options.make_backend = [seed, made = 0]() mutable {
        return std::make_unique<StagedBackend>(seed * 100 + static_cast<uint64_t>(++made));
      };
      EXPECT_TRUE(Trained(options) == truth) << stages << " stages, order " << seed;
    }
  }
}

std::vector<std::vector<float>> Weights(PipelineHarness& pipeline) {
  std::vector<std::vector<float>> all;
  for (Parameter* parameter : pipeline.cell(0).parameters()) {
    std::vector<float>& values = all.emplace_back(parameter->value.elements());
    pipeline.backend(0).CopyToHost(parameter->value, std::as_writable_bytes(std::span(values)));
  }
  return all;
}

void SetWeights(PipelineHarness& pipeline, const std::vector<std::vector<float>>& all) {
  const std::vector<Parameter*> parameters = pipeline.cell(0).parameters();
  ASSERT_EQ(parameters.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    pipeline.backend(0).CopyFromHost(std::as_bytes(std::span(all[i])), parameters[i]->value);
  }
  pipeline.cell(0).RefreshCompute();
}

// The gradient of a value that layers hand on is summed as that of a value inside of a layer is,
// which is tested against finite differences.
TEST(Tuples, OfSixLayersTrainLikeOneLayerWithTheSameCalls) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    PipelineHarness six(Skipping(1, precision));
    HarnessOptions options = Skipping(1, precision);
    options.network = MakeSkipNetwork(true, precision);
    PipelineHarness one(options);
    SetWeights(one, Weights(six));
    for (int step = 0; step < kTrained; ++step) {
      ASSERT_TRUE(six.TrainStep().ok() && one.TrainStep().ok());
      EXPECT_EQ(Weights(six), Weights(one)) << "step " << step << ", " << PrecisionName(precision);
    }
    EXPECT_EQ(six.Result().losses, one.Result().losses);
  }
}

TEST(Tuples, EvaluateTheSameForEveryCutAlsoAShortMiniBatch) {
  std::vector<double> sums;
  for (int stages = 1; stages <= 6; ++stages) {
    HarnessOptions options = Skipping(stages);
    options.evaluation_sequences = 6;  // the second mini-batch has one, and two micro-batches none
    PipelineHarness pipeline(options);
    for (const uint64_t batch : {0, 1}) {
      const auto report = pipeline.Evaluate(batch);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->targets, (batch == 0 ? 5 : 1) * kSkipContext);
      sums.push_back(report->loss_sum);
    }
    EXPECT_EQ(sums[sums.size() - 2], sums[0]);
    EXPECT_EQ(sums.back(), sums[1]);
  }
}

// What a step takes of its forecast on the fullest stage. Values of a micro-batch are whole 4 KiB,
// so that nothing is rounded up. Between stages in one process a value that was sent is still the
// sender's: cards have copies.
double Fullest(Rematerialization mode, int stages, bool on_cards) {
  HarnessOptions options = Skipping(stages);
  options.batch_size = 64;
  options.micro_batches = 2;
  options.rematerialization = mode;
  std::optional<CardProfile> card;
  if (on_cards) {
    card = CardProfile{};
    options.patience = 1000;
    options.make_backend = [made = 0]() mutable {
      return std::make_unique<StagedBackend>(static_cast<uint64_t>(++made));
    };
  }
  PipelineHarness pipeline(options);
  EXPECT_TRUE(pipeline.TrainStep().ok());
  const int layers = static_cast<int>(options.network->layers.size());
  const Partition partition = *UniformPartition(layers, stages);
  double fullest = 0;
  for (int k = 0; k < stages; ++k) {
    const StageMemory forecast =
        ForecastStageMemory(*options.network, pipeline.programs(true), k,
                            {.cells = {{partition.first(k), partition.last(k, layers)}},
                             .batch_size = options.batch_size,
                             .micro_batches = options.micro_batches,
                             .optimizer = AdamWSpec{},
                             .card = card});
    const auto peak = pipeline.backend(k).allocator().Use().peak;
    const double ratio =
        static_cast<double>(peak[static_cast<int>(MemoryKind::kActivations)]) /
        static_cast<double>(forecast.activations - (on_cards ? kCardWorkspaceBytes : 0));
    EXPECT_LE(ratio, on_cards ? 1.0 : 1.03)
        << "stage " << k << " of " << stages << ", " << RematerializationName(mode);
    fullest = std::max(fullest, ratio);
  }
  return fullest;
}

TEST(Tuples, TakeTheMemoryThatIsForecast) {
  for (const auto mode : {Rematerialization::kAlways, Rematerialization::kNever}) {
    EXPECT_GT(Fullest(mode, 1, false), 0.97) << RematerializationName(mode);
    for (const int stages : {1, 2, 3, 6}) {
      EXPECT_GT(Fullest(mode, stages, true), 0.9) << stages << " stages";
    }
  }
}

// Types of values that are no rows of a sequence: one number a sample, a vector, an image, and what
// is there once.
TEST(Tuples, OfAnyRankTellHowManySamplesTheyAreOf) {
  auto links = MakeInProcessLinkPair({});
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  PhaseClock phases(SystemClock::Get());
  const std::vector<ValueType> types = {WeightType(Element::kFloat32, {5}),
                                        {Element::kIds, Leading::kSamples, {}},
                                        ActivationType({5}),
                                        ActivationType({4, 3, 7})};
  BoundaryPort port({.link = links.second.get(),
                     .self = StageId(1),
                     .peer = StageId(0),
                     .leads_down = false,
                     .outgoing = types,
                     .incoming = types,
                     .phases = &phases,
                     .clock = SystemClock::Get(),
                     .backend = backend.get()});
  for (const int64_t samples : {2, 0}) {
    TensorMessage message{.micro_batch = MicroBatchId(0)};
    for (const ValueType& type : types) {
      message.tensors.push_back(*MakeTensor(backend->allocator(), MemoryKind::kActivations,
                                            ElementDType(type.element, DType::kF32),
                                            RuntimeShape(type, samples)));
    }
    ASSERT_TRUE(links.first->TrySend(std::move(message)));
    const auto arrived = port.TryReceive(MessageKind::kActivation, {}, MicroBatchId(0), -1);
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    ASSERT_TRUE(arrived->has_value());
    EXPECT_EQ((*arrived)->binding.samples, samples);
    EXPECT_EQ((*arrived)->tuple.size(), types.size());
  }
}

// The next stage learns the lengths of a micro-batch from its tensors.
TEST(Tuples, TellTheNextStageNamedLengths) {
  auto links = MakeInProcessLinkPair({});
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  PhaseClock phases(SystemClock::Get());
  const std::vector<ValueType> types = {ActivationType(Shape::Of({{9, Length::kTarget}, {3}})),
                                        ActivationType({5})};
  const auto port = [&](Link* link, int self, int peer) {
    return BoundaryPort({.link = link,
                         .self = StageId(self),
                         .peer = StageId(peer),
                         .leads_down = self < peer,
                         .outgoing = types,
                         .incoming = types,
                         .phases = &phases,
                         .clock = SystemClock::Get(),
                         .backend = backend.get()});
  };
  BoundaryPort above = port(links.first.get(), 0, 1), below = port(links.second.get(), 1, 0);
  Lengths lengths;
  lengths.Set(Length::kTarget, 4);
  const Binding sent(2, lengths);
  Tensors tuple;
  for (const ValueType& type : types) {
    tuple.push_back(*MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kF32,
                                RuntimeShape(type, sent)));
  }
  const auto took = above.TrySend(MessageKind::kActivation, {}, MicroBatchId(0), &tuple, sent);
  ASSERT_TRUE(took.ok() && *took) << took.status();
  const auto arrived = below.TryReceive(MessageKind::kActivation, {}, MicroBatchId(0), -1);
  ASSERT_TRUE(arrived.ok() && arrived->has_value()) << arrived.status();
  EXPECT_EQ((*arrived)->binding, sent);
  EXPECT_EQ((*arrived)->tuple[0].shape(), (Shape{8, 3}));
  EXPECT_EQ((*arrived)->tuple[1].shape(), (Shape{2, 5}));
}

// A message that the link has no room for goes out later as it is.
TEST(Tuples, WithNamedLengthsAreSentAgainAfterARefusal) {
  LinkOptions one;
  one.capacity_messages = 1;
  auto links = MakeInProcessLinkPair(one);
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  PhaseClock phases(SystemClock::Get());
  const std::vector<ValueType> types = {ActivationType(Shape::Of({{9, Length::kTarget}, {3}}))};
  const auto port = [&](Link* link, int self, int peer) {
    return BoundaryPort({.link = link,
                         .self = StageId(self),
                         .peer = StageId(peer),
                         .leads_down = self < peer,
                         .outgoing = types,
                         .incoming = types,
                         .phases = &phases,
                         .clock = SystemClock::Get(),
                         .backend = backend.get()});
  };
  BoundaryPort above = port(links.first.get(), 0, 1), below = port(links.second.get(), 1, 0);
  Lengths lengths;
  lengths.Set(Length::kTarget, 4);
  const Binding sizes[] = {{2, lengths}, {0, lengths}};
  std::vector<Tensors> tuples;
  for (const Binding& size : sizes) {
    tuples.push_back({*MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kF32,
                                  RuntimeShape(types[0], size))});
  }
  const auto send = [&](int i) {
    return above.TrySend(MessageKind::kActivation, {}, MicroBatchId(i), &tuples[i], sizes[i]);
  };
  ASSERT_TRUE(*send(0));
  ASSERT_FALSE(*send(1)) << "there is room for one";
  for (int i = 0; i < 2; ++i) {
    const auto arrived = below.TryReceive(MessageKind::kActivation, {}, MicroBatchId(i), -1);
    ASSERT_TRUE(arrived.ok() && arrived->has_value()) << arrived.status();
    EXPECT_EQ((*arrived)->binding, sizes[i]);
    EXPECT_EQ((*arrived)->tuple[0].shape(), RuntimeShape(types[0], sizes[i]));
    if (i == 0) {
      ASSERT_TRUE(*send(1));
    }
  }
}

// Weights of the same layers with other skips are not exchanged.
TEST(Tuples, AreAPartOfTheTextThatWeightsBelongTo) {
  ExpectGolden("network_text_skips.txt", CanonicalNetworkText(MakeSkipNetwork(false)));
}

// A layer that hands its input on as it is leaves it where it is: the loss once wrote its gradient
// over logits that the backward of the layer before still read.
TEST(Tuples, ALayerThatIsTheIdentityChangesNothing) {
  const auto trained = [](int stages, bool with_identity) {
    HarnessOptions options{.stages = stages, .batch_size = 5, .micro_batches = 2};
    options.rematerialization = Rematerialization::kNever;
    SequenceSpec list{.width = 8, .context = 3, .vocabulary = 7, .layers = {}};
    list.layers = {EmbeddingSpec{}, LinearSpec{.out = 7}, ReluSpec{}};
    if (with_identity) list.layers.push_back(DropoutSpec{});
    options.spec = list;
    return Trained(options);
  };
  const HarnessResult plain = trained(1, false);
  EXPECT_NE(plain.losses[0], plain.losses[1]);
  for (const int stages : {1, 2, 3}) EXPECT_TRUE(trained(stages, true) == plain) << stages;
}

// What a neighbour sends that has another network.
TEST(Tuples, OfAnotherSizeAreRefusedByWhatWasExpected) {
  HarnessOptions options = Skipping(2);
  PipelineHarness pipeline(options);
  pipeline.executor(1).BeginStep(pipeline.Work(1, true));
  TensorMessage message{.fence = pipeline.Work(1, true).fence, .micro_batch = MicroBatchId(0)};
  message.tensors.push_back(*MakeTensor(pipeline.backend(0).allocator(), MemoryKind::kActivations,
                                        DType::kF32, Shape{kSkipContext, kSkipWidth}));
  ASSERT_TRUE(pipeline.downstream(0)->TrySend(std::move(message)));
  const absl::Status status = pipeline.executor(1).Advance(1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is F32[4, 8], expected F32[4, 8] for each sample and F32[4, 8] for each"));
  pipeline.executor(1).Abandon();
}

}  // namespace
}  // namespace stagecoach
