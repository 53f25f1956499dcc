// The conformance rows on the card. Without one every row says so and is skipped.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/conformance/attention_alone.h"
#include "stage/backends/conformance/decoding_alone.h"
#include "stage/backends/conformance/harness.h"
#include "stage/backends/conformance/rows.h"
#include "stage/backends/cuda/make_cuda_backend.h"

namespace stagecoach::conformance {
namespace {

std::unique_ptr<Backend> MakeOnFirstCard(const BackendOptions& options) {
  auto backend = MakeCudaBackend(options, 0);
  CHECK_OK(backend.status());
  return *std::move(backend);
}

// Why there is no card to test on; empty if there is one.
const std::string& WhyNoCard() {
  static const std::string reason = [] {
    const absl::Status status = MakeCudaBackend(BackendOptions{}, 0).status();
    return status.ok() ? std::string() : status.ToString();
  }();
  return reason;
}

TEST(CudaBackend, OpensACardOrSaysWhatIsMissing) {
  const auto backend = MakeCudaBackend(BackendOptions{}, 0);
  if (backend.ok()) {
    EXPECT_EQ((*backend)->fingerprint(), MakeOnFirstCard({})->fingerprint());
    return;
  }
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable) << backend.status();
  EXPECT_THAT(std::string(backend.status().message()), testing::Not(testing::IsEmpty()));
}

class CudaConformance : public testing::TestWithParam<ConformanceRow> {
 protected:
  void SetUp() override {
    if (!WhyNoCard().empty()) GTEST_SKIP() << "needs a card: " << WhyNoCard();
    const std::string missing = GetParam().missing(*MakeOnFirstCard({}));
    if (!missing.empty()) GTEST_SKIP() << "no kernel for " << missing;
  }
};

TEST_P(CudaConformance, AgreesWithTheReferenceAndRepeatsItsBits) {
  const ConformanceRow& row = GetParam();
  const auto backend = MakeOnFirstCard({}), reference = MakeReferenceBackend({});
  const Outputs first = row.run(*backend);
  EXPECT_EQ(row.Disagreement(first, row.Expected(*reference)), "");
  EXPECT_EQ(Disagreement(row.run(*backend), first, 0.0), "") << "second run";
  EXPECT_EQ(Disagreement(row.run(*MakeOnFirstCard({})), first, 0.0), "") << "another context";
  EXPECT_TRUE(backend->Synchronize().ok());
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaConformance, testing::ValuesIn(ConformanceRows()),
                         [](const auto& info) { return info.param.name; });

TEST(CudaBackend, AttentionOfASampleOrADocumentIsThatOfItAlone) {
  if (!WhyNoCard().empty()) GTEST_SKIP() << "needs a card: " << WhyNoCard();
  const auto backend = MakeOnFirstCard({});
  for (const Elements elements : {Elements::kFloat32, Elements::kBfloat16}) {
    EXPECT_EQ(PaddingChanges(*backend, elements), "");
    EXPECT_EQ(CrossPaddingChanges(*backend, elements), "");
  }
  EXPECT_EQ(OtherDocumentsChange(*backend, Elements::kFloat32, 3e-5), "");
  EXPECT_EQ(OtherDocumentsChange(*backend, Elements::kBfloat16, kRoundedInside), "");
}

TEST(CudaBackend, AttentionOfARowToItsHistoryIsThatOfItAlone) {
  if (!WhyNoCard().empty()) GTEST_SKIP() << "needs a card: " << WhyNoCard();
  const auto backend = MakeOnFirstCard({});
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kFloat32, 3e-5), "");
  EXPECT_EQ(OtherRowsChange(*backend, Elements::kBfloat16, kRoundedInside), "");
}

}  // namespace
}  // namespace stagecoach::conformance
