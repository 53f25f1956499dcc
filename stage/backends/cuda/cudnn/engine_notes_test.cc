#include "stage/backends/cuda/cudnn/engine_notes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace stagecoach::cudnn {
namespace {

using testing::Contains;
using testing::Not;

TEST(EngineNotes, NoEngineMayComputeOtherBitsInAnotherRun) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBfloat16}) {
    EXPECT_THAT(BarredNotes(precision), Contains(EngineNote::kNondeterministic));
    EXPECT_THAT(BarredNotes(precision), Contains(EngineNote::kReducedPrecisionSums));
  }
}

TEST(EngineNotes, Float32IsNotRoundedUnlessTheJobAsksForIt) {
  EXPECT_THAT(BarredNotes(Precision::kFloat32), Contains(EngineNote::kTensorCores));
  EXPECT_THAT(BarredNotes(Precision::kFloat32), Contains(EngineNote::kDownConvertedInputs));
  EXPECT_THAT(BarredNotes(Precision::kTensorFloat32), Not(Contains(EngineNote::kTensorCores)));
  EXPECT_THAT(BarredNotes(Precision::kTensorFloat32), Contains(EngineNote::kDownConvertedInputs));
  EXPECT_THAT(BarredNotes(Precision::kBfloat16), Not(Contains(EngineNote::kTensorCores)));
}

}  // namespace
}  // namespace stagecoach::cudnn
