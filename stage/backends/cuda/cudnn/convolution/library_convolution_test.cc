#include "stage/backends/cuda/cudnn/convolution/library_convolution.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/testing/host_convolutions.h"

namespace stagecoach::cudnn {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Pointwise, 2 channels to 3, two samples of 1 x 2 pixels.
ConvolutionShape Pointwise() { return {{2, 1, 2, 2, 1, 2, 1, 1, 1, 1, 0, 0, 1, 1}, 3, 1}; }

// Convolutions by host graphs, and tensors of small whole numbers, which BF16 holds.
class Bed {
 public:
  explicit Bed(int64_t workspace_bytes = int64_t{5} << 20)
      : fixed(static_cast<size_t>(workspace_bytes) + 1024) {}

  LibraryConvolution Make() {
    const auto address = reinterpret_cast<uintptr_t>(fixed.data());
    std::byte* const data = fixed.data() + (256 - address % 256) % 256;
    return LibraryConvolution(std::make_unique<HostConvolutions>(&log),
                              {data, static_cast<int64_t>(fixed.size()) - 1024});
  }
  AroundConvolution Around() {
    return {.widen =
                [this](const Tensor& narrow, int64_t first, float* wide, int64_t n) {
                  ++widened;
                  for (int64_t i = 0; i < n; ++i) {
                    wide[i] = static_cast<float>(narrow.data<Bfloat16>()[first + i]);
                  }
                },
            .add =
                [this](const float* sums, const Tensor& gradient) {
                  ++added;
                  for (int64_t i = 0; i < gradient.elements(); ++i) {
                    gradient.data<float>()[i] += sums[i];
                  }
                }};
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
  ConvolutionArgs Args(ConvolutionPass pass, Precision precision = Precision::kFloat32) {
    const DType dtype = ComputeDType(precision);
    const bool gradient = pass == ConvolutionPass::kWeightGradient;
    return {.pass = pass,
            .shape = Pointwise(),
            .precision = precision,
            .image = Numbers(dtype, {1, 2, 3, 4, 5, 6, 7, 8}),
            .weight = Numbers(gradient ? DType::kF32 : dtype, {1, 0, 0, 1, 1, 1}),
            .places = Numbers(dtype, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1})};
  }

  ConvolutionLog log;
  int widened = 0, added = 0;
  std::vector<std::byte> fixed;
  std::unique_ptr<Allocator> tensors = MakeHostAllocator(0);
};

std::vector<float> ValuesOf(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(tensor.dtype() == DType::kF32
                         ? tensor.data<float>()[i]
                         : static_cast<float>(tensor.data<Bfloat16>()[i]));
  }
  return values;
}

TEST(LibraryConvolution, ForwardIsWhatIsCountedByHand) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    Bed bed;
    LibraryConvolution convolution = bed.Make();
    ConvolutionArgs args = bed.Args(ConvolutionPass::kForward, precision);
    EXPECT_TRUE(*convolution.Run(args, bed.Around()));
    EXPECT_THAT(ValuesOf(args.places), ElementsAre(1, 2, 3, 3, 4, 7, 5, 6, 11, 7, 8, 15));
    args.bias = bed.Numbers(args.image.dtype(), {10, 20, 30});
    EXPECT_TRUE(*convolution.Run(args, bed.Around()));
    EXPECT_THAT(ValuesOf(args.places), ElementsAre(11, 22, 33, 13, 24, 37, 15, 26, 41, 17, 28, 45));
    EXPECT_EQ(bed.widened + bed.added, 0);
  }
}

TEST(LibraryConvolution, TheInputsGradientIsWhatIsCountedByHand) {
  Bed bed;
  LibraryConvolution convolution = bed.Make();
  const ConvolutionArgs args = bed.Args(ConvolutionPass::kInputGradient);
  EXPECT_TRUE(*convolution.Run(args, bed.Around()));
  EXPECT_THAT(ValuesOf(args.image), ElementsAre(1, 0, 0, 1, 1, 1, 2, 2));
}

TEST(LibraryConvolution, TheWeightsGradientIsAddedToWhatIsThere) {
  Bed bed;
  LibraryConvolution convolution = bed.Make();
  const ConvolutionArgs args = bed.Args(ConvolutionPass::kWeightGradient);
  EXPECT_TRUE(*convolution.Run(args, bed.Around()));
  EXPECT_THAT(ValuesOf(args.weight), ElementsAre(1 + 8, 10, 10, 1 + 12, 1 + 12, 1 + 14));
  EXPECT_EQ(bed.added, 1);
  EXPECT_EQ(bed.widened, 0);
}

// cuDNN 9.19 has no weight gradient of BF16 numbers whose sums are float32.
TEST(LibraryConvolution, InBfloat16ItIsThatOfFloat32Copies) {
  Bed bed;
  LibraryConvolution convolution = bed.Make();
  const ConvolutionArgs args = bed.Args(ConvolutionPass::kWeightGradient, Precision::kBfloat16);
  EXPECT_TRUE(*convolution.Run(args, bed.Around()));
  EXPECT_THAT(ValuesOf(args.weight), ElementsAre(9, 10, 10, 13, 13, 15));
  EXPECT_EQ(bed.added, 1);
  EXPECT_EQ(bed.widened, 2);
  ASSERT_THAT(bed.log.built, SizeIs(1));
  EXPECT_EQ(bed.log.built[0].precision, Precision::kTensorFloat32);
}

TEST(LibraryConvolution, SlicesOfSamplesAddUp) {
  Bed bed((int64_t{4} << 20) + 256 + 1024 + 1536);  // two samples of 128 pixels, not four
  LibraryConvolution convolution = bed.Make();
  ConvolutionArgs args = bed.Args(ConvolutionPass::kWeightGradient, Precision::kBfloat16);
  args.shape.window.samples = 4;
  args.shape.window.width = args.shape.window.places_width = 64;
  std::vector<float> image, places;
  for (int i = 0; i < 4 * 64; ++i) image.insert(image.end(), {1.0f, static_cast<float>(i / 64)});
  for (int i = 0; i < 4 * 64; ++i) places.insert(places.end(), {1.0f, 0.0f, 2.0f});
  args.image = bed.Numbers(DType::kBF16, image);
  args.places = bed.Numbers(DType::kBF16, places);
  EXPECT_TRUE(*convolution.Run(args, bed.Around()));
  EXPECT_THAT(ValuesOf(args.weight), ElementsAre(1 + 256, 64 * 6, 0, 1, 1 + 512, 1 + 2 * 64 * 6));
  EXPECT_EQ(bed.added, 2);
  EXPECT_EQ(bed.log.built[0].samples, 2);
  EXPECT_THAT(bed.log.workspaces, SizeIs(2));
}

TEST(LibraryConvolution, APlanIsMadeOnceForAProblem) {
  Bed bed;
  LibraryConvolution convolution = bed.Make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kForward), bed.Around()));
    EXPECT_TRUE(
        *convolution.Run(bed.Args(ConvolutionPass::kForward, Precision::kBfloat16), bed.Around()));
    EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kInputGradient), bed.Around()));
  }
  EXPECT_THAT(bed.log.built, SizeIs(3));
  EXPECT_THAT(bed.log.workspaces, SizeIs(9));
}

TEST(LibraryConvolution, ARefusalLeavesTheProblemToOwnKernelsAndSaysWhyOnce) {
  Bed bed;
  bed.log.build = absl::UnimplementedError("no engine\nengine 1: ...\nengine 2: ...");
  LibraryConvolution convolution = bed.Make();
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(*convolution.Run(bed.Args(ConvolutionPass::kForward), bed.Around()));
  EXPECT_THAT(bed.log.built, SizeIs(1)) << "it is not asked again";
  EXPECT_THAT(convolution.TakeUsed(),
              ElementsAre("own convolution kernels, as it is not supported: no engine"));
  EXPECT_THAT(convolution.TakeUsed(), IsEmpty());
}

TEST(LibraryConvolution, TellsTheEnginesThatWereUsed) {
  Bed bed;
  LibraryConvolution convolution = bed.Make();
  EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kForward), bed.Around()));
  EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kInputGradient), bed.Around()));
  EXPECT_THAT(convolution.TakeUsed(), ElementsAre("cuDNN convolution, engine of plain loops"));
  EXPECT_THAT(convolution.TakeUsed(), IsEmpty());
}

TEST(LibraryConvolution, NoPlanMayTakeMoreThanTheFixedWorkspace) {
  Bed bed(1000);
  LibraryConvolution convolution = bed.Make();
  bed.log.workspace_bytes = 1000;
  EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kForward), bed.Around()));
  bed.log.workspace_bytes = 1001;
  EXPECT_FALSE(*convolution.Run(bed.Args(ConvolutionPass::kInputGradient), bed.Around()));
  EXPECT_THAT(convolution.TakeUsed(),
              testing::Contains(HasSubstr("takes 1001 bytes of workspace, there are 1000")));
  bed.log.workspace_bytes = 744;  // beside the sums
  EXPECT_TRUE(*convolution.Run(bed.Args(ConvolutionPass::kWeightGradient), bed.Around()));
  EXPECT_THAT(bed.log.limits, ElementsAre(1000, 1000, 744));
}

TEST(LibraryConvolution, OtherErrorsAreNotHiddenByOwnKernels) {
  Bed build, run;
  build.log.build = absl::InternalError("no libnvrtc");
  LibraryConvolution broken = build.Make(), failing = run.Make();
  EXPECT_EQ(broken.Run(build.Args(ConvolutionPass::kForward), {}).status(), build.log.build);
  run.log.run = absl::InternalError("execution failed");
  EXPECT_EQ(failing.Run(run.Args(ConvolutionPass::kWeightGradient), run.Around()).status(),
            run.log.run);
  EXPECT_EQ(run.added, 0);
}

TEST(LibraryConvolution, WithoutCudnnOwnKernelsDoEverything) {
  Bed bed;
  LibraryConvolution without(absl::UnavailableError("cuDNN was not found"), {});
  EXPECT_FALSE(*without.Run(bed.Args(ConvolutionPass::kForward), {}));
  EXPECT_THAT(without.TakeUsed(), IsEmpty());
  EXPECT_EQ(without.fingerprint(), "convolutions by own kernels") << "for whatever reason";
  EXPECT_EQ(bed.Make().fingerprint(), "convolutions plain loops");
}

}  // namespace
}  // namespace stagecoach::cudnn
