#include "stage/backends/conformance/harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stagecoach::conformance {
namespace {

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

bool SameValue(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

double RootMeanSquare(const std::vector<double>& values) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace

Tensor Bench::Make(DType dtype, Shape shape) {
  auto tensor = MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype, std::move(shape));
  CHECK_OK(tensor.status());
  return *std::move(tensor);
}

Tensor Bench::From(const std::vector<float>& values, Shape shape) {
  const Tensor tensor = Make(DType::kF32, std::move(shape));
  backend_.CopyFromHost(Bytes(values), tensor);
  CHECK_OK(backend_.Synchronize());  // values end with the caller
  return tensor;
}

Tensor Bench::Normal(Shape shape, float scale, float offset) {
  const RandomStream stream = {.seed = seed_, .operation = streams_++};
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = offset + scale * RandomNormal(stream, i);
  return From(values, std::move(shape));
}

Tensor Bench::Indices(int64_t count, int64_t bound) {
  const RandomStream stream = {.seed = seed_, .operation = streams_++};
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int32_t>(RandomBits(stream, i) % static_cast<uint32_t>(bound));
  }
  const Tensor tensor = Make(DType::kI32, Shape{count});
  backend_.CopyFromHost(Bytes(values), tensor);
  CHECK_OK(backend_.Synchronize());
  return tensor;
}

Tensor Bench::Blank(Shape shape, DType dtype) {
  const Tensor tensor = Make(dtype, std::move(shape));
  const std::vector<std::byte> ones(tensor.bytes(), std::byte{0xff});  // a NaN in every format
  backend_.CopyFromHost(ones, tensor);
  CHECK_OK(backend_.Synchronize());
  return tensor;
}

Output Bench::Read(const std::string& name, const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  backend_.CopyToHost(tensor, bytes);
  CHECK_OK(backend_.Synchronize());
  Output output{name, std::vector<double>(tensor.elements())};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype() == DType::kF64) {
      std::memcpy(&output.values[i], bytes.data() + i * sizeof(double), sizeof(double));
    } else {
      CHECK(tensor.dtype() == DType::kF32) << DTypeName(tensor.dtype());
      float value;
      std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
      output.values[i] = value;
    }
  }
  return output;
}

std::string Disagreement(const Outputs& actual, const Outputs& expected, double tolerance) {
  CHECK_EQ(actual.size(), expected.size()) << "a row returns the same outputs every time";
  for (size_t o = 0; o < expected.size(); ++o) {
    const std::vector<double>&a = actual[o].values, &e = expected[o].values;
    CHECK_EQ(a.size(), e.size()) << expected[o].name;
    const double scale = RootMeanSquare(e);
    for (size_t i = 0; i < e.size(); ++i) {
      const double allowed = tolerance * std::max(scale, std::abs(e[i]));
      if (SameValue(a[i], e[i])) continue;
      if (tolerance > 0.0 && std::abs(a[i] - e[i]) <= allowed) continue;
      return absl::StrCat(expected[o].name, "[", i, "] of ", e.size(), ": ", a[i], " expected ",
                          e[i], ", difference ", a[i] - e[i], ", allowed ", allowed);
    }
  }
  return "";
}

RandomStream TestStream(uint32_t layer) {
  return {.seed = 0x123456789abcdef0, .step = 17, .micro_batch = 2, .layer = layer, .operation = 5};
}

}  // namespace stagecoach::conformance
