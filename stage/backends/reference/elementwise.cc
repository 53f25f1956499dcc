#include <algorithm>
#include <cmath>

#include "base/bfloat16.h"
#include "base/check.h"
#include "stage/backends/reference/gelu.h"
#include "stage/backends/reference/reference_backend.h"

namespace stagecoach {

void ReferenceBackend::GeluForward(const GeluForwardArgs& args) {
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  for (int64_t i = 0; i < args.x.elements(); ++i) y[i] = static_cast<float>(Gelu(x[i]));
}

void ReferenceBackend::GeluBackward(const GeluBackwardArgs& args) {
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  float* dx = args.dx.data<float>();
  for (int64_t i = 0; i < args.x.elements(); ++i) {
    dx[i] = static_cast<float>(dy[i] * GeluDerivative(x[i]));
  }
}

void ReferenceBackend::Dropout(const DropoutArgs& args) {
  const uint32_t threshold = DropoutThreshold(args.rate);
  const float scale = static_cast<float>(1.0 / (1.0 - args.rate));
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  for (int64_t i = 0; i < args.x.elements(); ++i) {
    const bool keep = RandomBits(args.stream, static_cast<uint64_t>(i)) >= threshold;
    y[i] = keep ? x[i] * scale : 0.0f;
  }
}

void ReferenceBackend::EmbeddingForward(const EmbeddingForwardArgs& args) {
  const int64_t rows = args.ids.elements(), width = args.token.shape()[1];
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t id = args.ids.data<int32_t>()[r];
    CHECK(id >= 0 && id < args.token.shape()[0]) << "token id " << id;
    const float* token = args.token.data<float>() + id * width;
    float* y = args.y.data<float>() + r * width;
    std::copy_n(token, width, y);
    if (!args.position.valid()) continue;
    const float* position = args.position.data<float>() + r % args.context * width;
    for (int64_t i = 0; i < width; ++i) y[i] += position[i];
  }
}

void ReferenceBackend::EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  const int64_t rows = args.ids.elements(), width = args.d_token.shape()[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* dy = args.dy.data<float>() + r * width;
    float* token = args.d_token.data<float>() + args.ids.data<int32_t>()[r] * width;
    for (int64_t i = 0; i < width; ++i) token[i] += dy[i];
    if (!args.d_position.valid()) continue;
    float* position = args.d_position.data<float>() + r % args.context * width;
    for (int64_t i = 0; i < width; ++i) position[i] += dy[i];
  }
}

void ReferenceBackend::Add(const AddArgs& args) {
  CHECK_EQ(args.x.elements(), args.y.elements()) << "add";
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  for (int64_t i = 0; i < args.x.elements(); ++i) y[i] += x[i];
}

void ReferenceBackend::Fill(const Tensor& tensor, float value) {
  std::fill_n(tensor.data<float>(), tensor.elements(), value);
}

void ReferenceBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const float* x = tensor.data<float>();
  double sum = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) sum += double{x[i]} * x[i];
  result.data<double>()[0] = sum;
}

void ReferenceBackend::Convert(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.elements(), target.elements()) << "convert";
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
