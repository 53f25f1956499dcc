// The conformance tests, for any back end. In a test file of the back end:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
//    testing::Combine(testing::Values(BackendUnderTest{.make = MakeCpuBackend}),
//                       testing::ValuesIn(ConformanceRows())), RowName);
//
// The reference back end must be linked. Include this header in one file of a test program.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_SUITE_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_SUITE_H_

#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "base/sanitized.h"
#include "gtest/gtest.h"
#include "stage/backends/backend.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/conformance/rows.h"

namespace stagecoach::conformance {

struct BackendUnderTest {
  std::function<std::unique_ptr<Backend>(const BackendOptions&)> make;
  bool has_threads = true;  // its kernels share their work among threads of the host
};
inline void PrintTo(const BackendUnderTest&, std::ostream* out) { *out << "back end"; }

class BackendConformance
    : public testing::TestWithParam<std::tuple<BackendUnderTest, ConformanceRow>> {
 protected:
  // Another test lists the operations that a back end lacks.
  void SetUp() override {
    const std::string missing = row().missing(*Make(1));
    if (!missing.empty()) GTEST_SKIP() << "no kernel for " << missing;
  }
  const ConformanceRow& row() const { return std::get<1>(GetParam()); }
  bool has_threads() const { return std::get<0>(GetParam()).has_threads; }
  std::unique_ptr<Backend> Make(int threads) const {
    return std::get<0>(GetParam()).make(BackendOptions{.threads = threads});
  }
  Outputs RunWith(int threads) const { return row().run(*Make(threads)); }
};

inline std::string RowName(
    const testing::TestParamInfo<std::tuple<BackendUnderTest, ConformanceRow>>& info) {
  return std::get<1>(info.param).name;
}

TEST_P(BackendConformance, AgreesWithTheReference) {
  const auto reference = MakeReferenceBackend(BackendOptions{});
  EXPECT_EQ(row().Disagreement(RunWith(1), row().Expected(*reference)), "");
}

TEST_P(BackendConformance, GivesTheSameBitsWithAnyNumberOfThreadsAndAgain) {
  if (kSanitized) {  // the code for one thread has run
    RunWith(3);
    return;
  }
  const auto backend = Make(1);
  const Outputs first = row().run(*backend);
  if (!has_threads()) {
    EXPECT_EQ(Disagreement(row().run(*backend), first, 0.0), "") << "second run";
    return;
  }
  EXPECT_EQ(Disagreement(RunWith(3), first, 0.0), "") << "three threads";
  EXPECT_EQ(Disagreement(row().run(*backend), first, 0.0), "") << "second run";
  EXPECT_EQ(Disagreement(RunWith(2), first, 0.0), "") << "two threads";
}

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_SUITE_H_
