#include "stage/backends/cuda/kernel_backend.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "stage/backends/cuda/element_types.h"
#include "stage/backends/cuda/kernel_list.h"
#include "stage/backends/cuda/kernels.h"
#include "stage/backends/cuda/launch_config.h"

namespace stagecoach::cuda {
namespace {

// A job may ask for it, so it is the job's error and no bug of ours.
absl::Status HeadsTooWide(int64_t head_width) {
  return absl::InvalidArgumentError(absl::StrCat("heads are ", head_width,
                                                 " wide, attention on a card takes ", kMaxHeadWidth,
                                                 " at most; use more heads, or another device"));
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
  CHECK_EQ(shape.heads % shape.keys(), 0) << "key heads must divide the heads";
  AttentionKernelShape kernel = {shape.sequences,       shape.context,      shape.heads,
                                 shape.keys(),          shape.head_width(), DropoutRule{0, 1.0f},
                                 StreamOf(shape.stream)};
  if (shape.dropout > 0.0) kernel.rule = RuleOf(shape.dropout);
  return kernel;
}

}  // namespace

const KernelTable<KernelBackend>& Kernels() {
  static const auto* const table = new KernelTable<KernelBackend>("cuda", KernelLists());
  return *table;
}

absl::StatusOr<Kernel> KernelBackend::Prepare(const Call& call, const CallTypes& types,
                                              DType activation) {
  return Kernels().Prepare(*this, call, types, activation);
}

void KernelBackend::LayerNormForward(const LayerNormForwardArgs& args) {
  constexpr char kWhat[] = "LayerNormForward";
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  CHECK_EQ(args.weight.elements(), shape.width) << kWhat;
  CheckType(kWhat, DType::kF32, {&args.weight, &args.bias, &args.mean, &args.rstd});
  WithType(TypeOf(kWhat, {&args.x, &args.y}), [&]<typename T>(T) {
    Note(LayerNorm(Begin(), shape, args.x.data<T>(), args.weight.data<float>(),
                   args.bias.data<float>(), args.epsilon, args.y.data<T>(), args.mean.data<float>(),
                   args.rstd.data<float>()),
         kWhat);
  });
}

void KernelBackend::LayerNormBackwardInput(const LayerNormBackwardInputArgs& args) {
  constexpr char kWhat[] = "LayerNormBackwardInput";
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  CheckType(kWhat, DType::kF32, {&args.weight, &args.mean, &args.rstd});
  CHECK(!args.residual.valid() || args.residual.elements() == args.dx.elements()) << kWhat;
  WithType(TypeOf(kWhat, {&args.dy, &args.x, &args.dx, &args.residual}), [&]<typename T>(T) {
    Note(cuda::LayerNormBackwardInput(Begin(), shape, args.dy.data<T>(), args.x.data<T>(),
                                      args.weight.data<float>(), args.mean.data<float>(),
                                      args.rstd.data<float>(), DataOrNull<T>(args.residual),
                                      args.dx.data<T>()),
         kWhat);
  });
}

void KernelBackend::LayerNormBackwardWeight(const LayerNormBackwardWeightArgs& args) {
  constexpr char kWhat[] = "LayerNormBackwardWeight";
  const LayerNormShape shape = {args.x.shape()[0], args.x.shape()[1]};
  CheckType(kWhat, DType::kF32, {&args.mean, &args.rstd, &args.d_weight, &args.d_bias});
  const cudaStream_t stream = Begin();
  const size_t bytes = PlanColumnSum(shape.rows, shape.width, 2, 1).scratch_bytes;
  auto* const scratch = static_cast<float*>(Scratch(bytes, kWhat));
  if (scratch == nullptr) return;
  WithType(TypeOf(kWhat, {&args.dy, &args.x}), [&]<typename T>(T) {
    Note(cuda::LayerNormBackwardWeight(stream, shape, args.dy.data<T>(), args.x.data<T>(),
                                       args.mean.data<float>(), args.rstd.data<float>(),
                                       args.d_weight.data<float>(), args.d_bias.data<float>(),
                                       scratch),
         kWhat);
  });
}

void KernelBackend::AttentionForward(const AttentionForwardArgs& args) {
  constexpr char kWhat[] = "AttentionForward";
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) {
    return fault().NoteStatus(HeadsTooWide(shape.head_width), kWhat);
  }
  WithType(TypeOf(kWhat, {&args.qkv, &args.out}), [&]<typename T>(T) {
    Note(Attention(Begin(), shape, args.qkv.data<T>(), args.out.data<T>(),
                   args.log_sum_exp.data<float>()),
         kWhat);
  });
}

void KernelBackend::AttentionBackward(const AttentionBackwardArgs& args) {
  constexpr char kWhat[] = "AttentionBackward";
  const AttentionKernelShape shape = ShapeOf(args.shape);
  if (shape.head_width > kMaxHeadWidth) {
    return fault().NoteStatus(HeadsTooWide(shape.head_width), kWhat);
  }
  WithType(TypeOf(kWhat, {&args.d_out, &args.qkv, &args.out, &args.d_qkv}), [&]<typename T>(T) {
    Note(cuda::AttentionBackward(Begin(), shape, args.d_out.data<T>(), args.qkv.data<T>(),
                                 args.out.data<T>(), args.log_sum_exp.data<float>(),
                                 args.d_qkv.data<T>()),
         kWhat);
  });
}

void KernelBackend::GeluForward(const GeluForwardArgs& args) {
  constexpr char kWhat[] = "GeluForward";
  WithType(TypeOf(kWhat, {&args.x, &args.y}), [&]<typename T>(T) {
    Note(Gelu(Begin(), args.x.data<T>(), args.y.data<T>(), args.x.elements()), kWhat);
  });
}

void KernelBackend::GeluBackward(const GeluBackwardArgs& args) {
  constexpr char kWhat[] = "GeluBackward";
  WithType(TypeOf(kWhat, {&args.dy, &args.x, &args.dx}), [&]<typename T>(T) {
    Note(cuda::GeluBackward(Begin(), args.dy.data<T>(), args.x.data<T>(), args.dx.data<T>(),
                            args.x.elements()),
         kWhat);
  });
}

void KernelBackend::Dropout(const DropoutArgs& args) {
  constexpr char kWhat[] = "Dropout";
  WithType(TypeOf(kWhat, {&args.x, &args.y}), [&]<typename T>(T) {
    Note(cuda::Dropout(Begin(), args.x.data<T>(), args.y.data<T>(), args.x.elements(),
                       RuleOf(args.rate), StreamOf(args.stream)),
         kWhat);
  });
}

void KernelBackend::EmbeddingForward(const EmbeddingForwardArgs& args) {
  constexpr char kWhat[] = "EmbeddingForward";
  const EmbeddingShape shape = {args.ids.elements(), args.token.shape()[1], args.context,
                                args.token.shape()[0]};
  CHECK_GT(shape.context, 0) << "embedding";
  WithType(TypeOf(kWhat, {&args.token, &args.position, &args.y}), [&]<typename T>(T) {
    Note(Embedding(Begin(), shape, args.ids.data<int32_t>(), args.token.data<T>(),
                   DataOrNull<T>(args.position), args.y.data<T>()),
         kWhat);
  });
}

void KernelBackend::EmbeddingBackward(const EmbeddingBackwardArgs& args) {
  constexpr char kWhat[] = "EmbeddingBackward";
  const EmbeddingShape shape = {args.ids.elements(), args.d_token.shape()[1], args.context,
                                args.d_token.shape()[0]};
  CHECK_GT(shape.context, 0) << "embedding";
  CheckType(kWhat, DType::kF32, {&args.d_token, &args.d_position});
  WithType(TypeOf(kWhat, {&args.dy}), [&]<typename T>(T) {
    Note(cuda::EmbeddingBackward(Begin(), shape, args.ids.data<int32_t>(), args.dy.data<T>(),
                                 args.d_token.data<float>(), DataOrNull<float>(args.d_position)),
         kWhat);
  });
}

void KernelBackend::Add(const AddArgs& args) {
  constexpr char kWhat[] = "Add";
  CHECK_EQ(args.x.elements(), args.y.elements()) << kWhat;
  WithType(TypeOf(kWhat, {&args.x, &args.y}), [&]<typename T>(T) {
    Note(cuda::Add(Begin(), args.x.data<T>(), args.y.data<T>(), args.x.elements()), kWhat);
  });
}

void KernelBackend::Fill(const Tensor& tensor, float value) {
  WithType(TypeOf("Fill", {&tensor}), [&]<typename T>(T) {
    Note(cuda::Fill(Begin(), tensor.data<T>(), value, tensor.elements()), "Fill");
  });
}

void KernelBackend::Convert(const Tensor& source, const Tensor& target) {
  constexpr char kWhat[] = "Convert";
  CHECK_EQ(source.elements(), target.elements()) << kWhat;
  const DType from = TypeOf(kWhat, {&source}), to = TypeOf(kWhat, {&target});
  CHECK(from != to) << kWhat << " from " << DTypeName(from) << " to itself";
  if (to == DType::kBF16) {
    Note(cuda::Convert(Begin(), source.data<float>(), target.data<Bf16>(), source.elements()),
         kWhat);
  } else {
    Note(cuda::Convert(Begin(), source.data<Bf16>(), target.data<float>(), source.elements()),
         kWhat);
  }
}

}  // namespace stagecoach::cuda
