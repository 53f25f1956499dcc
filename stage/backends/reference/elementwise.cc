#include <algorithm>
#include <cstring>

#include "base/errors/check.h"
#include "base/numbers/bfloat16.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {

void ReferenceBackend::Fill(const Tensor& tensor, float value) {
  std::fill_n(tensor.data<float>(), tensor.elements(), value);
}

void ReferenceBackend::Swap(const Tensor& a, const Tensor& b) {
  CHECK_EQ(a.elements(), b.elements()) << "swap";
  std::swap_ranges(a.data<float>(), a.data<float>() + a.elements(), b.data<float>());
}

void ReferenceBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const float* x = tensor.data<float>();
  double sum = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) sum += double{x[i]} * x[i];
  result.data<double>()[0] = sum;
}

void ReferenceBackend::Convert(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.elements(), target.elements()) << "convert";
  if (source.dtype() == target.dtype()) {
    std::memcpy(target.raw(), source.raw(), static_cast<size_t>(source.bytes()));
    return;
  }
  if (target.dtype() == DType::kBF16) {
    const float* x = source.data<float>();
    for (int64_t i = 0; i < source.elements(); ++i) target.data<Bfloat16>()[i] = Bfloat16(x[i]);
  } else {
    const Bfloat16* x = source.data<Bfloat16>();
    for (int64_t i = 0; i < source.elements(); ++i) {
      target.data<float>()[i] = static_cast<float>(x[i]);
    }
  }
}

}  // namespace stagecoach
