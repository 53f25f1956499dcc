// Single operations for compare.py. Shapes are small and odd on purpose: no dimension is a multiple
// of a vector width.
#include "base/random.h"
#include "base/status.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {
namespace {

// Makes the arrays of one operation and records them under its name.
class Scene {
 public:
  Scene(const std::string& name, Backend& backend, Recorder* recorder)
      : prefix_("op/" + name + "/"), backend_(backend), recorder_(recorder) {}

  // An input: normal numbers times scale plus offset.
  absl::StatusOr<Tensor> Normal(const std::string& name, Shape shape, float scale = 1.0f,
                                float offset = 0.0f) {
    std::vector<float> values(shape.elements());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = offset + scale * RandomNormal({.seed = 77, .operation = inputs_}, i);
    }
    ++inputs_;
    return Record(name, DType::kF32, std::move(shape), std::as_bytes(std::span(values)));
  }

  absl::StatusOr<Tensor> Tokens(const std::string& name, Shape shape, uint32_t limit) {
    std::vector<int32_t> values(shape.elements());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int32_t>(RandomBits({.seed = 78, .operation = inputs_}, i) % limit);
    }
    ++inputs_;
    return Record(name, DType::kI32, std::move(shape), std::as_bytes(std::span(values)));
  }

  absl::StatusOr<Tensor> Output(Shape shape, DType dtype = DType::kF32) {
    ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend_.allocator(), MemoryKind::kActivations,
                                               dtype, std::move(shape)));
    if (dtype == DType::kF32) backend_.Fill(tensor, 0.0f);  // for the operations that add
    return tensor;
  }

  void Save(const std::string& name, const Tensor& tensor) {
    recorder_->Add(prefix_ + name, backend_, tensor);
  }

 private:
  absl::StatusOr<Tensor> Record(const std::string& name, DType dtype, Shape shape,
                                std::span<const std::byte> bytes) {
    ASSIGN_OR_RETURN(Tensor tensor, MakeTensor(backend_.allocator(), MemoryKind::kActivations,
                                               dtype, std::move(shape)));
    backend_.CopyFromHost(bytes, tensor);
    RETURN_IF_ERROR(backend_.Synchronize());
    Save(name, tensor);
    return tensor;
  }

  const std::string prefix_;
  Backend& backend_;
  Recorder* const recorder_;
  uint32_t inputs_ = 0;
};

absl::Status RecordLayerNorm(Backend& backend, Recorder* recorder) {
  Scene scene("layer_norm", backend, recorder);
  ASSIGN_OR_RETURN(const Tensor x, scene.Normal("x", {11, 37}, 2.0f, 0.7f));
  ASSIGN_OR_RETURN(const Tensor weight, scene.Normal("weight", {37}, 0.5f, 1.0f));
  ASSIGN_OR_RETURN(const Tensor bias, scene.Normal("bias", {37}));
  ASSIGN_OR_RETURN(const Tensor dy, scene.Normal("dy", {11, 37}));
  ASSIGN_OR_RETURN(const Tensor y, scene.Output({11, 37}));
  ASSIGN_OR_RETURN(const Tensor mean, scene.Output({11}));
  ASSIGN_OR_RETURN(const Tensor rstd, scene.Output({11}));
  ASSIGN_OR_RETURN(const Tensor dx, scene.Output({11, 37}));
  ASSIGN_OR_RETURN(const Tensor d_weight, scene.Output({37}));
  ASSIGN_OR_RETURN(const Tensor d_bias, scene.Output({37}));
  backend.LayerNormForward({x, weight, bias, 1e-5f, y, mean, rstd});
  backend.LayerNormBackwardInput({dy, x, weight, mean, rstd, dx, Tensor()});
  backend.LayerNormBackwardWeight({dy, x, mean, rstd, d_weight, d_bias});
  scene.Save("y", y);
  scene.Save("d_x", dx);
  scene.Save("d_weight", d_weight);
  scene.Save("d_bias", d_bias);
  return backend.Synchronize();
}

absl::Status RecordLinear(Backend& backend, Recorder* recorder) {
  Scene scene("linear_gelu", backend, recorder);
  ASSIGN_OR_RETURN(const Tensor x, scene.Normal("x", {13, 21}));
  ASSIGN_OR_RETURN(const Tensor weight, scene.Normal("weight", {35, 21}, 0.3f));
  ASSIGN_OR_RETURN(const Tensor bias, scene.Normal("bias", {35}));
  ASSIGN_OR_RETURN(const Tensor dy, scene.Normal("dy", {13, 35}));
  ASSIGN_OR_RETURN(const Tensor y, scene.Output({13, 35}));
  ASSIGN_OR_RETURN(const Tensor activation, scene.Output({13, 35}));
  ASSIGN_OR_RETURN(const Tensor dx, scene.Output({13, 21}));
  ASSIGN_OR_RETURN(const Tensor d_weight, scene.Output({35, 21}));
  ASSIGN_OR_RETURN(const Tensor d_bias, scene.Output({35}));
  backend.LinearForward({x, weight, bias, y, activation, Tensor()});
  backend.LinearBackwardInput({dy, weight, Tensor(), dx});
  backend.LinearBackwardWeight({dy, x, d_weight, d_bias});
  scene.Save("y", y);
  scene.Save("activation", activation);
  scene.Save("d_x", dx);
  scene.Save("d_weight", d_weight);
  scene.Save("d_bias", d_bias);
  return backend.Synchronize();
}

absl::Status RecordGelu(Backend& backend, Recorder* recorder) {
  Scene scene("gelu", backend, recorder);
  ASSIGN_OR_RETURN(const Tensor x, scene.Normal("x", {9, 45}, 3.0f));
  ASSIGN_OR_RETURN(const Tensor dy, scene.Normal("dy", {9, 45}));
  ASSIGN_OR_RETURN(const Tensor y, scene.Output({9, 45}));
  ASSIGN_OR_RETURN(const Tensor dx, scene.Output({9, 45}));
  backend.GeluForward({x, y});
  backend.GeluBackward({dy, x, dx});
  scene.Save("y", y);
  scene.Save("d_x", dx);
  return backend.Synchronize();
}

// Once without dropout against PyTorch's attention; once with it, the mask drawn by compare.py's
// own Philox.
absl::Status RecordAttention(const std::string& name, double dropout, Backend& backend,
                             Recorder* recorder) {
  Scene scene(name, backend, recorder);
  const AttentionShape shape{.sequences = 3,
                             .context = 19,
                             .heads = 3,
                             .width = 33,
                             .dropout = dropout,
                             .stream = {12345678901234, 6, 2, 9, 1}};
  const int64_t rows = shape.sequences * shape.context;
  ASSIGN_OR_RETURN(const Tensor qkv, scene.Normal("qkv", {rows, 3 * shape.width}));
  ASSIGN_OR_RETURN(const Tensor d_out, scene.Normal("d_out", {rows, shape.width}));
  ASSIGN_OR_RETURN(const Tensor out, scene.Output({rows, shape.width}));
  ASSIGN_OR_RETURN(const Tensor log_sum_exp,
                   scene.Output({shape.sequences, shape.heads, shape.context}));
  ASSIGN_OR_RETURN(const Tensor d_qkv, scene.Output({rows, 3 * shape.width}));
  backend.AttentionForward({shape, qkv, out, log_sum_exp});
  backend.AttentionBackward({shape, d_out, qkv, out, log_sum_exp, d_qkv});
  scene.Save("out", out);
  scene.Save("log_sum_exp", log_sum_exp);
  scene.Save("d_qkv", d_qkv);
  return backend.Synchronize();
}

absl::Status RecordDropout(Backend& backend, Recorder* recorder) {
  Scene scene("dropout", backend, recorder);
  ASSIGN_OR_RETURN(const Tensor x, scene.Normal("x", {17, 31}));
  ASSIGN_OR_RETURN(const Tensor y, scene.Output({17, 31}));
  backend.Dropout({x, y, 0.3, {12345678901234, 6, 2, 9, 1}});
  scene.Save("y", y);
  return backend.Synchronize();
}

absl::Status RecordEmbedding(Backend& backend, Recorder* recorder) {
  Scene scene("embedding", backend, recorder);
  constexpr int64_t kContext = 7, kWidth = 10;
  ASSIGN_OR_RETURN(const Tensor ids, scene.Tokens("ids", {3 * kContext}, 5));
  ASSIGN_OR_RETURN(const Tensor token, scene.Normal("token", {5, kWidth}));
  ASSIGN_OR_RETURN(const Tensor position, scene.Normal("position", {kContext, kWidth}));
  ASSIGN_OR_RETURN(const Tensor dy, scene.Normal("dy", {3 * kContext, kWidth}));
  ASSIGN_OR_RETURN(const Tensor y, scene.Output({3 * kContext, kWidth}));
  ASSIGN_OR_RETURN(const Tensor d_token, scene.Output({5, kWidth}));
  ASSIGN_OR_RETURN(const Tensor d_position, scene.Output({kContext, kWidth}));
  backend.EmbeddingForward({ids, token, position, kContext, y});
  backend.EmbeddingBackward({ids, dy, kContext, d_token, d_position});
  scene.Save("y", y);
  scene.Save("d_token", d_token);
  scene.Save("d_position", d_position);
  return backend.Synchronize();
}

absl::Status RecordCrossEntropy(Backend& backend, Recorder* recorder) {
  Scene scene("cross_entropy", backend, recorder);
  ASSIGN_OR_RETURN(const Tensor logits, scene.Normal("logits", {23, 61}, 4.0f));
  ASSIGN_OR_RETURN(const Tensor targets, scene.Tokens("targets", {23}, 61));
  ASSIGN_OR_RETURN(const Tensor loss, scene.Output({1}, DType::kF64));
  ASSIGN_OR_RETURN(const Tensor d_logits, scene.Output({23, 61}));
  backend.CrossEntropy({logits, targets, 1.0f / 23, loss, d_logits});
  scene.Save("loss", loss);
  scene.Save("d_logits", d_logits);
  return backend.Synchronize();
}

}  // namespace

absl::Status RecordOperations(Backend& backend, Recorder* recorder) {
  RETURN_IF_ERROR(RecordLayerNorm(backend, recorder));
  RETURN_IF_ERROR(RecordLinear(backend, recorder));
  RETURN_IF_ERROR(RecordGelu(backend, recorder));
  RETURN_IF_ERROR(RecordAttention("attention", 0.0, backend, recorder));
  RETURN_IF_ERROR(RecordAttention("attention_dropout", 0.3, backend, recorder));
  RETURN_IF_ERROR(RecordDropout(backend, recorder));
  RETURN_IF_ERROR(RecordEmbedding(backend, recorder));
  return RecordCrossEntropy(backend, recorder);
}

}  // namespace stagecoach
