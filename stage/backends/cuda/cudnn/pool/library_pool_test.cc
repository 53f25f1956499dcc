#include "stage/backends/cuda/cudnn/pool/library_pool.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/testing/host_pools.h"

namespace stagecoach::cudnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// One sample of 2 x 4 pixels with 2 channels, windows of 2 x 2 side by side.
WindowShape TwoByTwo() { return {1, 2, 4, 2, 1, 2, 2, 2, 2, 2, 0, 0, 1, 1}; }
// The same image, windows of 1 x 3 that move by one, with padding.
WindowShape OneByThree() { return {1, 2, 4, 2, 2, 4, 1, 3, 1, 1, 0, 1, 1, 1}; }

// Averages by host graphs, and tensors of numbers that BF16 holds.
class PoolBed {
 public:
  LibraryPool Make(int64_t workspace_bytes = 1000) {
    fixed.resize(static_cast<size_t>(workspace_bytes));
    return LibraryPool(std::make_unique<HostPools>(&log), {fixed.data(), workspace_bytes});
  }
  Tensor Numbers(DType dtype, const std::vector<float>& values) {
    auto tensor = MakeTensor(*tensors, MemoryKind::kActivations, dtype,
                             {static_cast<int64_t>(values.size())});
    CHECK_OK(tensor.status());
    for (size_t i = 0; i < values.size(); ++i) {
      dtype == DType::kF32 ? void(tensor->data<float>()[i] = values[i])
                           : void(tensor->data<Bfloat16>()[i] = Bfloat16(values[i]));
    }
    return *std::move(tensor);
  }
  AveragePoolArgs Args(PoolPass pass, const WindowShape& shape, DType dtype = DType::kF32) {
    const int64_t places = shape.places_height * shape.places_width * shape.channels;
    std::vector<float> numbers(static_cast<size_t>(places));
    for (int64_t i = 0; i < places; ++i) numbers[i] = static_cast<float>(4 * (i + 1));
    return {.pass = pass,
            .shape = shape,
            .image = Numbers(dtype, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60, 7, 70, 8, 80}),
            .places = Numbers(dtype, numbers)};
  }

  PoolLog log;
  std::vector<std::byte> fixed;
  std::unique_ptr<Allocator> tensors = MakeHostAllocator(0);
};

std::vector<float> Numbered(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(tensor.dtype() == DType::kF32
                         ? tensor.data<float>()[i]
                         : static_cast<float>(tensor.data<Bfloat16>()[i]));
  }
  return values;
}

TEST(LibraryPool, ForwardIsWhatIsCountedByHand) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    PoolBed bed;
    LibraryPool pool = bed.Make();
    const AveragePoolArgs args = bed.Args(PoolPass::kForward, TwoByTwo(), dtype);
    EXPECT_TRUE(*pool.Run(args));
    EXPECT_THAT(Numbered(args.places), ElementsAre(3.5f, 35, 5.5f, 55));
  }
}

TEST(LibraryPool, PaddingCountsWhereItIsToCount) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  AveragePoolArgs args = bed.Args(PoolPass::kForward, OneByThree());
  EXPECT_TRUE(*pool.Run(args));
  EXPECT_THAT(Numbered(args.places),
              ElementsAre(1.5f, 15, 2, 20, 3, 30, 3.5f, 35, 5.5f, 55, 6, 60, 7, 70, 7.5f, 75));
  args.count_padding = true;
  EXPECT_TRUE(*pool.Run(args));
  EXPECT_THAT(Numbered(args.places), ElementsAre(1, 10, 2, 20, 3, 30, 7.0f / 3, 70.0f / 3,
                                                 11.0f / 3, 110.0f / 3, 6, 60, 7, 70, 5, 50));
}

TEST(LibraryPool, AGradientIsWhatIsCountedByHandAndWrites) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  const AveragePoolArgs args = bed.Args(PoolPass::kGradient, TwoByTwo());
  EXPECT_TRUE(*pool.Run(args));
  EXPECT_THAT(Numbered(args.image), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
}

TEST(LibraryPool, AGradientThatSumsIsLeftToOwnKernelsUntouched) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  const AveragePoolArgs args = bed.Args(PoolPass::kGradient, OneByThree());
  const std::vector<float> before = Numbered(args.image);
  EXPECT_FALSE(*pool.Run(args));
  EXPECT_EQ(Numbered(args.image), before);
  EXPECT_THAT(bed.log.built, IsEmpty());
  EXPECT_THAT(pool.TakeUsed(), ElementsAre(HasSubstr("own pool kernels, as windows do not tile")));
}

TEST(LibraryPool, APlanIsMadeOnceForAProblem) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kForward, TwoByTwo())));
    EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kForward, TwoByTwo(), DType::kBF16)));
    EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kGradient, TwoByTwo())));
  }
  EXPECT_THAT(bed.log.built, SizeIs(3));
  EXPECT_EQ(bed.log.runs, 9);
}

TEST(LibraryPool, ARefusalLeavesTheProblemToOwnKernelsAndSaysWhyOnce) {
  PoolBed bed;
  bed.log.build = absl::UnimplementedError("no engine\nengine 1: ...\nengine 2: ...");
  LibraryPool pool = bed.Make();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(*pool.Run(bed.Args(PoolPass::kForward, TwoByTwo())));
  EXPECT_THAT(bed.log.built, SizeIs(1)) << "it is not asked again";
  EXPECT_THAT(pool.TakeUsed(), ElementsAre("own pool kernels, as it is not supported: no engine"));
  EXPECT_THAT(pool.TakeUsed(), IsEmpty());
}

TEST(LibraryPool, TellsTheEnginesThatWereUsed) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kForward, TwoByTwo())));
  EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kGradient, TwoByTwo())));
  EXPECT_THAT(pool.TakeUsed(), ElementsAre("cuDNN average pool, engine of plain loops"));
  EXPECT_THAT(pool.TakeUsed(), IsEmpty());
}

TEST(LibraryPool, NoPlanMayTakeMoreThanTheFixedWorkspace) {
  PoolBed bed;
  LibraryPool pool = bed.Make();
  bed.log.workspace_bytes = 1000;
  EXPECT_TRUE(*pool.Run(bed.Args(PoolPass::kForward, TwoByTwo())));
  bed.log.workspace_bytes = 1001;
  EXPECT_FALSE(*pool.Run(bed.Args(PoolPass::kGradient, TwoByTwo())));
  EXPECT_THAT(pool.TakeUsed(),
              testing::Contains(HasSubstr("takes 1001 bytes of workspace, there are 1000")));
  EXPECT_THAT(bed.log.limits, ElementsAre(1000, 1000));
}

TEST(LibraryPool, OtherErrorsAreNotHiddenByOwnKernels) {
  PoolBed build, run;
  build.log.build = absl::InternalError("a file of cuDNN is missing");
  LibraryPool broken = build.Make(), failing = run.Make();
  EXPECT_EQ(broken.Run(build.Args(PoolPass::kForward, TwoByTwo())).status(), build.log.build);
  run.log.run = absl::InternalError("execution failed");
  EXPECT_EQ(failing.Run(run.Args(PoolPass::kForward, TwoByTwo())).status(), run.log.run);
}

TEST(LibraryPool, WithoutCudnnOwnKernelsDoEverything) {
  PoolBed bed;
  LibraryPool without(absl::UnavailableError("cuDNN was not found"), {});
  EXPECT_FALSE(*without.Run(bed.Args(PoolPass::kForward, TwoByTwo())));
  EXPECT_THAT(without.TakeUsed(), IsEmpty());
  EXPECT_EQ(without.fingerprint(), "pools by own kernels") << "for whatever reason";
  EXPECT_EQ(bed.Make().fingerprint(), "pools plain loops");
}

}  // namespace
}  // namespace stagecoach::cudnn
