#include "stage/link/grpc/messages/message_assembler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/files/hash.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

class MessageAssemblerTest : public ::testing::Test {
 protected:
  MessageAssemblerTest() : data_(1600, 'x') {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<char>(i * 11);
  }

  LinkFrame Frame(uint32_t tensor, uint32_t tensors, uint64_t offset, uint64_t bytes) const {
    LinkFrame frame;
    frame.term = 1;
    frame.generation = 2;
    frame.step = 5;
    frame.micro_batch = 3;
    frame.tensor_index = tensor;
    frame.tensor_count = tensors;
    frame.shape = {20, 20};
    frame.offset = offset;
    frame.data_bytes = bytes;
    frame.crc32c = Crc32c(Chunk(offset, bytes));
    return frame;
  }

  std::span<const std::byte> Chunk(uint64_t offset, uint64_t bytes) const {
    return std::as_bytes(std::span<const char>(data_.data() + offset, bytes));
  }

  // As it would come off the wire.
  absl::StatusOr<MessageAssembler::Result> Add(const LinkFrame& frame) {
    const std::string text = EncodeFrameHead(frame) + data_.substr(frame.offset, frame.data_bytes);
    const std::span<const std::byte> piece =
        std::as_bytes(std::span<const char>(text.data(), text.size()));
    absl::StatusOr<LinkMessage> message = DecodeLinkMessage({&piece, 1});
    if (!message.ok()) return message.status();
    return assembler_.Add(std::get<LinkFrame>(*message), {&piece, 1});
  }

  std::unique_ptr<Allocator> allocator_ = MakeHostAllocator(0);
  MessageAssembler assembler_{{"job-a", 1, 2, CellId(0)}, true, allocator_.get()};
  std::string data_;
};

TEST_F(MessageAssemblerTest, PutsChunksOfATupleTogether) {
  for (const uint32_t tensor : {0u, 1u}) {
    for (uint64_t offset = 0; offset < 1600; offset += 500) {
      const absl::StatusOr<MessageAssembler::Result> result =
          Add(Frame(tensor, 2, offset, std::min<uint64_t>(500, 1600 - offset)));
      ASSERT_TRUE(result.ok()) << result.status();
      const bool last = tensor == 1 && offset == 1500;
      ASSERT_EQ(result->message.has_value(), last);
      if (!last) continue;
      const TensorMessage& message = *result->message;
      EXPECT_EQ(message.fence, (Fence{"job-a", 1, 2, 5, 0}));
      EXPECT_EQ(message.micro_batch, MicroBatchId(3));
      ASSERT_EQ(message.tensors.size(), 2u);
      for (const Tensor& tensor_in : message.tensors) {
        EXPECT_EQ(tensor_in.shape(), Shape({20, 20}));
        EXPECT_EQ(std::memcmp(tensor_in.raw(), data_.data(), 1600), 0);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor_in.raw()) % 64, 0u);
      }
    }
  }
  EXPECT_EQ(allocator_->Use().total_current, 0) << "the dropped message gave its memory back";
}

TEST_F(MessageAssemblerTest, TakesTensorsWithoutElements) {
  LinkFrame frame = Frame(0, 1, 0, 0);
  frame.shape = {0, 20};
  const absl::StatusOr<MessageAssembler::Result> result = Add(frame);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->message.has_value());
  EXPECT_EQ(result->message->tensors[0].elements(), 0);
}

TEST_F(MessageAssemblerTest, FindsAFlippedBit) {
  LinkFrame frame = Frame(0, 1, 0, 1600);
  frame.crc32c ^= 1;
  const absl::Status status = Add(frame).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("micro-batch 3"));
}

// A flipped bit of the data's length or tag can make an unknown field of it: damage, and no chunk
// out of order.
TEST_F(MessageAssemblerTest, FindsThatTheDataIsGone) {
  LinkFrame frame = Frame(0, 1, 0, 4);
  frame.shape = {1};
  frame.data_bytes = 0;
  EXPECT_EQ(Add(frame).status().code(), absl::StatusCode::kDataLoss);
  assembler_.Drop();
  EXPECT_EQ(allocator_->Use().total_current, 0);
}

TEST_F(MessageAssemblerTest, RefusesChunksOutOfOrder) {
  EXPECT_EQ(Add(Frame(0, 1, 500, 500)).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Add(Frame(0, 1, 0, 500)).ok());
  EXPECT_EQ(Add(Frame(0, 1, 0, 500)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Add(Frame(0, 1, 1000, 500)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MessageAssemblerTest, RefusesATensorThatChangesOnTheWay) {
  ASSERT_TRUE(Add(Frame(0, 2, 0, 500)).ok());
  LinkFrame other = Frame(0, 2, 500, 500);
  other.shape = {400};
  EXPECT_EQ(Add(other).status().code(), absl::StatusCode::kInvalidArgument);
  other = Frame(0, 2, 500, 500);
  other.micro_batch = 4;
  EXPECT_EQ(Add(other).status().code(), absl::StatusCode::kInvalidArgument);
  other = Frame(1, 2, 0, 500);
  EXPECT_EQ(Add(other).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MessageAssemblerTest, RefusesTheOtherDirectionsKinds) {
  LinkFrame frame = Frame(0, 1, 0, 500);
  for (const MessageKind up : {MessageKind::kGradient, MessageKind::kTiedGradient, MessageKind::kRows}) {
    frame.kind = up;
    EXPECT_EQ(Add(frame).status().code(), absl::StatusCode::kInvalidArgument);
  }
  frame.kind = MessageKind::kTiedValue;
  EXPECT_TRUE(Add(frame).ok());
}

TEST_F(MessageAssemblerTest, DropsAnOlderIncarnationAndRefusesANewerOne) {
  LinkFrame frame = Frame(0, 1, 0, 500);
  frame.generation = 1;
  absl::StatusOr<MessageAssembler::Result> result = Add(frame);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stale);
  EXPECT_FALSE(result->stale_message_ended);
  frame = Frame(0, 1, 500, 1100);
  frame.generation = 1;
  result = Add(frame);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stale_message_ended);
  frame.generation = 3;
  EXPECT_EQ(Add(frame).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MessageAssemblerTest, ReportsWhenMemoryIsUsedUp) {
  std::unique_ptr<Allocator> small = MakeHostAllocator(1024);
  MessageAssembler assembler({"job-a", 1, 2, CellId(0)}, true, small.get());
  LinkFrame frame = Frame(0, 1, 0, 0);
  frame.tensor_bytes = 1600;
  EXPECT_EQ(assembler.Add(frame, {}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MessageAssemblerTest, SurvivesSpoiledFrames) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    LinkFrame frame = Frame(0, 1 + random() % 2, 0, 100 * (random() % 17));
    std::string text = EncodeFrameHead(frame) + data_.substr(0, frame.data_bytes);
    text[random() % std::min<size_t>(text.size(), 60)] = static_cast<char>(random());
    const std::span<const std::byte> piece =
        std::as_bytes(std::span<const char>(text.data(), text.size()));
    const absl::StatusOr<LinkMessage> message = DecodeLinkMessage({&piece, 1});
    if (!message.ok() || !std::holds_alternative<LinkFrame>(*message)) continue;
    // A spoiled shape may ask for gigabytes: the limit refuses it, the process lives.
    std::unique_ptr<Allocator> limited = MakeHostAllocator(1 << 20);
    MessageAssembler assembler({"job-a", 1, 2, CellId(0)}, true, limited.get());
    const auto result = assembler.Add(std::get<LinkFrame>(*message), {&piece, 1});
    if (!result.ok()) {
      EXPECT_NE(result.status().code(), absl::StatusCode::kInternal);
    }
  }
}

// A head of fifty bytes took memory for 16 GiB, before a byte of the tensor was there.
TEST_F(MessageAssemblerTest, AMessageLargerThanTheBoundaryCarriesTakesNoMemory) {
  MessageAssembler assembler({"job-a", 1, 2, CellId(0)}, true, allocator_.get(), 3200);
  const auto add = [&](const LinkFrame& frame) {
    const std::span<const std::byte> piece =
        std::as_bytes(std::span<const char>(data_.data(), data_.size()));
    return assembler.Add(frame, {&piece, 1}).status();
  };
  LinkFrame huge = Frame(0, 1, 0, 500);
  huge.shape = {int64_t{1} << 32};
  huge.tensor_bytes = uint64_t{1} << 34;
  const absl::Status refused = add(huge);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("step 5 micro-batch 3 tensor 0 offset 0: makes a message of 17179869184 "
                        "bytes, and this boundary has none of more than 3200"));
  EXPECT_EQ(allocator_->Use().total_peak, 0);
}

// Tensors that each would pass.
TEST_F(MessageAssemblerTest, ThreeTensorsMayNotMakeAMessageTooLarge) {
  MessageAssembler assembler({"job-a", 1, 2, CellId(0)}, true, allocator_.get(), 3200);
  const std::span<const std::byte> piece =
      std::as_bytes(std::span<const char>(data_.data(), data_.size()));
  for (uint32_t message = 0; message < 2; ++message) {  // what was counted goes with its message
    for (uint32_t tensor = 0; tensor < 2; ++tensor) {
      LinkFrame frame = Frame(tensor, 2, 0, 1600);
      frame.tensor_bytes = 1600;
      EXPECT_TRUE(assembler.Add(frame, {&piece, 1}).ok()) << message << ", " << tensor;
    }
  }
  for (uint32_t tensor = 0; tensor < 3; ++tensor) {
    LinkFrame frame = Frame(tensor, 3, 0, 1600);
    frame.tensor_bytes = 1600;
    EXPECT_EQ(assembler.Add(frame, {&piece, 1}).ok(), tensor < 2) << tensor;
  }
}

}  // namespace
}  // namespace stagecoach
