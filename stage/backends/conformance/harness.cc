#include "stage/backends/conformance/harness.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"

namespace stagecoach::conformance {
namespace {

constexpr uint64_t kSeed = 1;

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

Tensor Bench::Copied(std::span<const std::byte> values, DType dtype, Shape shape) {
  const Tensor tensor = Make(dtype, std::move(shape));
  backend_.CopyFromHost(values, tensor);
  CHECK_OK(backend_.Synchronize());  // values end with the caller
  return tensor;
}

std::vector<float> Bench::Draw(const Shape& shape, float scale, float offset) {
  const RandomStream stream = {.seed = kSeed, .operation = streams_++};
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = offset + scale * RandomNormal(stream, i);
  return values;
}

Tensor Bench::From(const std::vector<float>& values, Shape shape) {
  return Copied(Bytes(values), DType::kF32, std::move(shape));
}

Tensor Bench::Float64From(const std::vector<float>& values, Shape shape) {
  const std::vector<double> wide(values.begin(), values.end());
  return Copied(Bytes(wide), DType::kF64, std::move(shape));
}

Tensor Bench::Normal(Shape shape, float scale, float offset) {
  const std::vector<float> values = Draw(shape, scale, offset);
  return From(values, std::move(shape));
}

Tensor Bench::Activation(Shape shape, float scale, float offset) {
  const std::vector<float> values = Draw(shape, scale, offset);
  return ActivationFrom(values, std::move(shape));
}

Tensor Bench::ActivationFrom(const std::vector<float>& values, Shape shape) {
  if (elements_ == Elements::kFloat32) return From(values, std::move(shape));
  std::vector<Bfloat16> narrow(values.begin(), values.end());
  if (elements_ == Elements::kBfloat16) {
    return Copied(Bytes(narrow), DType::kBF16, std::move(shape));
  }
  return From(std::vector<float>(narrow.begin(), narrow.end()), std::move(shape));
}

Tensor Bench::AsRead(const Tensor& activation) {
  if (elements_ != Elements::kRounded) return activation;
  const Output output = Read("", activation);
  return ActivationFrom(std::vector<float>(output.values.begin(), output.values.end()),
                        activation.shape());
}

Tensor Bench::BlankActivation(Shape shape) {
  return Blank(std::move(shape), elements_ == Elements::kBfloat16 ? DType::kBF16 : DType::kF32);
}

Tensor Bench::Indices(int64_t count, int64_t bound) {
  const RandomStream stream = {.seed = kSeed, .operation = streams_++};
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int32_t>(RandomBits(stream, i) % static_cast<uint32_t>(bound));
  }
  return Copied(Bytes(values), DType::kI32, Shape{count});
}

Tensor Bench::IdsFrom(const std::vector<int32_t>& values, Shape shape) {
  return Copied(Bytes(values), DType::kI32, std::move(shape));
}

Tensor Bench::Blank(Shape shape, DType dtype) {
  const int64_t bytes = shape.elements() * DTypeSize(dtype);
  const std::vector<std::byte> ones(bytes, std::byte{0xff});  // a NaN in every format
  return Copied(ones, dtype, std::move(shape));
}

Output Bench::Read(const std::string& name, const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  backend_.CopyToHost(tensor, bytes);
  CHECK_OK(backend_.Synchronize());
  Output output{name, std::vector<double>(tensor.elements()), tensor.dtype()};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.dtype() == DType::kF64) {
      std::memcpy(&output.values[i], bytes.data() + i * sizeof(double), sizeof(double));
    } else if (tensor.dtype() == DType::kBF16) {
      Bfloat16 value;
      std::memcpy(&value, bytes.data() + i * sizeof(Bfloat16), sizeof(Bfloat16));
      output.values[i] = static_cast<float>(value);
    } else if (tensor.dtype() == DType::kI32) {
      int32_t value;
      std::memcpy(&value, bytes.data() + i * sizeof(int32_t), sizeof(int32_t));
      output.values[i] = value;
    } else {
      CHECK(tensor.dtype() == DType::kF32) << DTypeName(tensor.dtype());
      float value;
      std::memcpy(&value, bytes.data() + i * sizeof(float), sizeof(float));
      output.values[i] = value;
    }
  }
  return output;
}

std::string Disagreement(const Outputs& actual, const Outputs& expected,
                         const Tolerances& tolerances) {
  CHECK_EQ(actual.size(), expected.size()) << "a row returns the same outputs every time";
  for (size_t o = 0; o < expected.size(); ++o) {
    const std::vector<double>&a = actual[o].values, &e = expected[o].values;
    CHECK_EQ(a.size(), e.size()) << expected[o].name;
    const double scale = RootMeanSquare(e);
    const double tolerance =
        actual[o].dtype == DType::kBF16 ? tolerances.bfloat16 : tolerances.exact;
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
