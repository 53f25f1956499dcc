#include "stage/backends/device/call_queue.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/device/device_memory.h"
#include "stage/backends/device/testing/fake_device_api.h"
#include "stage/backends/device/testing/fake_graph_api.h"

namespace stagecoach {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A card made of host memory whose kernels are lambdas. Every launch goes through `graphs_`, behind
// a Settle, as KernelBackend::Begin has it.
class CallQueueTest : public testing::Test {
 protected:
  CallQueueTest() { Make(CallQueue::kMostLists); }
  ~CallQueueTest() override { memory_->SetBeforeRelease(nullptr); }

  void Make(size_t most_lists) {
    queue_.emplace(
        CallQueue::Parts{.api = &graphs_,
                         .stream = nullptr,
                         .fault = fault_.get(),
                         .make_current = [] {},
                         .launched = [this](int calls) { launched_.push_back(calls); },
                         .say = [this](std::string line) { said_.push_back(std::move(line)); },
                         .most_lists = most_lists});
    memory_->SetBeforeRelease([this] { queue_->ForgetGraphs(); });
  }

  void Launch(std::function<void()> work) {
    queue_->Settle();
    graphs_.Do(std::move(work));
  }

  // out = in + 1, of one number.
  Kernel PlusOne(bool draws = false) {
    return queue_->Wrap(
        [this](const KernelContext&, const KernelArguments& a) {
          const float* const from = a.inputs[0].data<float>();
          float* const to = a.outputs[0].data<float>();
          Launch([from, to] { *to = *from + 1; });
        },
        "plus_one", draws);
  }

  Tensor Number(float value) {
    Tensor tensor = *MakeTensor(*memory_, MemoryKind::kActivations, DType::kF32, Shape{1});
    *tensor.data<float>() = value;
    return tensor;
  }

  void Run(const Kernel& kernel, Tensor from, Tensor to, int64_t sequences = 1) {
    const ForwardContext context{.step = step_, .sequences = sequences};
    Tensors inputs = {std::move(from)}, outputs = {std::move(to)};
    kernel({context}, {PlacesOf(inputs), PlacesOf(outputs), Operands()});
  }

  // A list that adds one as often as `chain` has places.
  float RunChain(const Kernel& kernel, const Tensors& chain, float start) {
    *chain[0].data<float>() = start;
    queue_->BeginCalls();
    for (size_t i = 1; i < chain.size(); ++i) Run(kernel, chain[i - 1], chain[i]);
    queue_->EndCalls();
    return *chain.back().data<float>();
  }
  Tensors Chain(int places) {
    Tensors chain;
    for (int i = 0; i < places; ++i) chain.push_back(Number(-1));
    return chain;
  }

  const std::shared_ptr<FakeDeviceApi> api_ = std::make_shared<FakeDeviceApi>();
  const std::shared_ptr<DeviceFault> fault_ = std::make_shared<DeviceFault>(api_, 0);
  const std::unique_ptr<Allocator> memory_ =
      MakeDeviceAllocator(api_, 0, 1 << 20, fault_, Reuse::kLowest);
  FakeGraphApi graphs_;
  std::vector<int> launched_;
  std::vector<std::string> said_;
  std::optional<CallQueue> queue_;  // says a last line when it goes
  uint64_t step_ = 1;
};

// What the header draws: at their places, one by one, captured and launched, launched.
TEST_F(CallQueueTest, AListIsLaunchedAsOneFromItsThirdTimeOn) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(6);
  EXPECT_EQ(RunChain(plus_one, chain, 10), 15);
  EXPECT_EQ(queue_->counts().one_by_one, 1) << "only its first call had to be looked at";
  EXPECT_EQ(graphs_.captures, 0);
  EXPECT_EQ(RunChain(plus_one, chain, 20), 25);
  EXPECT_EQ(RunChain(plus_one, chain, 30), 35);
  EXPECT_EQ(graphs_.captures, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RunChain(plus_one, chain, 40.0f + i), 45.0f + i);
  EXPECT_EQ(graphs_.captures, 1);
  EXPECT_EQ(graphs_.launches, 4);
  EXPECT_THAT(launched_, ElementsAre(5, 5, 5, 5)) << "calls, for whoever counts progress";
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(CallQueueTest, OutsideOfListsCallsRunWhenTheyCome) {
  const Kernel plus_one = PlusOne();
  const Tensor a = Number(1), b = Number(0);
  for (int i = 0; i < 5; ++i) {
    Run(plus_one, a, b);
    EXPECT_EQ(*b.data<float>(), 2);
    Run(plus_one, b, b);
    EXPECT_EQ(*b.data<float>(), 3);
  }
  EXPECT_EQ(graphs_.captures, 0);
}

TEST_F(CallQueueTest, OtherAddressesAreAnotherList) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(5), other = Chain(5);
  for (int i = 0; i < 4; ++i) RunChain(plus_one, chain, 0);
  EXPECT_EQ(graphs_.captures, 1);
  const int launches = graphs_.launches;
  EXPECT_EQ(RunChain(plus_one, other, 7), 11);
  EXPECT_EQ(graphs_.launches, launches) << "the graph has the addresses of the first chain";
  EXPECT_EQ(*chain.back().data<float>(), 4) << "untouched";
  EXPECT_EQ(RunChain(plus_one, other, 8), 12);
  EXPECT_EQ(graphs_.captures, 2);
}

TEST_F(CallQueueTest, AnotherShapeOrNumberOfSequencesIsAnotherCall) {
  std::vector<int64_t> seen;
  const Kernel note = queue_->Wrap(
      [&](const KernelContext& context, const KernelArguments& a) {
        const int64_t what = 100 * context.run.sequences + a.inputs[0].elements();
        Launch([&seen, what] { seen.push_back(what); });
      },
      "note", false);
  const Tensor whole = *MakeTensor(*memory_, MemoryKind::kActivations, DType::kF32, Shape{4, 2});
  const Tensor half(whole.buffer(), DType::kF32, Shape{2, 2});
  for (int round = 0; round < 4; ++round) {
    seen.clear();
    queue_->BeginCalls();
    for (const Tensor& x : {whole, half, whole}) Run(note, x, x, 4);
    Run(note, half, half, 2);
    queue_->EndCalls();
    EXPECT_THAT(seen, ElementsAre(408, 404, 408, 204)) << round;
  }
  EXPECT_EQ(graphs_.captures, 1);
}

// Rows of logits may lie further apart than they are long, and an operand may be left out.
TEST_F(CallQueueTest, OperandsComeBackAsTheyWere) {
  std::vector<std::string> seen;
  const Kernel look = queue_->Wrap(
      [&](const KernelContext&, const KernelArguments& a) {
        const Tensor &x = a.inputs[0], &none = a.inputs[1], &y = a.outputs[0], &sum = a.adds[0];
        seen.push_back(x.shape().ToString() + (x.padded() ? " padded " : " dense ") +
                       std::to_string(x.row_stride()) + (none.valid() ? " there " : " empty ") +
                       DTypeName(y.dtype()) + (x.rows_raw() == y.raw() ? " same " : " other ") +
                       std::to_string(sum.elements()));
      },
      "look", false);
  Tensors inputs = {*MakePaddedTensor(*memory_, MemoryKind::kActivations, DType::kBF16, {3, 5}, 8),
                    Tensor()};
  Tensors outputs = {*MakeTensor(*memory_, MemoryKind::kActivations, DType::kI32, Shape{7})};
  Tensors adds = {*MakeTensor(*memory_, MemoryKind::kGradients, DType::kF32, Shape{})};
  for (int round = 0; round < 3; ++round) {
    queue_->BeginCalls();
    for (int i = 0; i < 3; ++i) {
      const ForwardContext context{.sequences = 1};
      look({context}, {PlacesOf(inputs), PlacesOf(outputs), PlacesOf(adds)});
    }
    queue_->EndCalls();
  }
  ASSERT_THAT(seen, SizeIs(9)) << "the third round is a capture";
  for (const std::string& text : seen) EXPECT_EQ(text, seen.front());
  EXPECT_THAT(seen.front(), HasSubstr("[3, 5] padded 8 empty"));
}

// Other numbers in every step: it runs each time, between two graphs.
TEST_F(CallQueueTest, ACallThatDrawsIsInNoGraph) {
  const Kernel plus_one = PlusOne();
  const Kernel plus_step = queue_->Wrap(
      [this](const KernelContext& context, const KernelArguments& a) {
        const float* const from = a.inputs[0].data<float>();
        float* const to = a.outputs[0].data<float>();
        const auto step = static_cast<float>(context.run.step);
        Launch([=] { *to = *from + step; });
      },
      "plus_step", true);
  const Tensors chain = Chain(8);
  for (step_ = 1; step_ < 7; ++step_) {
    *chain[0].data<float>() = 0;
    queue_->BeginCalls();
    for (size_t i = 1; i < chain.size(); ++i) {
      Run(i == 4 ? plus_step : plus_one, chain[i - 1], chain[i]);
    }
    queue_->EndCalls();
    EXPECT_EQ(*chain.back().data<float>(), 6.0f + static_cast<float>(step_));
  }
  EXPECT_EQ(graphs_.captures, 2) << "before it and behind it";
  EXPECT_GT(graphs_.launches, 4);
}

// Its memory may be that of a call before it which has not run yet.
TEST_F(CallQueueTest, ACallThatTakesMemoryRunsAtItsPlace) {
  const Kernel plus_one = PlusOne();
  const Kernel with_room = queue_->Wrap(
      [this](const KernelContext&, const KernelArguments& a) {
        const Tensor room = Number(-5);
        queue_->TakesMemory();
        const float* const from = a.inputs[0].data<float>();
        float *const to = a.outputs[0].data<float>(), *const between = room.data<float>();
        Launch([=] {
          *between = *from + 1;
          *to = *between;
        });
      },
      "with_room", false);
  const Tensors chain = Chain(8);
  for (int round = 0; round < 5; ++round) {
    *chain[0].data<float>() = 0;
    queue_->BeginCalls();
    for (size_t i = 1; i < chain.size(); ++i) {
      Run(i == 4 ? with_room : plus_one, chain[i - 1], chain[i]);
    }
    queue_->EndCalls();
    EXPECT_EQ(*chain.back().data<float>(), 7);
  }
  EXPECT_EQ(graphs_.captures, 2);
}

// Layers let go of what no later call reads. The next tensor has that memory, and the order keeps
// them apart.
TEST_F(CallQueueTest, HoldsNoMemoryAndKeepsTheOrder) {
  const Kernel plus_one = PlusOne();
  const Tensor first = Number(0), last = Number(0);
  const int64_t before = memory_->Use().total_current;
  for (int round = 0; round < 5; ++round) {
    *first.data<float>() = static_cast<float>(round);
    memory_->ResetPeak();
    queue_->BeginCalls();
    Tensor x = *MakeTensor(*memory_, MemoryKind::kActivations, DType::kF32, Shape{1});
    Run(plus_one, first, x);
    for (int i = 0; i < 8; ++i) {
      Tensor y = *MakeTensor(*memory_, MemoryKind::kActivations, DType::kF32, Shape{1});
      Run(plus_one, x, y);
      EXPECT_EQ(y.buffer().use_count(), 1);
      x = std::move(y);
    }
    Run(plus_one, x, last);
    x.Reset();
    queue_->EndCalls();
    EXPECT_EQ(*last.data<float>(), static_cast<float>(round + 10));
    EXPECT_LE(memory_->Use().total_peak, before + 2 * 512) << "two tensors at a time";
  }
  EXPECT_EQ(graphs_.captures, 1) << "the same addresses in every round";
}

TEST_F(CallQueueTest, WhoSettlesInTheMiddleFindsItDone) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(9);
  for (int round = 0; round < 5; ++round) {
    *chain[0].data<float>() = static_cast<float>(round);
    *chain[4].data<float>() = -1;
    queue_->BeginCalls();
    for (size_t i = 1; i <= 4; ++i) Run(plus_one, chain[i - 1], chain[i]);
    if (round > 0) {
      EXPECT_EQ(*chain[4].data<float>(), -1) << "queued";
    }
    queue_->Settle();
    EXPECT_EQ(*chain[4].data<float>(), static_cast<float>(round + 4));
    for (size_t i = 5; i < chain.size(); ++i) Run(plus_one, chain[i - 1], chain[i]);
    queue_->EndCalls();
    EXPECT_EQ(*chain[8].data<float>(), static_cast<float>(round + 8));
  }
  EXPECT_EQ(graphs_.captures, 2) << "each part of a list is one";
}

TEST_F(CallQueueTest, ACaptureThatFailsIsNoErrorAndIsNotTriedAgain) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(6);
  for (int* const code : {&graphs_.begin_code, &graphs_.end_code, &graphs_.launch_code}) {
    queue_->Forget();
    said_.clear();
    *code = FakeGraphApi::kFailure;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(RunChain(plus_one, chain, 1), 6);
    EXPECT_THAT(said_, ElementsAre(testing::AllOf(HasSubstr("5 calls from plus_one to plus_one"),
                                                  HasSubstr("error 901"))));
    *code = 0;
    EXPECT_EQ(RunChain(plus_one, chain, 1), 6);
    EXPECT_EQ(graphs_.graphs(), 0u) << "given up for good";
    EXPECT_EQ(queue_->counts().refused, 1);
    EXPECT_FALSE(graphs_.capturing());
    EXPECT_TRUE(fault_->ok());
  }
}

// As a launch that no capture can have: the call says so, the job goes on.
TEST_F(CallQueueTest, ACallThatFailsWhileItIsCapturedRunsOneByOne) {
  const Kernel fussy = queue_->Wrap(
      [this](const KernelContext&, const KernelArguments& a) {
        const float* const from = a.inputs[0].data<float>();
        float* const to = a.outputs[0].data<float>();
        if (graphs_.capturing()) fault_->Note(900, "fussy");
        Launch([from, to] { *to = *from + 1; });
      },
      "fussy", false);
  const Tensors chain = Chain(6);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(RunChain(fussy, chain, 1), 6);
  EXPECT_TRUE(fault_->ok());
  EXPECT_EQ(graphs_.launches, 0);
  EXPECT_EQ(graphs_.graphs(), 0u);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("fussy: error 900")));
}

// A real failure of the card comes back with the operation that met it, from the calls themselves.
TEST_F(CallQueueTest, AFailureOfTheCardNamesTheOperation) {
  int code = 0;
  const Kernel kernel = queue_->Wrap(
      [&](const KernelContext&, const KernelArguments&) { fault_->Note(code, "layer_norm"); },
      "layer_norm", false);
  const Tensor x = Number(0);
  const auto list = [&] {
    queue_->BeginCalls();
    for (int i = 0; i < 4; ++i) Run(kernel, x, x);
    queue_->EndCalls();
  };
  for (int i = 0; i < 3; ++i) list();
  EXPECT_EQ(graphs_.launches, 1);
  code = graphs_.launch_code = FakeDeviceApi::kIllegalAddress;
  list();
  EXPECT_THAT(std::string(fault_->status().message()),
              HasSubstr("cuda:0, layer_norm: cudaErrorIllegalAddress"));
  const int captures = graphs_.captures;
  for (int i = 0; i < 3; ++i) list();
  EXPECT_EQ(graphs_.captures, captures) << "calls may leave out what they would launch";
}

// More lists than are kept: each is forgotten before it comes again, so none is captured, rather
// than all each time.
TEST_F(CallQueueTest, ForgetsTheListThatWasNotAskedForLongest) {
  queue_.reset();
  Make(2);
  const Kernel plus_one = PlusOne();
  const Tensors a = Chain(5), b = Chain(5), c = Chain(5);
  for (int round = 0; round < 4; ++round) {
    for (const Tensors* chain : {&a, &b, &c}) EXPECT_EQ(RunChain(plus_one, *chain, 0), 4);
  }
  EXPECT_EQ(graphs_.captures, 0);
  for (int round = 0; round < 4; ++round) {
    for (const Tensors* chain : {&a, &b}) EXPECT_EQ(RunChain(plus_one, *chain, 0), 4);
  }
  EXPECT_EQ(graphs_.captures, 2);
  EXPECT_EQ(RunChain(plus_one, c, 0), 4);
  EXPECT_EQ(graphs_.destroyed, 1);
  EXPECT_EQ(graphs_.graphs(), 1u);
}

TEST_F(CallQueueTest, MemoryThatGoesBackComesBehindWhatIsQueuedAndEndsGraphs) {
  const Kernel plus_one = PlusOne();
  Tensors chain = Chain(6);
  for (int i = 0; i < 4; ++i) RunChain(plus_one, chain, 0);
  EXPECT_EQ(graphs_.graphs(), 1u);
  *chain[0].data<float>() = 1;
  queue_->BeginCalls();
  for (size_t i = 1; i < chain.size(); ++i) Run(plus_one, chain[i - 1], chain[i]);
  Tensor last = chain.back();
  EXPECT_EQ(*last.data<float>(), 5) << "of the list before";
  chain.clear();  // the queued calls still have to use it
  memory_->ReleaseCached();
  EXPECT_EQ(*last.data<float>(), 6);
  EXPECT_EQ(graphs_.graphs(), 0u);
  queue_->EndCalls();
}

// An allocation that has to make room, and one that is refused: in both what is queued is launched
// first.
TEST_F(CallQueueTest, MemoryThatIsRefusedInAListFindsItLaunched) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(6);
  for (int i = 0; i < 4; ++i) RunChain(plus_one, chain, 0);
  Tensor cached = *MakeTensor(*memory_, MemoryKind::kActivations, DType::kU8, Shape{500'000});
  cached.Reset();
  for (const int64_t bytes : {900'000, 2'000'000}) {
    *chain[0].data<float>() = static_cast<float>(bytes);
    queue_->BeginCalls();
    for (size_t i = 1; i < chain.size(); ++i) Run(plus_one, chain[i - 1], chain[i]);
    const auto tensor = MakeTensor(*memory_, MemoryKind::kActivations, DType::kU8, Shape{bytes});
    EXPECT_EQ(tensor.ok(), bytes < 1 << 20) << tensor.status();
    EXPECT_EQ(*chain.back().data<float>(), static_cast<float>(bytes + 5));
    queue_->EndCalls();
  }
}

TEST_F(CallQueueTest, ForgettingBeginsAnewAndSaysWhatWas) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(6);
  for (int i = 0; i < 5; ++i) RunChain(plus_one, chain, 0);
  queue_->Forget();
  EXPECT_EQ(graphs_.graphs(), 0u);
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr(
                  "1 captured, launched for 3 lists of calls; 2 lists call by call, 0 refused")));
  const int done = graphs_.done;
  EXPECT_EQ(RunChain(plus_one, chain, 0), 5);
  EXPECT_EQ(graphs_.done, done + 5);
  EXPECT_EQ(graphs_.captures, 1) << "seen for the first time";
  for (int i = 0; i < 2; ++i) RunChain(plus_one, chain, 0);
  EXPECT_EQ(graphs_.captures, 2);
}

TEST_F(CallQueueTest, AFewCallsAreNotWorthAGraph) {
  const Kernel plus_one = PlusOne();
  const Tensors chain = Chain(CallQueue::kFewestCalls);
  for (int i = 0; i < 5; ++i) RunChain(plus_one, chain, 0);
  EXPECT_EQ(graphs_.captures, 0);
}

}  // namespace
}  // namespace stagecoach
