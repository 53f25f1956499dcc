#include "stage/link/link.h"

#include <thread>

#include "base/threads/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/link/testing/faulty_link.h"
#include "stage/link/testing/in_process_connector.h"
#include "stage/link/testing/in_process_link.h"

namespace stagecoach {
namespace {

TensorMessage Message(int micro_batch) {
  TensorMessage message;
  message.fence = {.job = "a", .term = 1, .generation = 1};
  message.micro_batch = MicroBatchId(micro_batch);
  return message;
}

TEST(InProcessLink, RefusesSendWhenFullAndLeavesTheMessageIntact) {
  auto [up, down] = MakeInProcessLinkPair({.capacity_messages = 2});
  EXPECT_TRUE(up->TrySend(Message(0)));
  EXPECT_TRUE(up->TrySend(Message(1)));
  TensorMessage third = Message(2);
  EXPECT_FALSE(up->TrySend(std::move(third)));
  EXPECT_EQ(third.micro_batch, MicroBatchId(2));
  EXPECT_EQ(third.fence.job, "a");
  EXPECT_EQ(up->statistics().inflight_messages, 2u);
  EXPECT_EQ(down->TryReceive()->micro_batch, MicroBatchId(0));
  EXPECT_TRUE(up->TrySend(std::move(third)));
  EXPECT_EQ(down->TryReceive()->micro_batch, MicroBatchId(1));
  EXPECT_EQ(down->TryReceive()->micro_batch, MicroBatchId(2));
  EXPECT_FALSE(down->TryReceive().has_value());
}

TEST(InProcessLink, DirectionsDoNotShareCapacity) {
  auto [up, down] = MakeInProcessLinkPair({.capacity_messages = 1});
  EXPECT_TRUE(up->TrySend(Message(0)));
  EXPECT_TRUE(down->TrySend(Message(7)));
  EXPECT_EQ(up->TryReceive()->micro_batch, MicroBatchId(7));
  EXPECT_EQ(down->TryReceive()->micro_batch, MicroBatchId(0));
}

TEST(InProcessLink, CountsPayloadOfWhatItCarried) {
  auto allocator = MakeHostAllocator(0);
  auto [up, down] = MakeInProcessLinkPair({});
  TensorMessage message = Message(0);
  auto tensor = MakeTensor(*allocator, MemoryKind::kActivations, DType::kF32, Shape{3, 4});
  ASSERT_TRUE(tensor.ok());
  message.tensors.push_back(*tensor);
  ASSERT_TRUE(up->TrySend(std::move(message)));
  ASSERT_TRUE(down->TryReceive().has_value());
  EXPECT_EQ(up->statistics().sent_bytes, 48u);
  EXPECT_EQ(up->statistics().sent_messages, 1u);
  EXPECT_EQ(down->statistics().received_bytes, 48u);
  EXPECT_EQ(down->statistics().sent_bytes, 0u);
}

TEST(InProcessLink, WakesTheReceiverOnAMessageAndTheSenderOnRoom) {
  auto [up, down] = MakeInProcessLinkPair({.capacity_messages = 1});
  int up_calls = 0, down_calls = 0;
  up->SetReadyCallback([&] { ++up_calls; });
  down->SetReadyCallback([&] { ++down_calls; });
  EXPECT_TRUE(up->TrySend(Message(0)));
  EXPECT_EQ(down_calls, 1);
  EXPECT_EQ(up_calls, 0);
  EXPECT_TRUE(down->TryReceive().has_value());
  EXPECT_EQ(up_calls, 1);
}

TEST(InProcessLink, CloseKeepsTheFirstReasonAndTellsThePeerThatItsLinkBroke) {
  auto [up, down] = MakeInProcessLinkPair({});
  int calls = 0;
  up->SetReadyCallback([&] { ++calls; });
  EXPECT_TRUE(up->TrySend(Message(0)));
  down->Close(absl::DeadlineExceededError("step 17 did not move"));
  down->Close(absl::InternalError("later"));
  up->Close(absl::InternalError("later"));
  EXPECT_GE(calls, 1);
  EXPECT_EQ(down->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(up->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(up->status().message()), testing::HasSubstr("step 17 did not move"));
  EXPECT_FALSE(up->TrySend(Message(1)));
  EXPECT_FALSE(down->TryReceive().has_value()) << "a closed link delivers nothing more";
}

TEST(InProcessLink, DestroyedPeerIsABrokenLink) {
  auto [up, down] = MakeInProcessLinkPair({});
  down.reset();
  EXPECT_EQ(up->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(up->TrySend(Message(0)));
}

TEST(InProcessLink, KeepsTheOrderBetweenTwoThreads) {
  constexpr int kMessages = 2000;
  auto pair = MakeInProcessLinkPair({.capacity_messages = 3});
  Link* up = pair.first.get();
  Thread sender("sender", [up] {
    for (int i = 0; i < kMessages; ++i) {
      while (!up->TrySend(Message(i))) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kMessages; ++i) {
    std::optional<TensorMessage> message;
    while (!(message = pair.second->TryReceive()).has_value()) std::this_thread::yield();
    ASSERT_EQ(message->micro_batch, MicroBatchId(i));
  }
  sender.Join();
}

TEST(InProcessConnector, EndsMeetByBoundaryInEitherOrder) {
  auto allocator = MakeHostAllocator(0);
  InProcessConnector connector(LinkOptions{});
  const BoundaryId first{"a", 1, 1, CellId(0)}, second{"a", 1, 1, CellId(1)};
  auto down_first = connector.Accept(first, "", *allocator, kAnyMessageBytes);
  auto up_second = connector.Dial("ignored:1", second, *allocator, kAnyMessageBytes);
  auto up_first = connector.Dial("ignored:1", first, *allocator, kAnyMessageBytes);
  auto down_second = connector.Accept(second, "", *allocator, kAnyMessageBytes);
  EXPECT_TRUE(up_first->TrySend(Message(1)));
  EXPECT_TRUE(up_second->TrySend(Message(2)));
  EXPECT_EQ(down_first->TryReceive()->micro_batch, MicroBatchId(1));
  EXPECT_EQ(down_second->TryReceive()->micro_batch, MicroBatchId(2));
}

TEST(InProcessConnector, ASecondDialOfABoundaryIsANewLink) {
  auto allocator = MakeHostAllocator(0);
  InProcessConnector connector(LinkOptions{});
  const BoundaryId boundary{"a", 1, 1, CellId(0)};
  auto abandoned = connector.Dial("", boundary, *allocator, kAnyMessageBytes);
  auto up = connector.Dial("", boundary, *allocator, kAnyMessageBytes);
  auto down = connector.Accept(boundary, "", *allocator, kAnyMessageBytes);
  EXPECT_FALSE(abandoned->status().ok());
  EXPECT_TRUE(up->TrySend(Message(1)));
  EXPECT_TRUE(down->TryReceive().has_value());
}

TEST(BoundaryId, NamesItself) {
  EXPECT_EQ((BoundaryId{"a", 1, 2, CellId(0)}).ToString(),
            "job a term 1 generation 2 cells 0 -> 1");
}

}  // namespace
}  // namespace stagecoach
