#include "stage/tensor/tensor.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

constexpr MemoryKind kKind = MemoryKind::kActivations;
constexpr int kIndex = static_cast<int>(kKind);

TEST(HostAllocator, CountsBytesByKindAndRemembersPeaks) {
  auto allocator = MakeHostAllocator(0);
  {
    auto a = MakeTensor(*allocator, kKind, DType::kF32, Shape{16, 16});
    auto b = MakeTensor(*allocator, MemoryKind::kGradients, DType::kF32, Shape{1});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(allocator->Use().current[kIndex], 1024);
    EXPECT_EQ(allocator->Use().total_current, 1024 + 64);
  }
  EXPECT_EQ(allocator->Use().total_current, 0);
  EXPECT_EQ(allocator->Use().total_peak, 1024 + 64);
  EXPECT_EQ(allocator->Use().cached, 1024 + 64);
  allocator->ResetPeak();
  EXPECT_EQ(allocator->Use().total_peak, 0);
  allocator->ReleaseCached();
  EXPECT_EQ(allocator->Use().cached, 0);
}

TEST(HostAllocator, GivesTheSameMemoryBackForTheSameSize) {
  auto allocator = MakeHostAllocator(0);
  std::byte* first = (*allocator->Allocate(5000, kKind))->data();
  EXPECT_EQ((*allocator->Allocate(5000, kKind))->data(), first);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
}

TEST(HostAllocator, RefusesOverTheLimitAndNamesTheNumbers) {
  auto allocator = MakeHostAllocator(4096);
  auto held = allocator->Allocate(4096, kKind);
  ASSERT_TRUE(held.ok());
  auto refused = allocator->Allocate(64, MemoryKind::kWorkspace);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().ToString().find(
                "workspace: 64 bytes asked, 4096 in use, limit 4096 (--memory-limit-bytes of "
                "stagecoach-stage, --memory-per-stage of stagecoach)"),
            std::string::npos)
      << refused.status();
  held->reset();
  EXPECT_TRUE(allocator->Allocate(2048, kKind).ok()) << "the cache must make room for another size";
}

TEST(HostAllocator, LetsBuffersOutliveIt) {
  std::shared_ptr<Buffer> buffer;
  {
    auto allocator = MakeHostAllocator(0);
    buffer = *allocator->Allocate(64, kKind);
  }
  buffer->data()[0] = std::byte{1};
}

TEST(Tensor, SharesItsBufferWhenReshaped) {
  auto allocator = MakeHostAllocator(0);
  Tensor tensor = *MakeTensor(*allocator, kKind, DType::kF32, Shape{2, 3});
  tensor.data<float>()[5] = 4.0f;
  EXPECT_EQ(tensor.Reshaped(Shape{6}).data<float>()[5], 4.0f);
  EXPECT_EQ(tensor.bytes(), 24);
  EXPECT_DEATH(tensor.Reshaped(Shape{7}), "CHECK failed");
  EXPECT_DEATH(tensor.data<double>(), "CHECK failed");
}

TEST(Tensor, PaddedRowsHaveAStrideAndAreNoDenseArray) {
  const auto allocator = MakeHostAllocator(0);
  const Tensor tensor = *MakePaddedTensor(*allocator, kKind, DType::kF32, Shape{4, 5}, 8);
  EXPECT_TRUE(tensor.padded());
  EXPECT_EQ(tensor.row_stride(), 8);
  EXPECT_EQ(tensor.elements(), 20);
  EXPECT_EQ(allocator->Use().total_current, 4 * 8 * 4);
  tensor.rows<float>()[3 * 8 + 4] = 1.0f;  // the last one
  EXPECT_DEATH(tensor.data<float>(), "padded rows");
  EXPECT_DEATH(tensor.raw(), "padded rows");
  EXPECT_DEATH(tensor.span(), "padded rows");
  EXPECT_DEATH(tensor.Reshaped(Shape{20}), "padded rows");
  EXPECT_DEATH(tensor.Slice(0, Shape{5}), "padded rows");
  const Tensor dense = *MakePaddedTensor(*allocator, kKind, DType::kF32, Shape{4, 5}, 5);
  EXPECT_FALSE(dense.padded());
  EXPECT_EQ(dense.row_stride(), 5);
  EXPECT_EQ(dense.rows<float>(), dense.data<float>());
}

TEST(Tensor, ASliceIsAViewThatKeepsTheWhole) {
  auto allocator = MakeHostAllocator(0);
  Tensor whole = *MakeTensor(*allocator, kKind, DType::kF64, Shape{5});
  for (int i = 0; i < 5; ++i) whole.data<double>()[i] = i;
  const Tensor slice = whole.Slice(3, Shape{1, 2});
  EXPECT_EQ(slice.shape(), (Shape{1, 2}));
  EXPECT_EQ(slice.dtype(), DType::kF64);
  EXPECT_EQ(slice.data<double>()[1], 4.0);
  slice.data<double>()[0] = 7.0;
  EXPECT_EQ(whole.data<double>()[3], 7.0);
  EXPECT_EQ(slice.Slice(1, Shape{1}).data<double>()[0], 4.0) << "a view of a view";
  EXPECT_EQ(whole.Slice(5, Shape{0}).bytes(), 0);
  EXPECT_DEATH(whole.Slice(4, Shape{2}), "CHECK failed");
  EXPECT_DEATH(whole.Slice(-1, Shape{1}), "CHECK failed");
  EXPECT_DEATH(slice.Slice(0, Shape{3}), "CHECK failed") << "no way back to the whole";
  EXPECT_EQ(allocator->Use().total_current, 64);
  whole.Reset();
  EXPECT_EQ(allocator->Use().total_current, 64) << "the view holds it";
}

TEST(Tensor, AnUnownedOneIsTheSameArrayAndKeepsNothing) {
  const auto allocator = MakeHostAllocator(0);
  const Tensor padded =
      *MakePaddedTensor(*allocator, MemoryKind::kActivations, DType::kF32, {2, 3}, 4);
  const Tensor dense = *MakeTensor(*allocator, MemoryKind::kActivations, DType::kBF16, {2, 3});
  for (const Tensor& tensor : {padded, dense}) {
    const long held = tensor.buffer().use_count();
    const Tensor same = UnownedTensor(tensor.rows_raw(), tensor.dtype(), tensor.shape(),
                                      tensor.padded() ? tensor.row_stride() : 0);
    EXPECT_EQ(tensor.buffer().use_count(), held);
    EXPECT_EQ(same.rows_raw(), tensor.rows_raw());
    EXPECT_EQ(same.shape(), tensor.shape());
    EXPECT_EQ(same.dtype(), tensor.dtype());
    EXPECT_EQ(same.padded(), tensor.padded());
    EXPECT_EQ(same.row_stride(), tensor.row_stride());
    EXPECT_NE(same.buffer(), tensor.buffer());
  }
}

}  // namespace
}  // namespace stagecoach
