#include "stage/backends/cuda/cudnn/cudnn_library.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/cuda/cudnn/attention/attention_graphs.h"

namespace stagecoach::cudnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void ExpectUnavailable(const absl::Status& status, const testing::Matcher<std::string>& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), message);
}

TEST(CudnnLibrary, WhereItIsNotTheMessageSaysWhatToDo) {
  ExpectUnavailable(OpenCudnnLibrary("libno-such-cudnn.so.9").status(),
                    AllOf(HasSubstr("libno-such-cudnn.so.9"), HasSubstr("LD_LIBRARY_PATH"),
                          HasSubstr("STAGECOACH_CUDNN")));
}

TEST(CudnnLibrary, AnotherLibraryIsToldApart) {
  ExpectUnavailable(OpenCudnnLibrary("libm.so.6").status(), HasSubstr("no cudnnGetVersion"));
}

TEST(CudnnLibrary, ItCanBeNamedAndSwitchedOffByTheEnvironment) {
  const char* const given = std::getenv("STAGECOACH_CUDNN");
  const std::string before = given != nullptr ? given : "";
  ASSERT_EQ(unsetenv("STAGECOACH_CUDNN"), 0);
  EXPECT_EQ(CudnnName(), "libcudnn.so.9");
  ASSERT_EQ(setenv("STAGECOACH_CUDNN", "/opt/cudnn/libcudnn.so.9", 1), 0);
  EXPECT_EQ(CudnnName(), "/opt/cudnn/libcudnn.so.9");
  ASSERT_EQ(setenv("STAGECOACH_CUDNN", "off", 1), 0);
  ExpectUnavailable(OpenCudnnLibrary(CudnnName()).status(), HasSubstr("STAGECOACH_CUDNN=off"));
  EXPECT_FALSE(OpenAttentionGraphs(nullptr, 90).ok()) << "no headers, or switched off";
  ASSERT_EQ(setenv("STAGECOACH_CUDNN", before.c_str(), 1), 0);  // empty is as good as unset
}

}  // namespace
}  // namespace stagecoach::cudnn
