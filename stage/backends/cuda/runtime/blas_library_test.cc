#include "stage/backends/cuda/runtime/blas_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

namespace stagecoach::cuda {
namespace {

using ::testing::HasSubstr;

TEST(BlasLibrary, IsTheOneThatThisWasCompiledWith) {
  const absl::StatusOr<BlasLibrary>& blas = SharedBlasLibrary();
  ASSERT_TRUE(blas.ok()) << blas.status();
  const size_t version = blas->GetVersion();  // 130100; 12.x had 12 05 00 as well
  EXPECT_EQ(version / 10000, size_t{CUBLAS_VER_MAJOR}) << version;
  EXPECT_STREQ(blas->GetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
}

TEST(BlasLibrary, AFileThatIsNotThereIsNamedWithTheRemedy) {
  const absl::Status status = OpenBlasLibrary("libcublasLt.so.0").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("libcublasLt.so.0"));
  EXPECT_THAT(status.message(), HasSubstr("LD_LIBRARY_PATH"));
}

TEST(BlasLibrary, AnotherLibraryIsRefused) {
  EXPECT_THAT(OpenBlasLibrary("libc.so.6").status().message(),
              HasSubstr("libc.so.6 is no cuBLASLt: it has no cublasLtGetVersion"));
}

// Linked to cuBLASLt, a program could start no thread with so small a stack, and those of the HTTP
// library had it: no stage server of a build with CUDA came up.
TEST(BlasLibrary, LeavesRoomForThreadsWithSmallStacks) {
  ASSERT_TRUE(SharedBlasLibrary().ok()) << SharedBlasLibrary().status();
  constexpr size_t kStackOfCivetweb = 102400;
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackOfCivetweb), 0);
  pthread_t thread;
  bool ran = false;
  const auto run = [](void* flag) -> void* {
    *static_cast<bool*>(flag) = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &ran), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_TRUE(ran);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace stagecoach::cuda
