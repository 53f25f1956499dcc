// Harness: tensors with seeded values on a back end, and the comparison of what came out.
// Ownership: Bench borrows the back end.
// Errors:    a failed allocation is a CHECK: the rows are small.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "stage/backends/backend.h"
#include "stage/backends/conformance/rows.h"

namespace stagecoach::conformance {

// Makes the tensors of one row. Each new tensor draws from the next stream, so that two back ends
// that make the same tensors in the same order get the same values.
class Bench {
 public:
  explicit Bench(Backend& backend, uint64_t seed = 1) : backend_(backend), seed_(seed) {}

  Tensor Normal(Shape shape, float scale = 1.0f, float offset = 0.0f);
  Tensor Indices(int64_t count, int64_t bound);  // I32 in [0, bound)
  Tensor From(const std::vector<float>& values, Shape shape);
  // Not a number everywhere: outputs must be written in full, and never read.
  Tensor Blank(Shape shape, DType dtype = DType::kF32);

  // Synchronizes, and reads.
  Output Read(const std::string& name, const Tensor& tensor);

 private:
  Tensor Make(DType dtype, Shape shape);

  Backend& backend_;
  const uint64_t seed_;
  uint32_t streams_ = 0;
};

// Empty if the outputs agree; else the first element that does not, in words.
std::string Disagreement(const Outputs& actual, const Outputs& expected, double tolerance);

// A stream as layers make them: every field in use.
RandomStream TestStream(uint32_t layer = 3);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_
