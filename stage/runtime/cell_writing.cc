#include "stage/runtime/cell_writing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/costs/decoding_memory.h"
#include "stage/runtime/loaded_cells.h"

namespace stagecoach {
namespace {

absl::Status NoMemory(const JobSpec& spec, int64_t rows, absl::string_view why) {
  const bool writes = spec.write.has_value();
  const char* const remedy =
      !writes ? "evaluation.translate.beam or tokens"
      : spec.write->translate.has_value()
          ? "write.translate.beam or tokens, or a smaller training.batch_size"
          : "write.generate.tokens or training.batch_size";
  return absl::ResourceExhaustedError(absl::StrCat(writes ? "write" : "evaluation.translate",
                                                   ": keys and values of ", rows, " rows: ", why,
                                                   "; give a smaller ", remedy));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CellWriting>> CellWriting::Create(const LoadedCells& loaded,
                                                                 Backend* backend,
                                                                 PhaseClock* phases,
                                                                 const Clock* clock) {
  const JobSpec& spec = loaded.command.spec;
  CHECK_EQ(loaded.cells.size(), size_t{1}) << "cells of a stage that writes";
  const LoadedCells::One& own = loaded.cells.front();
  auto made = std::unique_ptr<CellWriting>(new CellWriting(loaded));
  const int64_t rows = PoolRowsOf(spec, loaded.network());
  ASSIGN_OR_RETURN(made->form_, DecodingOf(loaded.network(), rows));
  absl::StatusOr<std::unique_ptr<CellDecoder>> decoder =
      CellDecoder::Create(made->form_, *own.cell, *backend);
  if (absl::IsResourceExhausted(decoder.status())) {
    return NoMemory(spec, rows, decoder.status().message());
  }
  if (!decoder.ok()) return decoder.status();
  made->decoder_ = *std::move(decoder);
  const int stages = loaded.command.partition.stages();
  const bool last = loaded.command.stage.value + 1 == stages;
  if (last && spec.write.has_value()) {
    ASSIGN_OR_RETURN(made->task_, WriteLines(loaded, rows));
  } else if (last) {
    made->task_ = TranslateHeldOut(loaded, rows);
  }
  made->executor_ = std::make_unique<DecodingExecutor>(
      DecodingExecutor::Parts{.stage = loaded.command.stage,
                              .stages = stages,
                              .decoder = made->decoder_.get(),
                              .form = &made->form_,
                              .backend = backend,
                              .upstream = own.upstream.get(),
                              .downstream = own.downstream.get(),
                              .data = loaded.data.get(),
                              .phases = phases,
                              .clock = clock});
  return made;
}

absl::Status CellWriting::Begin(const RunCommand& command) {
  if (command.goes_on && (!executor_->paused() || command.evaluation_batch != batch_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("mini-batch ", command.evaluation_batch, " goes on, and ",
                     executor_->paused() ? absl::StrCat("mini-batch ", batch_, " has paused")
                                         : "nothing has paused",
                     " (", command.fence.ToString(), ")"));
  }
  batch_ = command.evaluation_batch;
  DecodingWork work{.fence = command.fence,
                    .batch = batch_,
                    .groups = static_cast<int>(loaded_.command.spec.training.micro_batches),
                    .searches = {},
                    .choice = {},
                    .rounds = command.rounds,
                    .goes_on = command.goes_on};
  if (task_ != nullptr) {
    if (!command.goes_on) {
      ASSIGN_OR_RETURN(searches_, task_->Begin(batch_));
    }
    work.searches = searches_;
    work.choice = task_->choice();
  }
  executor_->Begin(work);
  return absl::OkStatus();
}

absl::StatusOr<StepReport> CellWriting::TakeReport() {
  StepReport report;
  if (task_ != nullptr) RETURN_IF_ERROR(task_->Report(&report));
  return report;
}

}  // namespace stagecoach
