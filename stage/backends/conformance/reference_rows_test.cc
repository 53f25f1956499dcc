// The reference back end through its own rows: in bfloat16 it is held to its float32.
#include "stage/backends/conformance/suite.h"

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(Reference, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              .make = MakeReferenceBackend, .has_threads = false}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

}  // namespace stagecoach::conformance
