#include "stage/cell/host_blocks.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace stagecoach {
namespace {

TEST(HostBlocks, ATensorLargerThanABlockIsCopiedInPiecesAndEachElementOnce) {
  const std::unique_ptr<Backend> backend = MakeReferenceBackend({});
  const Shape shape = {2, kHostBlock / 2 + 3};
  const Tensor tensor =
      MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kI32, shape).value();
  std::vector<int64_t> pieces;
  ASSERT_TRUE(CopyBlocks<int32_t>(*backend, tensor, [&](int64_t first, std::span<int32_t> values) {
                pieces.push_back(std::ssize(values));
                for (size_t i = 0; i < values.size(); ++i) {
                  values[i] = static_cast<int32_t>(first) + static_cast<int32_t>(i);
                }
              }).ok());
  EXPECT_EQ(pieces, (std::vector<int64_t>{kHostBlock, 6}));
  for (int64_t i = 0; i < tensor.elements(); ++i) ASSERT_EQ(tensor.data<int32_t>()[i], i);
}

}  // namespace
}  // namespace stagecoach
