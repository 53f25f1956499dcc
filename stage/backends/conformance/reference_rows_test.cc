// The reference back end through its own rows: in bfloat16 it is held to its float32.
#include "stage/backends/conformance/attention_alone.h"
#include "stage/backends/conformance/decoding_alone.h"
#include "stage/backends/conformance/suite.h"

namespace stagecoach::conformance {

INSTANTIATE_TEST_SUITE_P(Reference, BackendConformance,
                         testing::Combine(testing::Values(BackendUnderTest{
                                              .make = MakeReferenceBackend, .has_threads = false}),
                                          testing::ValuesIn(ConformanceRows())),
                         RowName);

TEST(ReferenceAttention, OfASampleOrADocumentIsThatOfItAlone) {
  const auto backend = MakeReferenceBackend({});
  for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
    EXPECT_EQ(PaddingChanges(*backend, elements), "");
    EXPECT_EQ(CrossPaddingChanges(*backend, elements), "");
    EXPECT_EQ(OtherDocumentsChange(*backend, elements, 0.0), "");
  }
}

TEST(ReferenceAttention, OfARowToItsHistoryIsThatOfItAlone) {
  const auto backend = MakeReferenceBackend({});
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kFloat32, 1e-6), "");
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kBfloat16, kRoundedOnce), "");
}

}  // namespace stagecoach::conformance
