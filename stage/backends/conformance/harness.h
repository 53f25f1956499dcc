// Harness: tensors with seeded values on a back end, and the comparison of outputs.
// Ownership: Bench borrows the back end.
// Errors:    a failed allocation is a CHECK: the rows are small.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stage/backends/backend.h"
#include "stage/backends/conformance/rows.h"

namespace stagecoach::conformance {

// Makes the tensors of one row. Each new tensor draws from the next stream. So two back ends that
// make the same tensors in the same order get the same values.
class Bench {
 public:
  explicit Bench(Backend& backend, Elements elements = Elements::kFloat32)
      : backend_(backend), elements_(elements) {}

  Backend& backend() { return backend_; }
  Elements elements() const { return elements_; }

  // A tensor of the row's activation type. Linear weights and biases and embedding tables have this
  // type too (backend.h, "Element types").
  Tensor Activation(Shape shape, float scale = 1.0f, float offset = 0.0f);
  Tensor ActivationFrom(const std::vector<float>& values, Shape shape);
  Tensor BlankActivation(Shape shape);

  // An activation that one operation wrote, as the next one reads it: rounded where a bfloat16
  // tensor would be. The truth of the second operation has the rounded inputs too.
  Tensor AsRead(const Tensor& activation);

  // Tensors that are float32 for every activation type.
  Tensor Normal(Shape shape, float scale = 1.0f, float offset = 0.0f);
  Tensor Indices(int64_t count, int64_t bound);  // I32 in [0, bound)
  Tensor IdsFrom(const std::vector<int32_t>& values, Shape shape);
  Tensor From(const std::vector<float>& values, Shape shape);
  Tensor Float64From(const std::vector<float>& values, Shape shape);
  // A tensor of NaNs: outputs must be written in full, and never read.
  Tensor Blank(Shape shape, DType dtype = DType::kF32);

  // Synchronizes first.
  Output Read(const std::string& name, const Tensor& tensor);

 private:
  Tensor Make(DType dtype, Shape shape);
  Tensor Copied(std::span<const std::byte> values, DType dtype, Shape shape);
  std::vector<float> Draw(const Shape& shape, float scale, float offset);

  Backend& backend_;
  const Elements elements_;
  uint32_t streams_ = 0;
};

// Disagreement is empty if the outputs agree; else it names the first element that does not.
struct Tolerances {
  double exact = 0.0;     // for outputs that are float32 or float64 in `actual`
  double bfloat16 = 0.0;  // for bfloat16 outputs
};
std::string Disagreement(const Outputs& actual, const Outputs& expected,
                         const Tolerances& tolerances);
inline std::string Disagreement(const Outputs& actual, const Outputs& expected, double tolerance) {
  return Disagreement(actual, expected, Tolerances{tolerance, tolerance});
}

// A stream as layers make them: every field in use.
RandomStream TestStream(uint32_t layer = 3);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_HARNESS_H_
