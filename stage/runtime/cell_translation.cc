#include "stage/runtime/cell_translation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "plan/costs/decoding_memory.h"
#include "scores/corpus_counts.h"
#include "stage/runtime/loaded_cell.h"

namespace stagecoach {
namespace {

absl::Status NoMemory(int64_t rows, absl::string_view why) {
  return absl::ResourceExhaustedError(
      absl::StrCat("evaluation.translate: keys and values of ", rows, " rows: ", why,
                   "; give a smaller evaluation.translate.beam or tokens"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CellTranslation>> CellTranslation::Create(const LoadedCell& loaded,
                                                                         Backend* backend,
                                                                         PhaseClock* phases,
                                                                         const Clock* clock) {
  const JobSpec& spec = loaded.command.spec;
  CHECK(spec.evaluation.translate.has_value()) << "nothing is translated";
  auto made = std::unique_ptr<CellTranslation>(new CellTranslation(loaded));
  const TranslationOptions options = TranslationOf(*spec.evaluation.translate, loaded.network());
  const int64_t rows = TranslationGroup::MostRows(options, spec.training.batch_size);
  ASSIGN_OR_RETURN(made->form_, DecodingOf(loaded.network(), rows));
  absl::StatusOr<std::unique_ptr<CellDecoder>> decoder =
      CellDecoder::Create(made->form_, *loaded.cell, *backend);
  if (absl::IsResourceExhausted(decoder.status())) {
    return NoMemory(rows, decoder.status().message());
  }
  if (!decoder.ok()) return decoder.status();
  made->decoder_ = *std::move(decoder);
  const int stages = loaded.command.partition.stages();
  const bool last = loaded.command.stage.value + 1 == stages;
  if (last) made->search_ = SearchWith(*loaded.data->tokenizer(), options);
  made->executor_ = std::make_unique<DecodingExecutor>(
      DecodingExecutor::Parts{.stage = loaded.command.stage,
                              .stages = stages,
                              .decoder = made->decoder_.get(),
                              .form = &made->form_,
                              .backend = backend,
                              .upstream = loaded.upstream.get(),
                              .downstream = loaded.downstream.get(),
                              .data = loaded.data.get(),
                              .phases = phases,
                              .clock = clock});
  return made;
}

void CellTranslation::Begin(const RunCommand& command) {
  batch_ = command.evaluation_batch;
  executor_->Begin({.fence = command.fence,
                    .batch = batch_,
                    .groups = static_cast<int>(loaded_.command.spec.training.micro_batches),
                    .options = search_.options,
                    .choice = search_.choice});
}

absl::StatusOr<StepReport> CellTranslation::TakeReport() {
  StepReport report;
  if (loaded_.command.stage.value + 1 < loaded_.command.partition.stages()) return report;
  std::vector<HeldOutSentence> sentences;
  for (int i = 0; i < loaded_.command.spec.training.micro_batches; ++i) {
    for (HeldOutSentence& one : loaded_.data->Sentences(batch_, MicroBatchId(i))) {
      sentences.push_back(one);
    }
  }
  const std::vector<TranslationGroup::Translation> all = executor_->TakeTranslations();
  CHECK_EQ(all.size(), sentences.size()) << "translations of mini-batch " << batch_;
  CorpusCounts counts;
  for (size_t i = 0; i < all.size(); ++i) {
    const HeldOutSentence& sentence = sentences[i];
    ASSIGN_OR_RETURN(std::string text, loaded_.data->tokenizer()->Decode(all[i].best.tokens));
    counts += CountSegment(text, sentence.target);
    if (sentence.number >= kShownTranslations) continue;
    report.shown_translations.push_back({.number = sentence.number,
                                         .source = std::string(sentence.source),
                                         .reference = std::string(sentence.target),
                                         .translation = std::move(text)});
  }
  report.translation_counts = counts.Numbers();
  return report;
}

}  // namespace stagecoach
