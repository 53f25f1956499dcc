// The tests that hold a back end's descriptions (Backend::Describe) to its kernels, on the rows of
// suite.h:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, BackendDescription,
//    testing::Combine(testing::Values(BackendUnderTest{.make = MakeCpuBackend}),
//                       testing::ValuesIn(ConformanceRows())), RowName);
//
// Include this header in one file of a test program, which instantiates the suite.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DESCRIPTION_SUITE_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DESCRIPTION_SUITE_H_

#include "stage/backends/conformance/measured_backend.h"
#include "stage/backends/conformance/suite.h"

namespace stagecoach::conformance {

class BackendDescription : public BackendConformance {};

TEST_P(BackendDescription, BoundsTheMemoryOfEveryCallWithAnyNumberOfThreads) {
  for (const int threads : {1, 3}) {
    MeasuredBackend measured(Make(threads));
    row().run(measured);
    EXPECT_EQ(measured.exceeded(), "");
  }
}

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_DESCRIPTION_SUITE_H_
