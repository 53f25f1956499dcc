#include <bit>
#include <cmath>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/ids.h"
#include "base/numbers/bfloat16.h"
#include "base/numbers/dtype.h"
#include "base/numbers/random.h"
#include "base/numbers/shape.h"
#include "base/threads/bounded_queue.h"
#include "base/threads/clock.h"
#include "base/threads/task_thread.h"
#include "base/threads/thread.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

// Known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomNormal, HasMeanZeroAndVarianceOne) {
  const RandomStream stream{.seed = 7, .layer = 3, .operation = 1};
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = RandomNormal(stream, i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.02);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
}

TEST(PermuteIndex, IsAPermutationForEverySmallSize) {
  for (uint64_t size = 1; size < 70; ++size) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(PermuteIndex(11, 2, size, i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST(PermuteIndex, DiffersBetweenEpochsAndSeeds) {
  int same_epoch = 0, same_seed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same_epoch += PermuteIndex(1, 0, 1000, i) == PermuteIndex(1, 1, 1000, i);
    same_seed += PermuteIndex(1, 0, 1000, i) == PermuteIndex(2, 0, 1000, i);
  }
  EXPECT_LT(same_epoch, 20);
  EXPECT_LT(same_seed, 20);
}

TEST(Crc32c, GivesTheCheckValueAndGoesOnFromAPrefix) {
  const std::string text = "123456789";
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(Crc32c(bytes), 0xe3069283u);
  EXPECT_EQ(Crc32c(bytes.subspan(4), Crc32c(bytes.first(4))), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Sha256, GivesThePublishedDigestOfAbc) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Shape, RefusesOverflowNegativeAndHighRank) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
  EXPECT_FALSE(CheckedElements({int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_FALSE(CheckedElements({-1}).ok());
  EXPECT_FALSE(CheckedElements(std::vector<int64_t>(9, 1)).ok());
}

TEST(DType, ParsesItsOwnNames) {
  for (DType dtype :
       {DType::kF32, DType::kBF16, DType::kI32, DType::kU8, DType::kF64, DType::kI64}) {
    EXPECT_EQ(*ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_FALSE(ParseDType("F8_E4M3").ok());
}

TEST(BoundedQueue, RefusesWhenFullAndLeavesTheElementIntact) {
  BoundedQueue<std::string> queue(1);
  EXPECT_TRUE(queue.TryPush("first"));
  std::string second = "second";
  EXPECT_FALSE(queue.TryPush(std::move(second)));
  EXPECT_EQ(second, "second");
  EXPECT_EQ(queue.TryPop(), "first");
  EXPECT_EQ(queue.TryPop(), std::nullopt);
}

TEST(BoundedQueue, DrainsAfterCloseAndWakesAWaiter) {
  BoundedQueue<int> queue(4);
  ASSERT_TRUE(queue.TryPush(1));
  std::optional<int> first, second;
  Thread popper("popper", [&] {
    first = queue.PopWithin(std::chrono::hours(1));
    second = queue.PopWithin(std::chrono::hours(1));
  });
  queue.Close();
  popper.Join();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, std::nullopt);
  EXPECT_FALSE(queue.TryPush(2));
}

// Symptom: after an hour without a request, `checkpoints` and `export` hung and then were refused,
// until the coordinator was restarted. Cause: the worker took a wait that ended without a task for
// the end of its queue, and returned.
TEST(TaskThread, AnIdleTimeDoesNotEndIt) {
  TaskThread thread("idle", 4, std::chrono::nanoseconds(1));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (thread.idle_turns() < 3 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_GE(thread.idle_turns(), 3u) << "it gave up waiting";
  std::promise<void> ran;
  ASSERT_TRUE(thread.TryPost([&] { ran.set_value(); }));
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(TaskThread, RunsWhatItTookBeforeItCloses) {
  std::vector<int> ran;
  TaskThread thread("closing", 8);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(thread.TryPost([&ran, i] { ran.push_back(i); }));
  thread.Close();
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_FALSE(thread.TryPost([] {})) << "nobody is left to run it";
}

TEST(Fence, OrdersByTermThenGeneration) {
  const Fence old_term{.job = "a", .term = 1, .generation = 9};
  const Fence new_term{.job = "a", .term = 2, .generation = 1};
  EXPECT_TRUE(CompareIncarnation(old_term, new_term) < 0);
  EXPECT_TRUE(CompareIncarnation(new_term, new_term) == 0);
}

TEST(Annotate, KeepsTheCodeAndAddsContext) {
  const absl::Status status = Annotate(absl::UnavailableError("peer closed"), "link 2 -> 3");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "link 2 -> 3: peer closed");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(StatusMacros, PassValuesOnAndErrorsUp) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_EQ(Quarter(7).status().message(), "odd");
}

TEST(Bfloat16, RoundsToNearestAndTiesToEven) {
  const auto bits = [](uint32_t wide) { return Bfloat16(std::bit_cast<float>(wide)).bits; };
  EXPECT_EQ(bits(0x3f800000), 0x3f80) << "1";
  EXPECT_EQ(bits(0x3f807fff), 0x3f80) << "below the middle";
  EXPECT_EQ(bits(0x3f808000), 0x3f80) << "the middle, to even";
  EXPECT_EQ(bits(0x3f818000), 0x3f82) << "the middle, to even";
  EXPECT_EQ(bits(0x3f808001), 0x3f81) << "above the middle";
  EXPECT_EQ(bits(0xbf808001), 0xbf81);
  EXPECT_EQ(bits(0x7f7fffff), 0x7f80) << "the largest float is nearer to infinity";
  EXPECT_EQ(bits(0xff800000), 0xff80) << "infinity stays";
  EXPECT_EQ(bits(0x80000000), 0x8000) << "minus zero";
  EXPECT_EQ(bits(0x00008001), 0x0001) << "subnormal";
  for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xffc00000u}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(std::bit_cast<float>(nan)))));
  }
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const float wide = std::bit_cast<float>(i << 16);
    if (!std::isnan(wide)) {
      EXPECT_EQ(Bfloat16(wide).bits, i) << "what fits comes back";
    }
  }
}

}  // namespace
}  // namespace stagecoach
