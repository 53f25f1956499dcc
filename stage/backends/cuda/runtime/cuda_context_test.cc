// On a machine without a card: what a user reads. With one: a copy there and back, and a limit.
#include "stage/backends/cuda/runtime/cuda_context.h"

#include <chrono>
#include <cstring>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/runtime/cuda_device_api.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

bool HaveCard() {
  int count = 0;
  return MakeCudaDeviceApi()->DeviceCount(&count) == device_code::kSuccess && count > 0;
}

TEST(CudaContext, SaysWhyThereIsNoCardAndWhatToDo) {
  if (HaveCard()) GTEST_SKIP() << "this machine has a card";
  const auto context = CudaContext::Open(0, 0);
  EXPECT_EQ(context.status().code(), absl::StatusCode::kUnavailable) << context.status();
  EXPECT_THAT(std::string(context.status().message()), HasSubstr("device cuda:0: "));
  EXPECT_THAT(std::string(context.status().message()), HasSubstr("use --device=cpu"));
}

TEST(CudaContext, NamesTheCardsThereAre) {
  if (!HaveCard()) GTEST_SKIP() << "not run: no CUDA device";
  const auto context = CudaContext::Open(1000, 0);
  EXPECT_EQ(context.status().code(), absl::StatusCode::kInvalidArgument) << context.status();
  EXPECT_THAT(std::string(context.status().message()), HasSubstr("cuda:0"));
}

TEST(CudaContext, CopiesThereAndBack) {
  if (!HaveCard()) GTEST_SKIP() << "not run: no CUDA device";
  auto context = CudaContext::Open(0, 0);
  ASSERT_TRUE(context.ok()) << context.status();
  CudaContext& card = **context;
  const Shape shape{3, 1000};
  Tensor host = *MakeTensor(card.host_allocator(), MemoryKind::kActivations, DType::kF32, shape);
  Tensor back = *MakeTensor(card.host_allocator(), MemoryKind::kActivations, DType::kF32, shape);
  for (int i = 0; i < 3000; ++i) host.data<float>()[i] = static_cast<float>(i);
  std::promise<void> arrived;
  card.staging().OnDone([&arrived] { arrived.set_value(); });
  const absl::StatusOr<Tensor> device = card.staging().FromLink(host);
  ASSERT_TRUE(device.ok()) << device.status();
  const absl::StatusOr<uint64_t> copy = card.staging().ToLink(*device, back);
  ASSERT_TRUE(copy.ok()) << copy.status();
  ASSERT_EQ(arrived.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(card.staging().Done(*copy).value());
  EXPECT_EQ(std::memcmp(host.raw(), back.raw(), 12000), 0);
  EXPECT_TRUE(card.Synchronize().ok());
}

TEST(CudaContext, KeepsToItsLimit) {
  if (!HaveCard()) GTEST_SKIP() << "not run: no CUDA device";
  auto context = CudaContext::Open(0, 64 << 20);
  ASSERT_TRUE(context.ok()) << context.status();
  const auto refused = (*context)->allocator().Allocate(48 << 20, MemoryKind::kParameters).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("workspace 33554432"));
  EXPECT_TRUE((*context)->ok()) << "running out of memory is no fault of the card";
}

}  // namespace
}  // namespace stagecoach
