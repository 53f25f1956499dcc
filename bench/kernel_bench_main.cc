// kernel-bench: what the cpu back end's operations reach of one core's multiply-add peak, at the
// shapes of a small GPT (6 layers, width 384, 6 heads, context 256, vocabulary 256, 4 sequences).
//
// Every round runs each operation of a layer once, in training order, so that an operation finds
// the caches as training leaves them; the peak is measured in every round too. The table shows
// medians over the rounds (other work on the machine disturbs single rounds) and the best round.
// A second table has the same operations in BF16, run in the same rounds; its peak is the one of
// float32, which BF16 instructions may pass.
//
//   kernel-bench [rounds] [threads] [dropout rate]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "bench/fma_peak.h"
#include "operations/attention/attention.h"
#include "operations/linear.h"
#include "operations/norms/layer_norm.h"
#include "operations/pointwise/dropout.h"
#include "stage/backends/backend.h"
#include "stage/backends/loss_testing.h"
#include "stage/backends/operation_testing.h"
#include "stage/backends/update_calls.h"

namespace stagecoach {

namespace {

constexpr int64_t kLayers = 6, kWidth = 384, kHeads = 6, kContext = 256, kVocabulary = 256;
constexpr int64_t kSequences = 4, kRows = kSequences * kContext, kInner = 4 * kWidth;

// Seconds of this thread's own computing, so that other programs on the machine cost less accuracy;
// of the wall clock when there are more threads to wait for.
bool g_wall_clock = false;

double Now() { return g_wall_clock ? WallSeconds() : ThreadSeconds(); }

double SecondsOf(const std::function<void()>& work) {
  const double start = Now();
  work();
  return Now() - start;
}

enum class Kind { kProduct, kAttention, kOther };

struct Operation {
  std::string name;
  Kind kind;
  double flops;   // of the model: attention counted in full, not only below the diagonal
  int64_t times;  // in a micro-batch of the whole model; 0: once per step
  std::function<void()> run;
  std::vector<double> seconds = {};

  double Median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double Best() const { return *std::min_element(seconds.begin(), seconds.end()); }
};

// The tensors of one layer and the operations on them.
class Model {
 public:
  Model(Backend& backend, DType dtype, double dropout)
      : backend_(backend), dtype_(dtype), dropout_(dropout) {}

  std::vector<Operation> Operations();

 private:
  Tensor New(Shape shape, float scale = 1.0f) {
    auto tensor =
        MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kF32, std::move(shape));
    CHECK_OK(tensor.status());
    const RandomStream stream = {.seed = 7, .operation = streams_++};
    for (int64_t i = 0; i < tensor->elements(); ++i) {
      tensor->data<float>()[i] = scale * RandomNormal(stream, static_cast<uint64_t>(i));
    }
    return *std::move(tensor);
  }
  // An activation, or a weight as operations read it: of the model's type.
  Tensor Typed(Shape shape, float scale = 1.0f) {
    const Tensor values = New(shape, scale);
    if (dtype_ == DType::kF32) return values;
    auto tensor = MakeTensor(backend_.allocator(), MemoryKind::kActivations, dtype_, shape);
    CHECK_OK(tensor.status());
    backend_.Convert(values, *tensor);
    return *std::move(tensor);
  }
  Tensor NewIds() {
    auto tensor = MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kI32, {kRows});
    CHECK_OK(tensor.status());
    for (int64_t i = 0; i < kRows; ++i) {
      tensor->data<int32_t>()[i] =
          static_cast<int32_t>(RandomBits({.seed = 9}, static_cast<uint64_t>(i)) % kVocabulary);
    }
    return *std::move(tensor);
  }

  struct Around {
    bool gelu_after = false, gelu_before = false;
    bool ends_branch = false;  // of a residual, which it adds unless a dropout comes behind
  };
  void Push(std::string name, Kind kind, double flops, int64_t times, const TensorCall& call) {
    operations_.push_back({std::move(name), kind, flops, times, PrepareOn(backend_, call)});
  }
  void AddLinear(const std::string& name, int64_t in, int64_t out, int64_t times, Around around);
  void AddLayerNorm();
  void AddAttention();
  void AddRest();
  void AddOptimizers();

  Backend& backend_;
  const DType dtype_;
  const double dropout_;
  uint32_t streams_ = 0;
  std::vector<Operation> operations_;
};

void Model::AddLinear(const std::string& name, int64_t in, int64_t out, int64_t times,
                      Around around) {
  const double flops = 2.0 * kRows * static_cast<double>(in * out);
  const Tensor x = Typed({kRows, in}), weight = Typed({out, in}, 0.05f), bias = Typed({out});
  const Tensor y = Typed({kRows, out}), dx = Typed({kRows, in});
  const Tensor d_weight = New({out, in}), d_bias = New({out});
  const bool residual = around.ends_branch && dropout_ == 0.0, gelu = around.gelu_after;
  const LinearAttributes attributes = {.bias = true, .residual = residual, .gelu = gelu};
  TensorCall forward{.operation = "linear",
                     .attributes = ToAttributes(attributes),
                     .inputs = {x, Whole(weight), Whole(bias)},
                     .outputs = {y}};
  if (residual) forward.inputs.push_back(Typed({kRows, out}));
  if (gelu) forward.outputs.push_back(Typed({kRows, out}));
  TensorCall input{
      .operation = "linear_input_gradient",
      .attributes = ToAttributes(LinearInputGradientAttributes{.gelu = around.gelu_before}),
      .inputs = {y, Whole(weight)},
      .outputs = {dx}};
  if (around.gelu_before) input.inputs.push_back(x);
  const TensorCall weights{.operation = "linear_weight_gradient",
                           .attributes = ToAttributes(LinearWeightGradientAttributes{.bias = true}),
                           .inputs = {y, x},
                           .adds = {d_weight, d_bias}};
  Push(name + " forward", Kind::kProduct, flops, times, forward);
  Push(name + " backward input", Kind::kProduct, flops, times, input);
  Push(name + " backward weight", Kind::kProduct, flops, times, weights);
}

void Model::AddLayerNorm() {
  const int64_t times = 2 * kLayers + 1;
  const Tensor x = Typed({kRows, kWidth}), weight = New({kWidth}), bias = New({kWidth});
  const Tensor y = Typed({kRows, kWidth}), mean = New({kRows}), rstd = New({kRows});
  const Tensor dx = Typed({kRows, kWidth}), d_weight = New({kWidth}), d_bias = New({kWidth});
  const Tensor residual = Typed({kRows, kWidth});
  Push("layer norm forward", Kind::kOther, 0, times,
       {.operation = "layer_norm",
        .inputs = {x, Whole(weight), Whole(bias)},
        .outputs = {y, mean, rstd}});
  Push("layer norm backward input", Kind::kOther, 0, times,
       {.operation = "layer_norm_input_gradient",
        .attributes = ToAttributes(LayerNormGradientAttributes{.residual = true}),
        .inputs = {y, x, Whole(weight), mean, rstd, residual},
        .outputs = {dx}});
  Push("layer norm backward weight", Kind::kOther, 0, times,
       {.operation = "layer_norm_weight_gradient",
        .inputs = {y, x, mean, rstd},
        .adds = {d_weight, d_bias}});
}

void Model::AddAttention() {
  const Attributes attributes =
      ToAttributes(AttentionAttributes{.heads = kHeads, .dropout = dropout_});
  const RandomStream stream = {.seed = 5, .layer = 1};
  const Tensor qkv = Typed({kRows, 3 * kWidth}), out = Typed({kRows, kWidth});
  const Tensor statistics = New({kSequences, kHeads, kContext});
  const Tensor d_out = Typed({kRows, kWidth}), d_qkv = Typed({kRows, 3 * kWidth});
  const double flops = 4.0 * kRows * kContext * kWidth;
  Push("attention forward", Kind::kAttention, flops, kLayers,
       {.operation = "attention",
        .attributes = attributes,
        .inputs = {qkv},
        .outputs = {out, statistics},
        .samples = kSequences,
        .stream = stream});
  Push("attention backward", Kind::kAttention, 2 * flops, kLayers,
       {.operation = "attention_gradient",
        .attributes = attributes,
        .inputs = {d_out, qkv, out, statistics},
        .outputs = {d_qkv},
        .samples = kSequences,
        .stream = stream});
}

void Model::AddRest() {
  const Tensor a = Typed({kRows, kWidth}), b = Typed({kRows, kWidth});
  const Tensor ids = NewIds(), targets = NewIds();
  const Tensor token = Typed({kVocabulary, kWidth}), position = Typed({kContext, kWidth});
  const Tensor d_token = New({kVocabulary, kWidth}), d_position = New({kContext, kWidth});
  const Tensor logits = Typed({kRows, kVocabulary}), d_logits = Typed({kRows, kVocabulary});
  auto loss = MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kF64, {2});
  CHECK_OK(loss.status());
  const Tensor scale = New({1});
  backend_.Fill(scale, 1.0f / kRows);
  if (dropout_ > 0.0) {
    Push("residual add", Kind::kOther, 0, 2 * kLayers,
         {.operation = "add", .inputs = {a, b}, .outputs = {b}});
    Push("dropout", Kind::kOther, 0, 4 * kLayers + 2,
         {.operation = "dropout",
          .attributes = ToAttributes(DropoutAttributes{.rate = dropout_}),
          .inputs = {a},
          .outputs = {b}});
  }
  Push("embedding forward", Kind::kOther, 0, 1,
       {.operation = "embedding",
        .inputs = {ids, Whole(token), Whole(position)},
        .outputs = {a},
        .samples = kSequences});
  Push("embedding backward", Kind::kOther, 0, 1,
       {.operation = "embedding_weight_gradient",
        .inputs = {ids, a},
        .adds = {d_token, d_position},
        .samples = kSequences});
  operations_.push_back({"cross entropy", Kind::kOther, 0, 1, [=, this, loss = *loss] {
                           RunLoss(backend_, {logits, targets, loss, scale, d_logits});
                         }});
}

void Model::AddOptimizers() {
  const int64_t parameters = kLayers * 12 * kWidth * kWidth + 2 * kVocabulary * kWidth;
  const Tensor value = New({parameters}), gradient = New({parameters});
  const Tensor m = New({parameters}), v = New({parameters});
  backend_.Fill(v, 1.0f);
  const Tensor compute = dtype_ == DType::kF32 ? Tensor() : Typed({parameters});
  auto norm = MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kF64, {1});
  CHECK_OK(norm.status());
  Tensors changed = {gradient, value, m, v};
  if (compute.valid()) changed.push_back(compute);
  absl::StatusOr<PreparedUpdates> update = PreparedUpdates::Prepare(
      backend_, {{.operation = "adamw_update", .adds = std::move(changed)}});
  CHECK_OK(update.status());
  operations_.push_back({"AdamW, all parameters", Kind::kOther, 0, 0,
                         [update = std::make_shared<PreparedUpdates>(*std::move(update))] {
                           update->Run({.learning_rate = 1e-4});
                         }});
  operations_.push_back({"squared norm, all parameters", Kind::kOther, 0, 0,
                         [=, this, norm = *norm] { backend_.SquaredNorm(gradient, norm); }});
  operations_.push_back({"zero gradients, all parameters", Kind::kOther, 0, 0,
                         [=, this] { backend_.Fill(gradient, 0.0f); }});
}

std::vector<Operation> Model::Operations() {
  AddLayerNorm();
  AddLinear("query, key, value", kWidth, 3 * kWidth, kLayers, {});
  AddAttention();
  AddLinear("attention output", kWidth, kWidth, kLayers, {.ends_branch = true});
  AddLinear("expand + gelu", kWidth, kInner, kLayers, {.gelu_after = true});
  AddLinear("contract + gelu'", kInner, kWidth, kLayers,
            {.gelu_before = true, .ends_branch = true});
  AddRest();
  AddLinear("head", kWidth, kVocabulary, 1, {});
  AddOptimizers();
  return std::move(operations_);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of a micro-batch in one round.
double RoundSeconds(const std::vector<Operation>& operations, int round) {
  double seconds = 0;
  for (const Operation& o : operations) seconds += static_cast<double>(o.times) * o.seconds[round];
  return seconds;
}

struct Total {
  double median = 0, best = 0, flops = 0;
  void Add(const Operation& o) {
    const auto times = static_cast<double>(o.times);
    median += times * o.Median();
    best += times * o.Best();
    flops += times * o.flops;
  }
};

void PrintTable(const std::vector<Operation>& operations, double peak, double best_peak) {
  Total all, by_kind[3];
  double causal_saving = 0;
  for (const Operation& o : operations) {
    all.Add(o);
    by_kind[static_cast<int>(o.kind)].Add(o);
    if (o.kind == Kind::kAttention) causal_saving += static_cast<double>(o.times) * o.flops / 2;
  }
  std::printf("%-31s %5s %9s %9s %9s %7s %7s\n", "operation", "times", "median ms", "best ms",
              "GFLOP/s", "% peak", "% time");
  for (const Operation& o : operations) {
    std::printf("%-31s %5d %9.3f %9.3f", o.name.c_str(), static_cast<int>(o.times),
                o.Median() * 1e3, o.Best() * 1e3);
    const double rate = o.flops / o.Median() / 1e9;
    if (o.flops > 0) {
      std::printf(" %9.1f %7.1f", rate, 100 * rate / peak);
    } else {
      std::printf(" %9s %7s", "", "");
    }
    std::printf(" %7.1f\n", 100 * static_cast<double>(o.times) * o.Median() / all.median);
  }
  const char* names[] = {"products", "attention", "everything else"};
  std::printf("\none micro-batch, %d layers, forward and backward:\n", static_cast<int>(kLayers));
  for (int i = 0; i < 3; ++i) {
    std::printf("  %-16s %8.2f ms (best %8.2f), %5.1f %% of the time\n", names[i],
                by_kind[i].median * 1e3, by_kind[i].best * 1e3,
                100 * by_kind[i].median / all.median);
  }
  std::printf("  %-16s %8.2f ms (best %8.2f)\n", "all", all.median * 1e3, all.best * 1e3);
  const auto share = [&](double flops) {
    std::printf("%6.1f GFLOP/s, %5.1f %% of peak (best rounds %5.1f %%)\n",
                flops / all.median / 1e9, flops / all.median / 1e7 / peak,
                flops / all.best / 1e7 / best_peak);
  };
  std::printf("  model operations, attention in full:            ");
  share(all.flops);
  std::printf("  model operations, attention below the diagonal: ");
  share(all.flops - causal_saving);
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const int threads = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  const double dropout = argc > 3 ? std::atof(argv[3]) : 0.0;
  g_wall_clock = threads > 1;
  const auto backend = MakeCpuBackend({.threads = threads});
  Model model(*backend, DType::kF32, dropout), model_bf16(*backend, DType::kBF16, dropout);
  std::vector<Operation> operations = model.Operations();
  std::vector<Operation> operations_bf16 = model_bf16.Operations();
  std::vector<double> peaks, ratios;
  for (Operation& o : operations) o.run();  // primitives are made, memory is touched
  for (Operation& o : operations_bf16) o.run();
  for (int round = 0; round < rounds; ++round) {
    peaks.push_back(MeasureFmaPeak(Now));
    for (Operation& o : operations) o.seconds.push_back(SecondsOf(o.run));
    for (Operation& o : operations_bf16) o.seconds.push_back(SecondsOf(o.run));
    ratios.push_back(RoundSeconds(operations, round) / RoundSeconds(operations_bf16, round));
  }
  const double peak = Median(peaks), best_peak = *std::max_element(peaks.begin(), peaks.end());
  std::printf("%s, %d threads, %d rounds\n", backend->fingerprint().c_str(), threads, rounds);
  std::printf(
      "peak of one thread: median %.1f GFLOP/s, best %.1f; %% of %d threads' peak below\n\n", peak,
      best_peak, threads);
  PrintTable(operations, peak * threads, best_peak * threads);
  std::printf("\nBF16:\n");
  PrintTable(operations_bf16, peak * threads, best_peak * threads);
  std::printf("  a micro-batch in float32 / in BF16, median of the rounds: %.3f\n", Median(ratios));
  return backend->Synchronize().ok() ? 0 : 1;
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) { return stagecoach::Main(argc, argv); }
