// Graphs of launches on the kernels' own source: the queue of calls in front of all of the back
// end's kernels, with recorded launches in the place of a card's capture.
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/case_testing.h"
#include "stage/backends/conformance/case_calls.h"
#include "stage/backends/cuda/drawing_calls.h"
#include "stage/backends/cuda/emulation/emulated_backend.h"
#include "stage/backends/cuda/graph_lists_testing.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

using conformance::CallsOfCase;
using conformance::CaseCalls;

// One call of a case with operands of its own, again and again.
class CaseCall {
 public:
  CaseCall(cuda::EmulatedBackend& backend, const CaseCalls& calls, const Call& call,
           DType activation)
      : backend_(backend), calls_(calls), activation_(activation) {
    absl::StatusOr<Kernel> kernel = backend.Prepare(call, calls.TypesOf(call), activation);
    CHECK_OK(kernel.status());
    kernel_ = *std::move(kernel);
    for (const ValueId id : call.inputs) inputs_.push_back(Filled(id));
    for (const ValueId id : call.outputs) outputs_.push_back(Filled(id));
    for (const ValueId id : call.adds) adds_.push_back(Filled(id));
  }

  void Run(const ForwardContext& context, uint32_t layer) {
    kernel_({context, layer}, {PlacesOf(inputs_), PlacesOf(outputs_), PlacesOf(adds_)});
  }
  std::string Bits() const {
    std::string bits;
    for (const Tensors* some : {&outputs_, &adds_}) {
      for (const Tensor& tensor : *some) {
        std::string of(static_cast<size_t>(tensor.bytes()), '\0');
        backend_.CopyToHost(tensor, std::as_writable_bytes(std::span(of)));
        bits += of;
      }
    }
    return bits;
  }

 private:
  // Ids as they are, the rest converted to what the operand is; outputs too, so that what is not
  // written is equal.
  Tensor Filled(ValueId id) {
    const ValueType& type = calls_.type(id);
    const Shape shape = RuntimeShape(type, calls_.of.call.samples);
    const DType dtype = ElementDType(type.element, activation_);
    Tensor tensor = *MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype, shape);
    const std::vector<float> values = conformance::FillOf(calls_, id);
    for (size_t i = 0; i < values.size(); ++i) {
      switch (dtype) {
        case DType::kF32:
          tensor.data<float>()[i] = values[i];
          break;
        case DType::kF64:
          tensor.data<double>()[i] = values[i];
          break;
        case DType::kI32:
          tensor.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
          break;
        default:
          tensor.data<cuda::Bf16>()[i] = cuda::FromFloat<cuda::Bf16>(values[i]);
      }
    }
    return tensor;
  }

  cuda::EmulatedBackend& backend_;
  const CaseCalls& calls_;
  const DType activation_;
  Kernel kernel_;
  Tensors inputs_, outputs_, adds_;
};

// A graph holds launches, however many elements each of them has: cases of few elements say as much.
bool IsSmall(const CaseCalls& calls, const Call& call) {
  int64_t elements = 0;
  for (const std::vector<ValueId>* ids : {&call.inputs, &call.outputs, &call.adds}) {
    for (const ValueId id : *ids) {
      elements += RuntimeShape(calls.type(id), calls.of.call.samples).elements();
    }
  }
  return elements <= 4096;
}

bool Draws(const CaseCalls& calls, const Call& call) {
  return cuda::Draws(call, calls.TypesOf(call));
}

// A graph is launched for other steps and micro-batches than it was captured for, so what computes
// other numbers there has to say so.
TEST(EmulatedGraphs, WhatDrawsNothingIsTheSameInEveryStep) {
  std::set<std::string> compared, skipped;
  cuda::EmulatedBackend backend({});
  for (const OperationCase& of : AllCases()) {
    const CaseCalls calls = CallsOfCase(of);
    for (const Call& call : calls.All()) {
      const auto bits = [&](uint64_t seed, uint64_t step, int micro_batch, uint32_t layer) {
        CaseCall one(backend, calls, call, DType::kF32);
        one.Run({.seed = seed,
                 .step = step,
                 .micro_batch = MicroBatchId(micro_batch),
                 .sequences = of.call.samples},
                layer);
        return one.Bits();
      };
      if (Draws(calls, call)) continue;
      if (!IsSmall(calls, call)) {
        skipped.insert(call.operation);
        continue;
      }
      EXPECT_TRUE(bits(1, 2, 3, 4) == bits(9, 8, 7, 6)) << call.operation << " " << of.call.name;
      compared.insert(call.operation);
    }
  }
  EXPECT_GT(compared.size(), 50u);
  EXPECT_THAT(compared, testing::IsSupersetOf(skipped));
}

// Each call as a list of three: looked at, one by one, captured and launched. What adds shows how
// often it ran.
TEST(EmulatedGraphs, EveryCallHasTheSameBitsFromAGraph) {
  const auto graphs = std::make_shared<FakeGraphApi>();
  std::set<std::string> compared, skipped;
  for (const OperationCase& of : AllCases()) {
    const CaseCalls calls = CallsOfCase(of);
    for (const Call& call : calls.All()) {
      if (!IsSmall(calls, call)) {
        skipped.insert(call.operation);
        continue;
      }
      compared.insert(call.operation);
      cuda::EmulatedBackend plain({}), queued({});
      queued.QueueCalls(graphs);
      std::string bits[2];
      for (cuda::EmulatedBackend* const backend : {&plain, &queued}) {
        CaseCall one(*backend, calls, call, DType::kBF16);
        for (uint64_t step = 0; step < 3; ++step) {
          const CallsOfLists list(*backend);
          const ForwardContext context = {.seed = 1,
                                          .step = step,
                                          .micro_batch = MicroBatchId(0),
                                          .sequences = of.call.samples};
          for (int i = 0; i < 3; ++i) one.Run(context, 3);
        }
        bits[backend == &queued ? 1 : 0] = one.Bits();
      }
      EXPECT_TRUE(bits[0] == bits[1]) << call.operation << " " << of.call.name;
      EXPECT_EQ(graphs->launches > 0, !Draws(calls, call)) << call.operation << " " << of.call.name;
      graphs->launches = 0;
    }
  }
  EXPECT_THAT(compared, testing::IsSupersetOf(skipped));
}

// What runs on a card too (cuda_graphs_test.cc).
TEST(EmulatedGraphs, AListOfProductsAndAttentionIsCapturedInItsThirdRound) {
  for (const auto elements : {conformance::Elements::kFloat32, conformance::Elements::kBfloat16}) {
    const auto graphs = std::make_shared<FakeGraphApi>();
    cuda::EmulatedBackend plain({}), queued({});
    queued.QueueCalls(graphs);
    const auto expected = conformance::RunLists(plain, elements);
    EXPECT_EQ(conformance::Disagreement(conformance::RunLists(queued, elements), expected, 0.0),
              "");
    EXPECT_EQ(graphs->captures, 1);
    EXPECT_EQ(graphs->launches, conformance::kListRounds - 2);
  }
}

struct Training {
  std::string schedule;
  int stages = 1;
  Precision precision = Precision::kFloat32;
  double dropout = 0.0;
  Rematerialization rematerialization = Rematerialization::kNever;
};
void PrintTo(const Training& t, std::ostream* out) {
  *out << t.schedule << ", K = " << t.stages << ", " << PrecisionName(t.precision) << ", dropout "
       << t.dropout;
}

class EmulatedGraphsTraining : public testing::TestWithParam<Training> {};

TEST_P(EmulatedGraphsTraining, HasTheSameBits) {
  constexpr int kSteps = 5;
  HarnessOptions options = {
      .stages = GetParam().stages,
      .gpt = {.layers = 2, .width = 16, .heads = 2, .context = 6, .vocabulary = 11},
      .batch_size = 5,
      .micro_batches = 3,
      .schedule = GetParam().schedule,
      .rematerialization = GetParam().rematerialization,
      .dropout = GetParam().dropout,
      .clip_norm = 0.5,
      .evaluation_sequences = 4,
      .precision = GetParam().precision};
  const auto graphs = std::make_shared<FakeGraphApi>();
  const auto train = [&](bool queue) {
    options.make_backend = [queue, graphs] {
      auto backend = std::make_unique<cuda::EmulatedBackend>(BackendOptions{});
      if (queue) backend->QueueCalls(graphs);
      return backend;
    };
    PipelineHarness harness(options);
    CHECK_OK(harness.Train(kSteps - 2).status());
    CHECK_OK(harness.Evaluate(0).status());  // other lists in between
    return *harness.Train(2);
  };
  const HarnessResult eager = train(false);
  EXPECT_EQ(graphs->launches, 0);
  const HarnessResult queued = train(true);
  EXPECT_TRUE(queued == eager);
  EXPECT_GT(graphs->captures, 0);
  // The seed draws in which order stages get on, and with it when they let go of what they sent.
  if (options.stages == 1) {
    EXPECT_GE(graphs->launches, 2 * graphs->captures) << "steps had the same addresses";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, EmulatedGraphsTraining,
    testing::Values(Training{"gpipe"}, Training{"one_forward_one_backward"},
                    Training{"zero_bubble", 1}, Training{"zero_bubble", 2, Precision::kBfloat16},
                    Training{"one_forward_one_backward", 2, Precision::kBfloat16, 0.2},
                    Training{"gpipe", 2, Precision::kFloat32, 0.2, Rematerialization::kAlways}));

// Whatever else is asked of the back end in the middle of a list comes behind it.
TEST(EmulatedGraphs, CopiesFillsAndWaitsFindTheListDone) {
  const auto graphs = std::make_shared<FakeGraphApi>();
  cuda::EmulatedBackend backend({});
  backend.QueueCalls(graphs);
  const ValueType type{Element::kActivation, Leading::kSamples, Shape{1, 4}};
  const Kernel add = *backend.Prepare(
      {.operation = "add"}, {.inputs = {type, type}, .outputs = {type}, .adds = {}}, DType::kF32);
  Tensors chain;
  for (int i = 0; i < 6; ++i) {
    chain.push_back(
        *MakeTensor(backend.allocator(), MemoryKind::kActivations, DType::kF32, Shape{1, 4}));
  }
  const auto read = [&](const Tensor& tensor) { return tensor.data<float>()[3]; };
  const Tensor copy =
      *MakeTensor(backend.link_allocator(), MemoryKind::kActivations, DType::kF32, Shape{1, 4});
  std::vector<float> host(4);
  const std::vector<std::function<void()>> asks = {
      [&] { CHECK_OK(backend.Synchronize()); },
      [&] { backend.CopyToHost(chain[5], std::as_writable_bytes(std::span(host))); },
      [&] { backend.CopyFromHost(std::as_bytes(std::span(host)), copy); },
      [&] { CHECK_OK(backend.CopyToLink(chain[5], copy).status()); },
      [&] { CHECK_OK(backend.CopyFromLink(copy).status()); },
      [&] { backend.Fill(copy, 1.0f); },
      [&] { backend.Convert(chain[5], copy); },
      [&] { backend.SetPrecision(Precision::kFloat32); },
      [&] { backend.allocator().ReleaseCached(); },
  };
  for (int round = 0; round < 4; ++round) {
    for (const auto& ask : asks) {
      backend.Fill(chain[0], 1.0f);
      for (int i = 1; i < 6; ++i) backend.Fill(chain[i], -1.0f);
      const CallsOfLists list(backend);
      for (size_t i = 1; i < chain.size(); ++i) {
        Tensors inputs = {chain[i - 1], chain[i - 1]}, outputs = {chain[i]};
        const ForwardContext context{.sequences = 1};
        add({context}, {PlacesOf(inputs), PlacesOf(outputs), Operands()});
      }
      ask();
      EXPECT_EQ(read(chain[5]), 32.0f);
    }
  }
  EXPECT_GT(graphs->launches, 0);
}

}  // namespace
}  // namespace stagecoach
