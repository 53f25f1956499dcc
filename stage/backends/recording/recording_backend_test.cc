#include "stage/backends/recording/recording_backend.h"

#include <regex>
#include <set>
#include <string>

#include "base/errors/check.h"
#include "base/testing/file_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "operations/norms/rms_norm.h"
#include "operations/pointwise/dropout.h"
#include "operations/updates/sgd_update.h"
#include "stage/backends/operation_testing.h"
#include "stage/backends/update_calls.h"

namespace stagecoach {
namespace {

using testing::HasSubstr;

class Recorded : public testing::Test {
 protected:
  Tensor Make(MemoryKind kind, Shape shape, DType dtype = DType::kF32) {
    auto tensor = MakeTensor(backend_.allocator(), kind, dtype, std::move(shape));
    CHECK_OK(tensor.status());
    return *std::move(tensor);
  }
  Tensor Activation(Shape shape) { return Make(MemoryKind::kActivations, std::move(shape)); }

  const std::shared_ptr<CallLog> log_ = std::make_shared<CallLog>();
  RecordingBackend backend_{MakeReferenceBackend({}), log_};
};

TEST_F(Recorded, BuffersHaveANumberAKindAndTheBytesThatWereAskedFor) {
  const Tensor a = Activation({2, 3}), b = Make(MemoryKind::kParameters, {1}), c = Activation({1});
  EXPECT_EQ(log_->Take(), "alloc t1 24\nalloc p1 4\nalloc t2 4\n");
  EXPECT_EQ(log_->Take(), "") << "the text was taken";
}

TEST_F(Recorded, ACallHasItsArgumentsAndRuns) {
  const Tensor x = Activation({1, 2}), y = Activation({1, 2});
  backend_.Fill(x, 0.5f);
  backend_.Fill(y, 0.25f);
  log_->Take();
  RunOn(backend_, {.operation = "add", .inputs = {x, y}, .outputs = {y}});
  EXPECT_EQ(log_->Take(), "add in=t1:F32[1,2] in=t2:F32[1,2] out=t2:F32[1,2]\n");
  EXPECT_EQ(y.data<float>()[1], 0.75f);
}

TEST_F(Recorded, AnUpdateHasALineForEachParameter) {
  const Tensor gradient = Activation({2}), value = Activation({2});
  backend_.Fill(value, 1.0f);
  backend_.Fill(gradient, 1.0f);
  const auto calls = PreparedUpdates::Prepare(
      backend_, {{.operation = "sgd_update", .adds = {gradient, value}},
                 {.operation = "sgd_update",
                  .attributes = ToAttributes(SgdUpdateAttributes{.weight_decay = 0.5}),
                  .adds = {value, gradient}}});
  ASSERT_TRUE(calls.ok()) << calls.status();
  log_->Take();
  calls->Run({.applied = 3, .learning_rate = 0.25});
  EXPECT_EQ(log_->Take(),
            "sgd_update applied=3 learning_rate=0.25 gradient_scale=1\n"
            "  adds=t1:F32[2] adds=t2:F32[2]\n"
            "  weight_decay=0.5 adds=t2:F32[2] adds=t1:F32[2]\n");
  EXPECT_EQ(value.data<float>()[0], 0.75f);
}

TEST_F(Recorded, RandomNumbersAreNamedByTheirStream) {
  const Tensor x = Activation({1, 2});
  log_->Take();
  RunOn(backend_, {.operation = "dropout",
                   .attributes = ToAttributes(DropoutAttributes{.rate = 0.5, .draw = 4}),
                   .inputs = {x},
                   .outputs = {x},
                   .stream = {.seed = 7, .step = 1, .micro_batch = 2, .layer = 3, .operation = 4}});
  EXPECT_EQ(log_->Take(),
            "dropout rate=0.5 draw=4 in=t1:F32[1,2] out=t1:F32[1,2] "
            "stream=seed7.step1.micro_batch2.layer3.op4\n");
}

TEST_F(Recorded, AViewIsTheWholeAndAnOffset) {
  const Tensor whole = Make(MemoryKind::kWorkspace, {4}, DType::kF64);
  const Tensor x = Activation({2});
  backend_.Fill(x, 2.0f);
  log_->Take();
  backend_.SquaredNorm(x, whole.Slice(3, {1}));
  backend_.SquaredNorm(x, whole.Slice(0, {1}));
  EXPECT_EQ(log_->Take(),
            "SquaredNorm tensor=t1:F32[2] result=w1+24:F64[1]\n"
            "SquaredNorm tensor=t1:F32[2] result=w1:F64[1]\n");
}

// In which order the members of a struct let go of their buffers changes nothing.
TEST_F(Recorded, FreesWithNothingInBetweenAreOneLineInOrder) {
  Tensor a = Activation({1}), b = Activation({1}), c = Activation({1});
  log_->Take();
  c.Reset();
  a.Reset();
  backend_.Fill(b, 0.0f);
  b.Reset();
  EXPECT_EQ(log_->Take(), "free t1 t3\nFill tensor=t2:F32[1] value=0\nfree t2\n");
}

TEST_F(Recorded, MemoryThatIsUsedAgainIsAnotherBuffer) {
  Tensor a = Activation({16});
  const std::byte* const place = a.raw();
  a.Reset();
  const Tensor b = Activation({16});
  ASSERT_EQ(b.raw(), place) << "the allocator gives the same block";
  backend_.Fill(b, 1.0f);
  EXPECT_EQ(log_->Take(), "alloc t1 64\nfree t1\nalloc t2 64\nFill tensor=t2:F32[16] value=1\n");
}

TEST_F(Recorded, ANameStandsForABufferAndItsViews) {
  Tensor a = Make(MemoryKind::kParameters, {4});
  log_->Take();
  log_->Name(a, "0000/weight");
  backend_.Fill(a.Slice(2, {2}), 1.0f);
  a.Reset();
  EXPECT_EQ(log_->Take(),
            "name p1 0000/weight\nFill tensor=0000/weight+8:F32[2] value=1\nfree 0000/weight\n");
}

// So that a change in one section leaves the names in the others alone.
TEST_F(Recorded, NumbersBeginAnewInEverySection) {
  log_->Begin("F0");
  const Tensor a = Activation({1}), b = Activation({1});
  log_->Begin("B0");
  const Tensor c = Activation({1});
  RunOn(backend_, {.operation = "add", .inputs = {a, c}, .outputs = {c}});
  log_->Begin("F0");
  const Tensor d = Activation({1});
  log_->Begin("");
  const Tensor e = Activation({1});
  EXPECT_EQ(log_->Take(),
            "# F0\nalloc F0.t1 4\nalloc F0.t2 4\n"
            "# B0\nalloc B0.t1 4\nadd in=F0.t1:F32[1] in=B0.t1:F32[1] out=B0.t1:F32[1]\n"
            "# F0\nalloc F0.t3 4\nalloc t1 4\n");
}

// Over an in-process link a stage reads its neighbour's memory. When it lets go of it is seen
// later.
TEST_F(Recorded, ANeighboursBufferIsNamedWhenItIsMet) {
  const auto neighbour = MakeReferenceBackend({});
  auto foreign = MakeTensor(neighbour->allocator(), MemoryKind::kActivations, DType::kF32, {2});
  ASSERT_TRUE(foreign.ok());
  backend_.Fill(*foreign, 1.0f);
  backend_.Fill(*foreign, 2.0f);
  foreign->Reset();
  EXPECT_EQ(log_->Take(),
            "Fill tensor=r1:F32[2] value=1\nFill tensor=r1:F32[2] value=2\nfree r1\n");
}

TEST_F(Recorded, AllParametersAtOnceAreOneCallWithALineEach) {
  const Tensor a = Make(MemoryKind::kGradients, {1}), b = Make(MemoryKind::kGradients, {2});
  log_->Take();
  const Tensor all[] = {a, b};
  backend_.FillAll(all, 0.0f);
  EXPECT_EQ(log_->Take(), "FillAll value=0\n  tensor=g1:F32[1]\n  tensor=g2:F32[2]\n");
}

TEST_F(Recorded, AKernelIsWrittenAsItsOperation) {
  const ValueType x = ActivationType({2, 3}), weight = WeightType(Element::kFloat32, {3});
  const ValueType rstd = {Element::kFloat32, Leading::kSamples, {2}};
  const Call call = {.operation = "rms_norm", .attributes = ToAttributes(RmsNormAttributes{0.5})};
  const auto kernel = backend_.Prepare(call, {{x, weight}, {x, rstd}, {}}, DType::kF32);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Tensors in = {Activation({2, 3}), Activation({3})}, out = {Activation({2, 3}), Activation({2})};
  for (const Tensor& tensor : in) backend_.Fill(tensor, 1.0f);
  log_->Take();
  (*kernel)({{.sequences = 1}, 0}, {PlacesOf(in), PlacesOf(out), Operands()});
  EXPECT_EQ(log_->Take(),
            "rms_norm epsilon=0.5 in=t1:F32[2,3] in=t2:F32[3] out=t3:F32[2,3] out=t4:F32[2]\n");
  EXPECT_GT(out[0].data<float>()[5], 0.8f) << "it ran";
}

TEST(RecordingBackend, BuffersMayOutliveIt) {
  const auto log = std::make_shared<CallLog>();
  auto backend = std::make_unique<RecordingBackend>(MakeReferenceBackend({}), log);
  auto tensor = MakeTensor(backend->allocator(), MemoryKind::kActivations, DType::kF32, {1});
  ASSERT_TRUE(tensor.ok());
  backend.reset();
  tensor->Reset();
  EXPECT_EQ(log->Take(), "alloc t1 4\nfree t1\n");
}

std::set<std::string> FunctionsOf(const std::string& path, const std::string& pattern) {
  const std::string code =
      std::regex_replace(FileText(STAGECOACH_SOURCE_DIR "/" + path), std::regex("//[^\n]*"), "");
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator at(code.begin(), code.end(), regex), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// A pure function that is forgotten does not compile; one with a body would bypass the back end
// within.
TEST(RecordingBackend, HandsOnEveryCallOfTheInterface) {
  const std::set<std::string> interface =
      FunctionsOf("stage/backends/backend.h", R"(virtual [^;{~]*?(\w+)\()");
  EXPECT_GT(interface.size(), 25u) << "the functions are found";
  EXPECT_EQ(FunctionsOf("stage/backends/recording/recording_backend.h",
                        R"((\w+)\([^;{}]*\)\s*(?:const\s+)?override)"),
            interface);
}

}  // namespace
}  // namespace stagecoach
