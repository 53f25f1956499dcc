// A small GPT trained for a few steps by two cells, as the executor and the coordinator would:
// micro-batches of unequal size, one of them recomputed, the coordinator's clipping decision.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/numbers/random.h"
#include "coordinator/job/step_decision.h"
#include "network/network_kinds.h"
#include "network/zoo/gpt.h"
#include "plan/job/learning_rate_kinds.h"
#include "plan/learning_rates/cosine.h"
#include "plan/optimizers/adamw.h"
#include "stage/cell/cell.h"
#include "stage/cell/optimizer.h"
#include "tests/oracle/oracle.h"

namespace stagecoach {
namespace {

constexpr GptSpec kGpt{2, 48, 3, 16, 61, 0.0};
constexpr int kCut = 3;  // layers of the first cell
constexpr int64_t kBatch = 5, kMicroBatches = 3, kSteps = 20;
constexpr uint64_t kSeed = 20181116;
constexpr double kClipNorm = 2.0;
const AdamWSpec kAdamW{0.9, 0.95, 1e-8, 0.1};
const CosineRate kRate{.peak = 3e-3, .warmup_steps = 4, .final = 3e-4};

// Tokens of one mini-batch: a few of the vocabulary, each a little above the one before, so that
// there is something to learn.
std::vector<int32_t> Sequences(int64_t step) {
  constexpr int64_t kTokens = kGpt.context + 1, kUsed = 12;
  const RandomStream stream{.seed = kSeed, .step = static_cast<uint32_t>(step)};
  std::vector<int32_t> tokens(kBatch * kTokens);
  for (int64_t i = 0; i < kBatch * kTokens; ++i) {
    const uint32_t bits = RandomBits(stream, i);
    const int64_t token = i % kTokens == 0 ? bits % kUsed : tokens[i - 1] + 1 + bits % 2;
    tokens[i] = static_cast<int32_t>(token % kUsed);
  }
  return tokens;
}

// Sequences [first, first + count) of the mini-batch, from `offset` (0: inputs, 1: targets).
std::vector<int32_t> Slice(const std::vector<int32_t>& tokens, int64_t first, int64_t count,
                           int64_t offset) {
  std::vector<int32_t> slice;
  for (int64_t s = first; s < first + count; ++s) {
    const auto begin = tokens.begin() + s * (kGpt.context + 1) + offset;
    slice.insert(slice.end(), begin, begin + kGpt.context);
  }
  return slice;
}

class Trainer {
 public:
  Trainer(Backend& backend, Precision precision, Recorder* recorder)
      : backend_(backend),
        precision_(precision),
        prefix_(precision == Precision::kBfloat16 ? "bfloat16/" : ""),
        recorder_(recorder) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Build());
    std::vector<double> losses, rates, norms;
    for (int64_t step = 0; step < kSteps; ++step) {
      ASSIGN_OR_RETURN(const StepDecision decision, Step(step));
      losses.push_back(decision.loss);
      norms.push_back(decision.gradient_norm);
      rates.push_back(LearningRateAt(kRate, step, kSteps));
      for (int k = 0; k < 2; ++k) {
        optimizers_[k]->Apply(step, rates.back(), decision.gradient_scale);
        cells_[k]->ZeroGradients();
      }
    }
    recorder_->Add(prefix_ + "training/losses", losses);
    recorder_->Add(prefix_ + "training/learning_rates", rates);
    recorder_->Add(prefix_ + "training/gradient_norms", norms);
    return backend_.Synchronize();
  }

 private:
  absl::Status Build() {
    ASSIGN_OR_RETURN(const Network network, ExpandNetwork(kGpt, precision_));
    layers_ = static_cast<int>(network.layers.size());
    const int bounds[] = {0, kCut, layers_};
    for (int k = 0; k < 2; ++k) {
      ASSIGN_OR_RETURN(std::unique_ptr<Cell> cell, Cell::Create(network, bounds[k], bounds[k + 1],
                                                                kSeed, kMicroBatches, backend_));
      for (Parameter* parameter : cell->parameters()) {
        RETURN_IF_ERROR(Shake(*parameter));
        if (shared()) recorder_->Add(parameter->spec.name, backend_, parameter->value);
      }
      cell->RefreshCompute();
      ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                       MakeOptimizer(kAdamW, cell->parameters(), backend_));
      cells_.push_back(std::move(cell));
      optimizers_.push_back(std::move(optimizer));
    }
    return absl::OkStatus();
  }

  // Biases of 0 and layer norm weights of 1 would hide a confusion of theirs.
  absl::Status Shake(Parameter& parameter) {
    std::vector<float> values(parameter.value.elements());
    const auto bytes = std::as_writable_bytes(std::span(values));
    backend_.CopyToHost(parameter.value, bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += 0.05f * RandomNormal({.seed = kSeed + 1, .operation = shaken_}, i);
    }
    ++shaken_;
    backend_.CopyFromHost(bytes, parameter.value);
    return backend_.Synchronize();
  }

  absl::StatusOr<Tensor> Tokens(const std::vector<int32_t>& values) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kI32,
                                Shape({static_cast<int64_t>(values.size())})));
    backend_.CopyFromHost(std::as_bytes(std::span(values)), tensor);
    RETURN_IF_ERROR(backend_.Synchronize());
    return tensor;
  }

  absl::StatusOr<StepDecision> Step(int64_t step) {
    const std::vector<int32_t> tokens = Sequences(step);
    if (shared()) {
      recorder_->Add(absl::StrCat("batch/", step), tokens, {kBatch, kGpt.context + 1});
    }
    ObjectiveRunner& objective = *cells_.back()->objective();
    objective.Begin(kMicroBatches, 1.0f / (kBatch * kGpt.context));
    int64_t first = 0;
    for (int i = 0; i < kMicroBatches; ++i) {
      const int64_t count = MicroBatchSize(kBatch, kMicroBatches, i);
      const ForwardContext context{.seed = kSeed,
                                   .step = static_cast<uint64_t>(step),
                                   .micro_batch = MicroBatchId(i),
                                   .sequences = count};
      RETURN_IF_ERROR(
          MicroBatch(context, Slice(tokens, first, count, 0), Slice(tokens, first, count, 1)));
      first += count;
    }
    std::vector<StepReport> reports(2);
    for (int k = 0; k < 2; ++k) {
      ASSIGN_OR_RETURN(reports[k].layer_squared_norms, cells_[k]->LayerSquaredGradientNorms());
      if (step > 0) continue;
      for (Parameter* parameter : cells_[k]->parameters()) {
        recorder_->Add(absl::StrCat(prefix_, "gradient/", parameter->spec.name), backend_,
                       parameter->gradient);
      }
    }
    reports[1].has_loss = true;
    const std::vector<double> sums = objective.TakeSums().named;
    reports[1].loss_sum = sums[0];
    reports[1].terms = sums[1];
    reports[1].targets = kBatch * kGpt.context;
    std::vector<std::vector<LayerRange>> layers;
    for (const auto& cell : cells_) layers.push_back({{cell->first_layer(), cell->last_layer()}});
    return DecideStep(reports, layers, layers_, kClipNorm);
  }

  // Forward and backward through both cells.
  absl::Status MicroBatch(const ForwardContext& context, const std::vector<int32_t>& inputs,
                          const std::vector<int32_t>& targets) {
    const bool keep = context.micro_batch.value == 0;
    ASSIGN_OR_RETURN(Tensor ids, Tokens(inputs));
    ASSIGN_OR_RETURN(const Tensor wanted, Tokens(targets));
    Tensors tensors{std::move(ids)};
    for (const auto& cell : cells_) {
      ASSIGN_OR_RETURN(tensors, cell->Forward(std::move(tensors), context, keep));
    }
    if (!keep) {
      for (const auto& cell : cells_) RETURN_IF_ERROR(cell->Recompute(context.micro_batch));
    }
    const Tensors logits = cells_.back()->outputs(context.micro_batch);
    if (context.step == 0) {
      RETURN_IF_ERROR(RecordLogits(context.micro_batch, logits.front()));
    }
    ASSIGN_OR_RETURN(tensors, cells_.back()->objective()->Train(context, logits, {wanted, {}}));
    for (size_t k = cells_.size(); k-- > 0;) {
      ASSIGN_OR_RETURN(tensors, cells_[k]->Backward(context.micro_batch, std::move(tensors)));
    }
    return absl::OkStatus();
  }

  absl::Status RecordLogits(MicroBatchId id, const Tensor& logits) {
    Tensor wide = logits;
    if (logits.dtype() == DType::kBF16) {
      ASSIGN_OR_RETURN(wide, MakeTensor(backend_.allocator(), MemoryKind::kActivations, DType::kF32,
                                        logits.shape()));
      backend_.Convert(logits, wide);
    }
    recorder_->Add(absl::StrCat(prefix_, "logits/", id.value), backend_, wide);
    return absl::OkStatus();
  }
  // Weights and batches are the same ones in every precision, and recorded once.
  bool shared() const { return prefix_.empty(); }

  Backend& backend_;
  const Precision precision_;
  const std::string prefix_;
  Recorder* const recorder_;
  int layers_ = 0;
  uint32_t shaken_ = 0;
  std::vector<std::unique_ptr<Cell>> cells_;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
};

void NoteSettings(Recorder* recorder) {
  const auto note = [&](const char* key, auto value) { recorder->Note(key, absl::StrCat(value)); };
  note("blocks", kGpt.layers);
  note("width", kGpt.width);
  note("heads", kGpt.heads);
  note("context", kGpt.context);
  note("vocabulary", kGpt.vocabulary);
  note("steps", kSteps);
  note("micro_batches", kMicroBatches);
  note("clip_norm", kClipNorm);
  note("beta1", kAdamW.beta1);
  note("beta2", kAdamW.beta2);
  note("epsilon", kAdamW.epsilon);
  note("weight_decay", kAdamW.weight_decay);
  note("rate_peak", kRate.peak);
  note("rate_final", kRate.final);
  note("rate_warmup_steps", kRate.warmup_steps);
}

}  // namespace

absl::Status RecordTraining(Backend& backend, Recorder* recorder) {
  NoteSettings(recorder);
  return Trainer(backend, Precision::kFloat32, recorder).Run();
}

absl::Status RecordBfloat16Training(Backend& backend, Recorder* recorder) {
  return Trainer(backend, Precision::kBfloat16, recorder).Run();
}

}  // namespace stagecoach
