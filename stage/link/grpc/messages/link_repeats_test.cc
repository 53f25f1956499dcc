// Two ends of a boundary over a wire that flips bits of what passes, frames, credits and repeats
// alike: each message arrives once, whole, in order, and neither end waits for ever.
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "base/sanitized.h"
#include "stage/link/grpc/link_core.h"

namespace stagecoach {
namespace {

constexpr int kCapacity = 2;

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  CHECK(buffer.Dump(&slices).ok());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// What an end writes waits here until the test lets it pass.
class Wire final : public LinkStream {
 public:
  explicit Wire(bool client) : client_(client) {}
  void Write(const grpc::ByteBuffer* buffer) override {
    writing = true;
    passing.push_back(BytesOf(*buffer));
  }
  void End(const absl::Status&) override {}
  void Cancel() override {}
  bool is_client() const override { return client_; }

  bool writing = false;
  std::deque<std::string> passing;

 private:
  const bool client_;
};

class Pair {
 public:
  Pair(uint64_t seed, double flips, int messages)
      : random_(seed), flips_(flips), messages_(messages), allocator_(MakeHostAllocator(0)) {
    for (const int end : {0, 1}) {
      LinkCore::Options options{.boundary = {"job-a", 1, 2, CellId(0)},
                                .peer = "the other",
                                .upstream_end = end == 0,
                                .link = {.capacity_messages = kCapacity, .chunk_bytes = 16},
                                .allocator = allocator_.get(),
                                .totals = &totals_[end],
                                .on_transfer = {},
                                .progress = nullptr};
      options.on_transfer = [this](const LinkTransfer& transfer) { told_ += transfer.sent; };
      cores_[end] = std::make_shared<LinkCore>(std::move(options));
      wires_[end] = std::make_shared<Wire>(end == 0);
    }
    LinkHello hello;
    hello.boundary = cores_[0]->options().boundary;
    hello.capacity = kCapacity;
    cores_[0]->Attach(wires_[0], std::nullopt);
    cores_[1]->Attach(wires_[1], hello);
    wires_[0]->passing.clear();  // the hello, which the other end was given
  }
  ~Pair() {
    for (const int end : {0, 1}) {
      cores_[end]->Close(absl::CancelledError("the end"));
      if (wires_[end]->writing) cores_[end]->OnWriteDone(false);
      cores_[end]->OnGone(grpc::Status::OK);
      cores_[end]->Detach();
    }
  }

  // Until all has arrived, an end has closed, or nothing can happen any more.
  void Run() {
    while (!IsOver() && Act()) {
    }
  }

  bool IsOver() const {
    return !cores_[0]->status().ok() || !cores_[1]->status().ok() ||
           (received_[0] == messages_ && received_[1] == messages_);
  }
  int received(int end) const { return received_[end]; }
  absl::Status status(int end) const { return cores_[end]->status(); }
  uint64_t repeats() const { return totals_[0].repeats + totals_[1].repeats; }
  int told() const { return told_; }
  int wrong() const { return wrong_; }
  uint64_t most_in_flight() const { return most_in_flight_; }

 private:
  // One of the things that can happen now; false: there is none.
  bool Act() {
    std::vector<std::function<void()>> possible;
    for (const int end : {0, 1}) {
      LinkCore& core = *cores_[end];
      Wire& wire = *wires_[end];
      if (wire.writing) {
        possible.push_back([&] {
          wire.writing = false;
          core.OnWriteDone(true);
        });
      }
      if (!wire.passing.empty()) possible.push_back([this, end] { Pass(end); });
      if (sent_[end] < messages_ && core.statistics().inflight_messages < kCapacity) {
        possible.push_back([this, end] { Send(end); });
      }
      if (arrived_[end] > received_[end]) possible.push_back([this, end] { Take(end); });
    }
    if (possible.empty()) return false;
    possible[random_() % possible.size()]();
    for (const int end : {0, 1}) {
      const uint64_t in_flight = cores_[end]->statistics().inflight_messages;
      most_in_flight_ = std::max(most_in_flight_, in_flight);
    }
    return true;
  }

  void Pass(int from) {
    std::string bytes = std::move(wires_[from]->passing.front());
    wires_[from]->passing.pop_front();
    if (passed_[from]++ > 0 &&
        std::generate_canonical<double, 32>(random_) < flips_) {  // a hello has no repeat
      bytes[random_() % bytes.size()] ^= static_cast<char>(1 << random_() % 8);
    }
    const grpc::Slice slice(bytes);
    const uint64_t before = totals_[1 - from].received_bytes;
    static_cast<void>(cores_[1 - from]->OnRead(grpc::ByteBuffer(&slice, 1)));
    if (totals_[1 - from].received_bytes != before) ++arrived_[1 - from];
  }

  // Of 1 to 5 chunks, each element another number.
  void Send(int end) {
    TensorMessage message;
    message.kind = end == 0 ? MessageKind::kActivation : MessageKind::kGradient;
    message.fence = {"job-a", 1, 2, 7, 1};
    message.micro_batch = MicroBatchId(sent_[end]);
    message.sent_unix_nanos = 1;
    message.tensors.push_back(*MakeTensor(*allocator_, MemoryKind::kActivations, DType::kF32,
                                          Shape{1 + sent_[end] % 19}));
    Fill(message.tensors[0], end, sent_[end]);
    CHECK(cores_[end]->TrySend(std::move(message)));
    ++sent_[end];
  }

  void Take(int end) {
    const std::optional<TensorMessage> message = cores_[end]->TryReceive();
    if (!message.has_value()) return;
    const int number = received_[end]++;
    const Tensor& tensor = message->tensors.at(0);
    Tensor want =
        *MakeTensor(*allocator_, MemoryKind::kActivations, DType::kF32, Shape{1 + number % 19});
    Fill(want, 1 - end, number);
    const bool same = message->micro_batch == MicroBatchId(number) &&
                      tensor.bytes() == want.bytes() &&
                      std::memcmp(tensor.raw(), want.raw(), want.bytes()) == 0;
    if (!same) ++wrong_;
  }

  static void Fill(Tensor& tensor, int end, int number) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.data<float>()[i] = static_cast<float>(1000 * number + 10 * static_cast<int>(i) + end);
    }
  }

  std::mt19937_64 random_;
  const double flips_;
  const int messages_;  // each way
  const std::unique_ptr<Allocator> allocator_;
  LinkTotals totals_[2];
  std::shared_ptr<LinkCore> cores_[2];
  std::shared_ptr<Wire> wires_[2];
  int sent_[2] = {0, 0}, passed_[2] = {0, 0}, arrived_[2] = {0, 0}, received_[2] = {0, 0};
  int told_ = 0, wrong_ = 0;
  uint64_t most_in_flight_ = 0;
};

TEST(LinkRepeats, EachMessageArrivesOnceWhateverIsFlipped) {
  constexpr uint64_t kPairs = kSanitized ? 50 : 500;
  uint64_t repeats = 0;
  for (uint64_t seed = 0; seed < kPairs; ++seed) {
    Pair pair(seed, 0.005, 60);
    pair.Run();
    ASSERT_TRUE(pair.status(0).ok()) << "seed " << seed << ": " << pair.status(0);
    ASSERT_TRUE(pair.status(1).ok()) << "seed " << seed << ": " << pair.status(1);
    for (const int end : {0, 1}) {
      ASSERT_EQ(pair.received(end), 60) << "seed " << seed << ", end " << end << " waits for ever";
    }
    ASSERT_EQ(pair.wrong(), 0) << "seed " << seed;
    ASSERT_LE(pair.most_in_flight(), static_cast<uint64_t>(kCapacity)) << "seed " << seed;
    repeats += pair.repeats();
  }
  EXPECT_GT(repeats, 2 * kPairs);
}

// So much that the limit is met: then an end says so, and none waits.
TEST(LinkRepeats, AWireThatDamagesMostOfItEndsTheLink) {
  constexpr uint64_t kPairs = kSanitized ? 30 : 300;
  uint64_t ended = 0;
  for (uint64_t seed = 0; seed < kPairs; ++seed) {
    Pair pair(seed, 0.6, 60);
    pair.Run();
    ASSERT_TRUE(pair.IsOver()) << "seed " << seed << ": both ends wait for ever";
    ASSERT_EQ(pair.wrong(), 0) << "seed " << seed;
    for (const int end : {0, 1}) {
      if (pair.status(end).ok()) continue;
      ++ended;
      EXPECT_EQ(pair.status(end).code(), absl::StatusCode::kDataLoss) << pair.status(end);
    }
  }
  EXPECT_GT(ended, kPairs * 2 / 3);
}

TEST(LinkRepeats, WithoutDamageNothingIsSaidTwice) {
  Pair pair(1, 0, 60);
  pair.Run();
  EXPECT_EQ(pair.received(0), 60);
  EXPECT_EQ(pair.received(1), 60);
  EXPECT_EQ(pair.repeats(), 0u);
}

}  // namespace
}  // namespace stagecoach
