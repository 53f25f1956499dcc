#include "stage/backends/cuda/kernel_backend.h"

#include <algorithm>

#include "base/check.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

// A job may ask for it, so it is the device's error and no bug of ours.
constexpr char kHeadTooWide[] = "attention with heads wider than 128";
static_assert(kMaxHeadWidth == 128);

const float* DataOrNull(const Tensor& tensor) {
  return tensor.valid() ? tensor.data<float>() : nullptr;
}

PhiloxStream StreamOf(const RandomStream& stream) {
  const PhiloxKey key = SeedKey(stream.seed);
  const PhiloxCounter counter = stream.Block(0);
  return {key[0], key[1], counter[1], counter[2], counter[3]};
}

DropoutRule RuleOf(double rate) {
  return {DropoutThreshold(rate), static_cast<float>(1.0 / (1.0 - rate))};
}

AttentionKernelShape ShapeOf(const AttentionShape& shape) {
  CHECK(shape.heads > 0 && shape.width % shape.heads == 0) << "heads must divide the width";
  AttentionKernelShape kernel = {shape.sequences,      shape.context,
                                 shape.heads,          shape.width / shape.heads,
                                 DropoutRule{0, 1.0f}, StreamOf(shape.stream)};
  if (shape.dropout > 0.0) kernel.rule = RuleOf(shape.dropout);
  return kernel;
}

}  // namespace

void KernelBackend::LinearForward(const LinearForwardArgs& args) {
  const int64_t rows = args.x.shape()[0], in = args.weight.shape()[1], out = args.weight.shape()[0];
  CHECK_EQ(args.x.shape()[1], in) << "linear";
  CHECK_EQ(args.y.elements(), rows * out) << "linear";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  Product(
      {.kind = MatmulKind::kForward, .rows = rows, .in = in, .out = out, .bias = args.bias.valid()},
      args.weight.data<float>(), args.x.data<float>(), DataOrNull(args.bias), args.y.data<float>(),
      "LinearForward");
  if (!args.activation.valid()) return;
  Note(Gelu(stream, args.y.data<float>(), args.activation.data<float>(), rows * out),
       "LinearForward");
}

void KernelBackend::LinearBackwardInput(const LinearBackwardInputArgs& args) {
  const int64_t rows = args.dy.shape()[0], in = args.weight.shape()[1];
  const int64_t out = args.weight.shape()[0];
  CHECK_EQ(args.dy.shape()[1], out) << "linear backward";
  CHECK_EQ(args.dx.elements(), rows * in) << "linear backward";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  float* const dx = args.dx.data<float>();
  Product({.kind = MatmulKind::kBackwardInput, .rows = rows, .in = in, .out = out},
          args.weight.data<float>(), args.dy.data<float>(), nullptr, dx, "LinearBackwardInput");
  if (!args.gelu_input.valid()) return;
  Note(cuda::GeluBackward(stream, dx, args.gelu_input.data<float>(), dx, rows * in),
       "LinearBackwardInput");
}

void KernelBackend::LinearBackwardWeight(const LinearBackwardWeightArgs& args) {
  const int64_t rows = args.dy.shape()[0], out = args.dy.shape()[1], in = args.x.shape()[1];
  CHECK_EQ(args.x.shape()[0], rows) << "linear backward";
  CHECK_EQ(args.d_weight.elements(), out * in) << "linear backward";
  if (rows == 0) return;
  const cudaStream_t stream = Begin();
  Product({.kind = MatmulKind::kBackwardWeight, .rows = rows, .in = in, .out = out},
          args.x.data<float>(), args.dy.data<float>(), nullptr, args.d_weight.data<float>(),
          "LinearBackwardWeight");
  if (!args.d_bias.valid()) return;
  const size_t bytes = PlanColumnSum(rows, out, 1).scratch_bytes;
  auto* const scratch = static_cast<float*>(Scratch(bytes, "LinearBackwardWeight"));
  if (scratch == nullptr) return;
  Note(ColumnSum(stream, args.dy.data<float>(), args.d_bias.data<float>(), rows, out, scratch),
       "LinearBackwardWeight");
}

void KernelBackend::LayerNormForward(const LayerNormForwardArgs& args) {
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  CHECK_EQ(args.weight.elements(), shape.width) << "layer norm";
  Note(LayerNorm(Begin(), shape, args.x.data<float>(), args.weight.data<float>(),
                 args.bias.data<float>(), args.epsilon, args.y.data<float>(),
                 args.mean.data<float>(), args.rstd.data<float>()),
       "LayerNormForward");
}

void KernelBackend::LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) {
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  Note(cuda::LayerNormBackwardInput(Begin(), shape, args.dy.data<float>(), args.x.data<float>(),
                                    args.weight.data<float>(), args.mean.data<float>(),
                                    args.rstd.data<float>(), args.dx.data<float>()),
       "LayerNormBackwardInput");
}

void KernelBackend::LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  const cudaStream_t stream = Begin();
  const size_t bytes = PlanColumnSum(shape.rows, shape.width, 2).scratch_bytes;
  auto* const scratch = static_cast<float*>(Scratch(bytes, "LayerNormBackwardWeight"));
  if (scratch == nullptr) return;
  Note(cuda::LayerNormBackwardWeight(stream, shape, args.dy.data<float>(), args.x.data<float>(),
                                     args.mean.data<float>(), args.rstd.data<float>(),
                                     args.d_weight.data<float>(), args.d_bias.data<float>(),
                                     scratch),
       "LayerNormBackwardWeight");
}

void KernelBackend::AttentionForward(const AttentionForwardArgs& args) {
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) return Note(cudaErrorInvalidValue, kHeadTooWide);
  Note(Attention(Begin(), shape, args.qkv.data<float>(), args.out.data<float>(),
                 args.log_sum_exp.data<float>()),
       "AttentionForward");
}

void KernelBackend::AttentionBackward(const AttentionBackwardArgs& args) {
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) return Note(cudaErrorInvalidValue, kHeadTooWide);
  Note(cuda::AttentionBackward(Begin(), shape, args.d_out.data<float>(), args.qkv.data<float>(),
                               args.out.data<float>(), args.log_sum_exp.data<float>(),
                               args.d_qkv.data<float>()),
       "AttentionBackward");
}

void KernelBackend::GeluForward(const GeluForwardArgs& args) {
  Note(Gelu(Begin(), args.x.data<float>(), args.y.data<float>(), args.x.elements()), "GeluForward");
}

void KernelBackend::GeluBackward(const GeluBackwardArgs& args) {
  Note(cuda::GeluBackward(Begin(), args.dy.data<float>(), args.x.data<float>(),
                          args.dx.data<float>(), args.x.elements()),
       "GeluBackward");
}

void KernelBackend::Dropout(const DropoutArgs& args) {
  Note(cuda::Dropout(Begin(), args.x.data<float>(), args.y.data<float>(), args.x.elements(),
                     RuleOf(args.rate), StreamOf(args.stream)),
       "Dropout");
}

void KernelBackend::EmbeddingForward(const EmbeddingForwardArgs& args) {
  const EmbeddingShape shape = {args.ids.elements(), args.token.shape()[1], args.context,
                                args.token.shape()[0]};
  CHECK_GT(shape.context, 0) << "embedding";
  Note(Embedding(Begin(), shape, args.ids.data<int32_t>(), args.token.data<float>(),
                 args.position.data<float>(), args.y.data<float>()),
       "EmbeddingForward");
}

void KernelBackend::EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  const EmbeddingShape shape = {args.ids.elements(), args.d_token.shape()[1], args.context,
                                args.d_token.shape()[0]};
  CHECK_GT(shape.context, 0) << "embedding";
  Note(cuda::EmbeddingBackward(Begin(), shape, args.ids.data<int32_t>(), args.dy.data<float>(),
                               args.d_token.data<float>(), args.d_position.data<float>()),
       "EmbeddingBackward");
}

void KernelBackend::CrossEntropy(const CrossEntropyArgs& args) {
  const int64_t rows = args.logits.shape()[0], vocabulary = args.logits.shape()[1];
  const cudaStream_t stream = Begin();
  auto* const scratch =
      static_cast<double*>(Scratch(static_cast<size_t>(rows) * sizeof(double), "CrossEntropy"));
  if (scratch == nullptr) return;
  float* const d_logits = args.d_logits.valid() ? args.d_logits.data<float>() : nullptr;
  Note(cuda::CrossEntropy(stream, args.logits.data<float>(), args.targets.data<int32_t>(), rows,
                          vocabulary, args.scale, args.loss.data<double>(), d_logits, scratch),
       "CrossEntropy");
}

void KernelBackend::Add(const AddArgs& args) {
  CHECK_EQ(args.x.elements(), args.y.elements()) << "add";
  Note(cuda::Add(Begin(), args.x.data<float>(), args.y.data<float>(), args.x.elements()), "Add");
}

void KernelBackend::Fill(const Tensor& tensor, float value) {
  Note(cuda::Fill(Begin(), tensor.data<float>(), value, tensor.elements()), "Fill");
}

void KernelBackend::Sgd(const SgdArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "sgd";
  float* const velocity = args.velocity.valid() ? args.velocity.data<float>() : nullptr;
  Note(cuda::Sgd(Begin(), args.value.data<float>(), args.gradient.data<float>(), velocity,
                 args.value.elements(),
                 {args.gradient_scale, args.learning_rate, args.momentum, args.weight_decay}),
       "Sgd");
}

void KernelBackend::AdamW(const AdamWArgs& args) {
  CHECK_EQ(args.value.elements(), args.gradient.elements()) << "adamw";
  Note(cuda::AdamW(Begin(), args.value.data<float>(), args.gradient.data<float>(),
                   args.m.data<float>(), args.v.data<float>(), args.value.elements(),
                   {args.gradient_scale, args.learning_rate, args.beta1, args.beta2, args.epsilon,
                    args.weight_decay, args.correction1, args.correction2}),
       "AdamW");
}

void KernelBackend::SquaredNorm(const Tensor& tensor, const Tensor& result) {
  const cudaStream_t stream = Begin();
  const size_t bytes = PlanNorm(tensor.elements()).scratch_bytes;
  auto* const scratch = static_cast<double*>(Scratch(bytes, "SquaredNorm"));
  if (scratch == nullptr) return;
  Note(cuda::SquaredNorm(stream, tensor.data<float>(), tensor.elements(), result.data<double>(),
                         scratch),
       "SquaredNorm");
}

void KernelBackend::Convert(const Tensor& source, const Tensor& target) {
  CHECK_EQ(source.elements(), target.elements()) << "convert";
  if (target.dtype() == DType::kBF16) {
    Note(Narrow(Begin(), source.data<float>(), target.data<uint16_t>(), source.elements()),
         "Convert");
  } else {
    Note(Widen(Begin(), source.data<uint16_t>(), target.data<float>(), source.elements()),
         "Convert");
  }
}

}  // namespace stagecoach::cuda
