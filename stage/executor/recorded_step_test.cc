// What a stage asks of its back end in a step, call by call, as golden texts (tests/golden/calls).
// Equal weights show that no bit moved; these show that nothing else did: operations, their order
// and arguments, and when each buffer comes and goes. A change of form leaves them as they are.
// Sections ("# F0") are the instructions of the stage's program.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/golden_testing.h"
#include "gtest/gtest.h"
#include "network/layers/activations.h"
#include "network/layers/attention.h"
#include "network/layers/dropout.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/mlp.h"
#include "network/layers/norms.h"
#include "network/layers/residual.h"
#include "network/zoo/gpt.h"
#include "network/zoo/sequence.h"
#include "plan/optimizers/sgd.h"
#include "stage/backends/recording/recording_backend.h"
#include "stage/testing/pipeline_harness.h"

namespace stagecoach {
namespace {

constexpr GptSpec kGpt = {.layers = 2, .width = 16, .heads = 2, .context = 8, .vocabulary = 13};
constexpr GptSpec kOneBlock = {
    .layers = 1, .width = 16, .heads = 2, .context = 8, .vocabulary = 13};

// The network of examples/layers.yaml, smaller.
SequenceSpec Sequence() {
  const auto residual = [](std::vector<LayerSpec> layers) {
    return LayerSpec{ResidualSpec{std::move(layers)}};
  };
  return {
      .width = 16,
      .context = 8,
      .vocabulary = 13,
      .layers = {
          {EmbeddingSpec{.dropout = 0.1}},
          residual({{LayerNormSpec{}}, {AttentionSpec{.heads = 2, .dropout = 0.1}}}),
          residual({{LayerNormSpec{}}, {MlpSpec{.hidden = 32}}, {DropoutSpec{.rate = 0.1}}}),
          residual({{LayerNormSpec{}}, {AttentionSpec{.heads = 2}}}),
          residual(
              {{LayerNormSpec{}}, {LinearSpec{.out = 32}}, {GeluSpec{}}, {LinearSpec{.out = 16}}}),
          {LayerNormSpec{}},
          {LinearSpec{.out = 13, .bias = false}},
      }};
}

// Micro-batches of two sequences and one.
HarnessOptions Gpt(int stages, Rematerialization mode, double dropout = 0.1) {
  return {.stages = stages,
          .gpt = kGpt,
          .batch_size = 3,
          .micro_batches = 2,
          .rematerialization = mode,
          .dropout = dropout};
}

// A pipeline of which one stage is written down.
class RecordedStage {
 public:
  RecordedStage(HarnessOptions options, int recorded) : recorded_(recorded) {
    options.make_backend = [this, made = 0]() mutable -> std::unique_ptr<Backend> {
      auto backend = MakeReferenceBackend({});
      if (made++ != recorded_) return backend;
      return std::make_unique<RecordingBackend>(std::move(backend), log_);
    };
    pipeline_ = std::make_unique<PipelineHarness>(options);
    for (Parameter* parameter : pipeline_->cell(recorded).parameters()) {
      const std::string name(absl::StripPrefix(parameter->spec.name, "model/"));
      log_->Name(parameter->value, name);
      log_->Name(parameter->gradient, "d:" + name);
      if (parameter->compute.buffer() == parameter->value.buffer()) continue;
      log_->Name(parameter->compute, "rounded:" + name);
    }
    for (const OptimizerSlot& slot : pipeline_->optimizer(recorded).slots()) {
      log_->Name(slot.value, std::string(absl::StripPrefix(slot.name, "opt/")));
    }
    setup_ = log_->Take();
  }

  // Making the cell and its optimizer, and who is called what later.
  const std::string& setup() const { return setup_; }
  // One pass over the pipeline. Stages go on in turn, each as far as it comes.
  std::string Pass(bool training, uint64_t evaluation_batch = 0) {
    std::vector<StepWork> work;
    for (int k = 0; k < pipeline_->stages(); ++k) {
      work.push_back(pipeline_->Work(k, training, evaluation_batch));
    }
    return Run(work);
  }
  // A training step by a program of one's own; of a pipeline of one stage.
  std::string Step(const std::string& program) {
    const auto programs = ParsePrograms(absl::StrCat("stage 0: ", program));
    CHECK_OK(programs.status());
    StepWork work = pipeline_->Work(0, true);
    work.program = &programs->front();
    return Run({work});
  }
  // The update after a step, and the gradients' zeros for the next one.
  std::string Update() {
    pipeline_->optimizer(recorded_).Apply(0, 0.05, 0.5);
    pipeline_->cell(recorded_).ZeroGradients();
    return log_->Take();
  }

 private:
  std::string Run(const std::vector<StepWork>& work) {
    for (size_t k = 0; k < work.size(); ++k) {
      pipeline_->executor(static_cast<int>(k)).BeginStep(work[k]);
    }
    next_ = 0;
    std::vector<bool> finished(work.size());
    for (size_t left = work.size(); left > 0;) {
      const size_t before = left;
      const uint64_t done = InstructionsDone();
      for (size_t k = 0; k < work.size(); ++k) {
        if (finished[k] || !Advance(static_cast<int>(k), *work[k].program)) continue;
        finished[k] = true;
        --left;
      }
      CHECK(left < before || InstructionsDone() > done) << "nobody can move";
    }
    for (size_t k = 0; k < work.size(); ++k) pipeline_->executor(static_cast<int>(k)).TakeReport();
    log_->Begin("");
    return log_->Take();
  }

  // As far as the stage comes; true at the end of its step.
  bool Advance(int k, const StageProgram& program) {
    StageExecutor& executor = pipeline_->executor(k);
    for (;;) {
      if (k == recorded_) NoteInstruction(program);
      const uint64_t before = executor.instructions_done();
      const auto progress = executor.Advance(1);
      CHECK_OK(progress.status());
      if (k == recorded_) at_ += executor.instructions_done() - before;
      if (*progress == Progress::kFinished) return true;
      if (*progress == Progress::kBlocked) return false;
    }
  }

  // Once, however often it is tried.
  void NoteInstruction(const StageProgram& program) {
    if (next_ == 0) at_ = 0;
    if (at_ < next_ || at_ >= program.instructions.size()) return;
    log_->Begin(FormatInstruction(program.instructions[at_]));
    next_ = at_ + 1;
  }

  uint64_t InstructionsDone() {
    uint64_t sum = 0;
    for (int k = 0; k < pipeline_->stages(); ++k) sum += pipeline_->executor(k).instructions_done();
    return sum;
  }

  const int recorded_;
  const std::shared_ptr<CallLog> log_ = std::make_shared<CallLog>();
  std::unique_ptr<PipelineHarness> pipeline_;
  std::string setup_;
  size_t at_ = 0;    // instructions of the recorded stage that are done
  size_t next_ = 0;  // the first one that is not noted yet
};

std::string TrainingStep(const HarnessOptions& options, int recorded = 0) {
  return RecordedStage(options, recorded).Pass(true);
}

// Input and weight parts apart, the weight parts late: each stash lives on in between.
constexpr char kSplit[] = "in0 F0 in1 F1 t0 L0 I0 t1 L1 I1 W0 W1";

TEST(RecordedStep, GptOnOneStage) {
  ExpectGolden("calls/gpt_never.txt", TrainingStep(Gpt(1, Rematerialization::kNever)));
  ExpectGolden("calls/gpt_always.txt", TrainingStep(Gpt(1, Rematerialization::kAlways)));
  ExpectGolden("calls/gpt_except_first.txt", TrainingStep(Gpt(1, Rematerialization::kExceptFirst)));
}

TEST(RecordedStep, GptByInputAndWeightParts) {
  ExpectGolden("calls/gpt_split.txt",
               RecordedStage(Gpt(1, Rematerialization::kNever), 0).Step(kSplit));
}

// Without dropout other operations are fused: a branch ends with a projection.
TEST(RecordedStep, GptWithoutDropout) {
  const HarnessOptions options = Gpt(1, Rematerialization::kAlways, 0.0);
  ExpectGolden("calls/gpt_no_dropout.txt", TrainingStep(options));
  ExpectGolden("calls/gpt_no_dropout_split.txt", RecordedStage(options, 0).Step(kSplit));
}

TEST(RecordedStep, GptAtTheBeginningInTheMiddleAndAtTheEndOfAPipeline) {
  const HarnessOptions two = Gpt(2, Rematerialization::kAlways);
  ExpectGolden("calls/gpt_first_of_two.txt", TrainingStep(two, 0));
  ExpectGolden("calls/gpt_last_of_two.txt", TrainingStep(two, 1));
  const HarnessOptions three = Gpt(3, Rematerialization::kExceptFirst);
  ExpectGolden("calls/gpt_middle_of_three.txt", TrainingStep(three, 1));
}

TEST(RecordedStep, GptInBfloat16) {
  HarnessOptions options = Gpt(1, Rematerialization::kAlways);
  options.gpt = kOneBlock;
  options.precision = Precision::kBfloat16;
  RecordedStage stage(options, 0);
  ExpectGolden("calls/gpt_bfloat16_setup.txt", stage.setup());
  ExpectGolden("calls/gpt_bfloat16.txt", stage.Pass(true));
  ExpectGolden("calls/gpt_bfloat16_update.txt", stage.Update());
}

TEST(RecordedStep, LayersByHand) {
  HarnessOptions options = Gpt(1, Rematerialization::kNever);
  options.spec = Sequence();
  options.optimizer = SgdSpec{.momentum = 0.9};
  RecordedStage stage(options, 0);
  ExpectGolden("calls/layers_never.txt", stage.Pass(true));
  ExpectGolden("calls/layers_update.txt", stage.Update());
  ExpectGolden("calls/layers_split.txt", RecordedStage(options, 0).Step(kSplit));
  options.stages = 2;
  options.rematerialization = Rematerialization::kAlways;
  ExpectGolden("calls/layers_first_of_two.txt", TrainingStep(options, 0));
  ExpectGolden("calls/layers_last_of_two.txt", TrainingStep(options, 1));
}

// The second micro-batch has no sequences.
TEST(RecordedStep, Evaluation) {
  HarnessOptions options = Gpt(1, Rematerialization::kAlways);
  options.evaluation_sequences = 2;
  ExpectGolden("calls/gpt_evaluation.txt", RecordedStage(options, 0).Pass(false));
  options.spec = Sequence();
  options.stages = 2;
  ExpectGolden("calls/layers_evaluation_first_of_two.txt", RecordedStage(options, 0).Pass(false));
  ExpectGolden("calls/layers_evaluation_last_of_two.txt", RecordedStage(options, 1).Pass(false));
}

}  // namespace
}  // namespace stagecoach
