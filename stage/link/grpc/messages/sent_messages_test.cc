#include "stage/link/grpc/messages/sent_messages.h"

#include <gtest/gtest.h>

#include "stage/link/grpc/messages/read_repeats.h"

namespace stagecoach {
namespace {

class SentMessagesTest : public ::testing::Test {
 protected:
  // Of two chunks: 16 and 8 bytes.
  void Add(int micro_batch) {
    TensorMessage message;
    message.micro_batch = MicroBatchId(micro_batch);
    message.tensors.push_back(
        *MakeTensor(*allocator_, MemoryKind::kActivations, DType::kF32, Shape{6}));
    sent_.Add(std::move(message));
  }
  // Of the next chunk: "micro-batch.offset", or "-".
  std::string Take() {
    const std::optional<SentMessages::Chunk> chunk = sent_.TakeChunk();
    if (!chunk.has_value()) return "-";
    if (!chunk->has_checksum) sent_.KeepChecksum(*chunk, ++checksum_);
    last_ = *chunk;
    return absl::StrCat(chunk->frame.micro_batch, ".", chunk->frame.offset);
  }

  const std::unique_ptr<Allocator> allocator_ = MakeHostAllocator(0);
  SentMessages sent_{16};
  SentMessages::Chunk last_;
  uint32_t checksum_ = 0;
};

TEST_F(SentMessagesTest, WritesWhatThePeerHasRoomForAndKeepsItUntilItIsTaken) {
  for (int i = 0; i < 3; ++i) Add(i);
  EXPECT_EQ(Take(), "-") << "no hello yet";
  sent_.GiveRoom(2);
  for (const char* const chunk : {"0.0", "0.16", "1.0", "1.16", "-"}) EXPECT_EQ(Take(), chunk);
  EXPECT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_.SetTaken(1)->size(), 1u);
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_EQ(Take(), "2.0");
  EXPECT_EQ(sent_.SetTaken(3).status().code(), absl::StatusCode::kInvalidArgument) << "2 is begun";
  EXPECT_EQ(sent_.SetTaken(0).status().code(), absl::StatusCode::kInvalidArgument) << "it falls";
}

TEST_F(SentMessagesTest, GoesBackAndWritesTheSameChecksumsAgain) {
  for (int i = 0; i < 2; ++i) Add(i);
  sent_.GiveRoom(2);
  for (const char* const chunk : {"0.0", "0.16", "1.0"}) EXPECT_EQ(Take(), chunk);
  ASSERT_TRUE(sent_.GoBackTo(0).ok());
  EXPECT_EQ(Take(), "0.0");
  EXPECT_EQ(last_.frame.crc32c, 1u);
  EXPECT_EQ(Take(), "0.16");
  EXPECT_EQ(last_.frame.crc32c, 2u);
  EXPECT_FALSE(last_.ends_message) << "it ended before: an observer is told once";
  EXPECT_EQ(Take(), "1.0");
  EXPECT_EQ(last_.frame.crc32c, 3u);
  EXPECT_EQ(Take(), "1.16");
  EXPECT_TRUE(last_.ends_message);
  ASSERT_TRUE(sent_.GoBackTo(2).ok()) << "all of it came";
  EXPECT_EQ(Take(), "-");
  EXPECT_FALSE(sent_.GoBackTo(1).ok()) << "it falls";
  EXPECT_FALSE(sent_.GoBackTo(3).ok()) << "nothing was sent";
}

// A credit that was read while another thread closed the link took from an empty queue.
TEST_F(SentMessagesTest, ReleasedItHasNothingThatACreditCouldTake) {
  Add(0);
  sent_.GiveRoom(2);
  EXPECT_EQ(Take(), "0.0");
  EXPECT_EQ(Take(), "0.16");
  EXPECT_EQ(sent_.Release().size(), 1u);
  EXPECT_EQ(sent_.size(), 0u);
  const auto let_go = sent_.SetTaken(1);
  EXPECT_TRUE(!let_go.ok() || let_go->empty());
  EXPECT_EQ(Take(), "-");
}

TEST(ReadRepeats, ABurstOfDamagedFramesIsOneRound) {
  ReadRepeats repeats;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(repeats.OnDamage(1000, 0));
  EXPECT_EQ(repeats.round(), 1u);
  EXPECT_TRUE(repeats.OnDamage(20, 0)) << "it may have been the answer";
  EXPECT_EQ(repeats.round(), 2u);
}

TEST(ReadRepeats, DamageBehindThreeRoundsWithoutProgressEndsIt) {
  ReadRepeats repeats;
  for (uint32_t round = 1; round <= 3; ++round) {
    EXPECT_TRUE(repeats.OnDamage(1000, 5));
    EXPECT_TRUE(repeats.ignores_frames());
    EXPECT_TRUE(repeats.OnAnswer(round).ok());
    EXPECT_FALSE(repeats.ignores_frames());
  }
  EXPECT_TRUE(repeats.OnDamage(1000, 6)) << "one came whole";
  EXPECT_TRUE(repeats.OnAnswer(4).ok());
  EXPECT_TRUE(repeats.OnDamage(1000, 6));
  EXPECT_TRUE(repeats.OnDamage(20, 6));
  EXPECT_FALSE(repeats.OnDamage(20, 6));
}

TEST(ReadRepeats, SaysItOnceAndAgainUntilItIsAnswered) {
  ReadRepeats repeats;
  EXPECT_FALSE(repeats.TakeDue());
  EXPECT_TRUE(repeats.OnDamage(20, 0));
  EXPECT_TRUE(repeats.TakeDue());
  EXPECT_FALSE(repeats.TakeDue());
  repeats.SayAgain();
  EXPECT_TRUE(repeats.TakeDue());
  repeats.SayAgain();
  EXPECT_TRUE(repeats.OnAnswer(1).ok());
  EXPECT_FALSE(repeats.TakeDue()) << "answered meanwhile";
  repeats.SayAgain();
  EXPECT_FALSE(repeats.TakeDue());
  EXPECT_FALSE(repeats.OnAnswer(2).ok()) << "nobody asked";
}

}  // namespace
}  // namespace stagecoach
