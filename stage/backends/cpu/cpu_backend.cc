#include "stage/backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/bfloat16.h"
#include "base/check.h"
#include "stage/backends/cpu/kernels.h"

namespace stagecoach::cpu {
namespace {

// Block sizes depend on nothing but this file: they are part of the numerics where a block is the
// unit of a sum (SquaredNorm), and of the balance between threads elsewhere.
constexpr int64_t kElementBlock = 16384;  // 64 KiB of floats; a multiple of 4 random words
constexpr int64_t kRowBlock = 32;
constexpr int64_t kColumnBlock = 64;

}  // namespace

CpuBackend::CpuBackend(const BackendOptions& options)
    : allocator_(MakeHostAllocator(options.memory_limit_bytes)),
      pool_(std::max(1, options.threads), options.worker_nice),
      workspace_(allocator_.get(), pool_.threads() + 1) {}

std::string CpuBackend::fingerprint() const {
  return absl::StrCat("cpu ", OneDnnFingerprint(), " kernels ", KernelTarget());
}

void CpuBackend::ForEachBlock(int64_t total, int64_t block, BlockBody body) {
  pool_.Run((total + block - 1) / block, [&](int64_t task, int worker) {
    const int64_t first = task * block;
    body(first, std::min(block, total - first), worker);
  });
}

bool CpuBackend::ReserveWorkers(int64_t bytes) {
  for (int worker = 0; worker < pool_.threads(); ++worker) {
    if (workspace_.Reserve(worker, std::max<int64_t>(bytes, 64)) == nullptr) return false;
  }
  return true;
}

void CpuBackend::LayerNormForward(const LayerNormForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  CHECK_EQ(args.weight.elements(), width) << "layer norm";
  const float *x = args.x.data<float>(), *weight = args.weight.data<float>();
  const float* bias = args.bias.data<float>();
  float *y = args.y.data<float>(), *mean = args.mean.data<float>();
  float* rstd = args.rstd.data<float>();
  ForEachBlock(rows, kRowBlock, [&](int64_t first, int64_t count, int) {
    LayerNormRows(x + first * width, weight, bias, args.epsilon, y + first * width, mean + first,
                  rstd + first, count, width);
  });
}

void CpuBackend::LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  const float *weight = args.weight.data<float>(), *mean = args.mean.data<float>();
  const float* rstd = args.rstd.data<float>();
  float* dx = args.dx.data<float>();
  ForEachBlock(rows, kRowBlock, [&](int64_t first, int64_t count, int) {
    LayerNormBackwardRows(dy + first * width, x + first * width, weight, mean + first, rstd + first,
                          dx + first * width, count, width);
  });
}

void CpuBackend::LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  const int64_t rows = args.x.shape()[0], width = args.x.shape()[1];
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  const float *mean = args.mean.data<float>(), *rstd = args.rstd.data<float>();
  float *d_weight = args.d_weight.data<float>(), *d_bias = args.d_bias.data<float>();
  ForEachBlock(width, kColumnBlock, [&](int64_t first, int64_t count, int) {
    LayerNormBackwardColumns(dy + first, x + first, mean, rstd, d_weight + first, d_bias + first,
                             rows, width, count);
  });
}

void CpuBackend::GeluForward(const GeluForwardArgs& args) {
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  ForEachBlock(args.x.elements(), kElementBlock,
               [&](int64_t first, int64_t count, int) { Gelu(x + first, y + first, count); });
}

void CpuBackend::GeluBackward(const GeluBackwardArgs& args) {
  const float *dy = args.dy.data<float>(), *x = args.x.data<float>();
  float* dx = args.dx.data<float>();
  ForEachBlock(args.x.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    cpu::GeluBackward(dy + first, x + first, dx + first, count);
  });
}

void CpuBackend::Dropout(const DropoutArgs& args) {
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  ForEachBlock(args.x.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    DropoutRange(x + first, y + first, first, count, args.rate, args.stream);
  });
}

void CpuBackend::EmbeddingForward(const EmbeddingForwardArgs& args) {
  const int64_t rows = args.ids.elements(), width = args.token.shape()[1];
  const int32_t* ids = args.ids.data<int32_t>();
  const float *token = args.token.data<float>(), *position = args.position.data<float>();
  float* y = args.y.data<float>();
  ForEachBlock(rows, kRowBlock, [&](int64_t first, int64_t count, int) {
    for (int64_t r = first; r < first + count; ++r) {
      CHECK(ids[r] >= 0 && ids[r] < args.token.shape()[0]) << "token id " << ids[r];
      AddRows(token + ids[r] * width, position + r % args.context * width, y + r * width, width);
    }
  });
}

// A task owns a range of columns of both tables and walks all rows in order.
void CpuBackend::EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  const int64_t rows = args.ids.elements(), width = args.d_token.shape()[1];
  const int32_t* ids = args.ids.data<int32_t>();
  const float* dy = args.dy.data<float>();
  float *token = args.d_token.data<float>(), *position = args.d_position.data<float>();
  ForEachBlock(width, kColumnBlock, [&](int64_t first, int64_t count, int) {
    for (int64_t r = 0; r < rows; ++r) {
      CHECK(ids[r] >= 0 && ids[r] < args.d_token.shape()[0]) << "token id " << ids[r];
      AddTo(dy + r * width + first, token + ids[r] * width + first, count);
      AddTo(dy + r * width + first, position + r % args.context * width + first, count);
    }
  });
}

void CpuBackend::CrossEntropy(const CrossEntropyArgs& args) {
  const int64_t rows = args.logits.shape()[0], vocabulary = args.logits.shape()[1];
  const float* logits = args.logits.data<float>();
  const int32_t* targets = args.targets.data<int32_t>();
  float* d_logits = args.d_logits.valid() ? args.d_logits.data<float>() : nullptr;
  auto* losses = reinterpret_cast<double*>(
      ReserveShared(std::max<int64_t>(rows, 1) * static_cast<int64_t>(sizeof(double))));
  if (losses == nullptr) return;
  ForEachBlock(rows, kRowBlock, [&](int64_t first, int64_t count, int) {
    for (int64_t r = first; r < first + count; ++r) {
      CHECK(targets[r] >= 0 && targets[r] < vocabulary) << "target " << targets[r];
      losses[r] =
          CrossEntropyRow(logits + r * vocabulary, targets[r], args.scale,
                          d_logits == nullptr ? nullptr : d_logits + r * vocabulary, vocabulary);
    }
  });
  double loss = 0;
  for (int64_t r = 0; r < rows; ++r) loss += losses[r];
  args.loss.data<double>()[0] = loss;
}

void CpuBackend::Add(const AddArgs& args) {
  CHECK_EQ(args.x.elements(), args.y.elements()) << "add";
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  ForEachBlock(args.x.elements(), kElementBlock,
               [&](int64_t first, int64_t count, int) { AddTo(x + first, y + first, count); });
}

void CpuBackend::Fill(const Tensor& tensor, float value) {
  float* y = tensor.data<float>();
  ForEachBlock(tensor.elements(), kElementBlock,
               [&](int64_t first, int64_t count, int) { FillWith(y + first, value, count); });
}

void CpuBackend::Sgd(const SgdArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "sgd";
  const SgdFactors factors = {args.gradient_scale, args.learning_rate, args.momentum,
                              args.weight_decay};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float* velocity = args.velocity.valid() ? args.velocity.data<float>() : nullptr;
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    SgdRange(value + first, gradient + first, velocity == nullptr ? nullptr : velocity + first,
             count, factors);
  });
}

void CpuBackend::AdamW(const AdamWArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "adamw";
  const AdamWFactors factors = {args.gradient_scale, args.learning_rate, args.beta1,
                                args.beta2,          args.epsilon,       args.weight_decay,
                                args.correction1,    args.correction2};
  float *value = args.value.data<float>(), *gradient = args.gradient.data<float>();
  float *m = args.m.data<float>(), *v = args.v.data<float>();
  ForEachBlock(args.value.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    AdamWRange(value + first, gradient + first, m + first, v + first, count, factors);
  });
}

void CpuBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const float* x = tensor.data<float>();
  const int64_t blocks = (tensor.elements() + kElementBlock - 1) / kElementBlock;
  auto* partial = reinterpret_cast<double*>(
      ReserveShared(std::max<int64_t>(blocks, 1) * static_cast<int64_t>(sizeof(double))));
  if (partial == nullptr) return;
  ForEachBlock(tensor.elements(), kElementBlock, [&](int64_t first, int64_t count, int) {
    partial[first / kElementBlock] = SumOfSquares(x + first, count);
  });
  double sum = 0;
  for (int64_t i = 0; i < blocks; ++i) sum += partial[i];
  result.data<double>()[0] = sum;
}

void CpuBackend::CopyFromHost(std::span<const std::byte> source, const Tensor& target) {
  CHECK_EQ(static_cast<int64_t>(source.size()), target.bytes()) << target.shape().ToString();
  // memcpy may not be given the null pointer of an empty span, whatever the size.
  if (!source.empty()) std::memcpy(target.raw(), source.data(), source.size());
}

void CpuBackend::CopyToHost(const Tensor& source, std::span<std::byte> target) {
  CHECK_EQ(static_cast<int64_t>(target.size()), source.bytes()) << source.shape().ToString();
  if (!target.empty()) std::memcpy(target.data(), source.raw(), target.size());
}

void CpuBackend::Convert(const Tensor& source, const Tensor& target) {
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

}  // namespace stagecoach::cpu

namespace stagecoach {

std::unique_ptr<Backend> MakeCpuBackend(const BackendOptions& options) {
  return std::make_unique<cpu::CpuBackend>(options);
}

}  // namespace stagecoach
