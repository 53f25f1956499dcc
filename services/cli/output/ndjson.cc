#include "services/cli/output/ndjson.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/threads/work_words.h"
#include "plan/measure.h"
#include "scores/sacrebleu_text.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

using Measures = google::protobuf::RepeatedPtrField<v1::Measure>;

std::string MeasureFields(const Measures& measures) {
  std::string fields;
  for (const v1::Measure& measure : measures) {
    absl::StrAppend(&fields, ",", JsonText(measure.name()), ":", JsonNumber(measure.value()));
  }
  return fields;
}

std::string SignaturesField(const Measures& measures) {
  const auto is_a_score = [](const v1::Measure& measure) { return IsAScore(measure.name()); };
  if (std::none_of(measures.begin(), measures.end(), is_a_score)) return "";
  return absl::StrCat(",\"signatures\":{", JsonText(std::string(kBleu)), ":",
                      JsonText(CorpusBleuSignature()), ",", JsonText(std::string(kChrf2)), ":",
                      JsonText(CorpusChrfSignature()), "}");
}

const char* ReplayedField(bool replayed) { return replayed ? ",\"replayed\":true" : ""; }

std::string StepEvent(uint64_t step, const v1::StepRecord& done, bool replayed) {
  return absl::StrCat("{\"event\":\"step\",\"step\":", step, ",\"loss\":", JsonNumber(done.loss()),
                      ",\"learning_rate\":", JsonNumber(done.learning_rate()),
                      ",\"gradient_norm\":", JsonNumber(done.gradient_norm()),
                      ",\"tokens_per_second\":", JsonNumber(done.tokens_per_second()),
                      ",\"step_seconds\":", JsonNumber(done.step_seconds()),
                      ",\"bubble\":", JsonNumber(done.bubble()),
                      ",\"bubble_ideal\":", JsonNumber(done.bubble_ideal()),
                      done.skipped() ? ",\"skipped\":true" : "", ReplayedField(replayed),
                      MeasureFields(done.measures()), "}");
}

std::string WrittenEvent(uint64_t step, const v1::WrittenRecord& written) {
  std::string texts;
  for (const v1::WrittenPiece& piece : written.texts()) {
    absl::StrAppend(&texts, texts.empty() ? "" : ",", "{\"line\":", piece.line(),
                    ",\"offset\":", piece.offset(), ",\"text\":", JsonText(piece.text()));
    if (piece.done()) {
      absl::StrAppend(&texts, ",\"done\":true,\"tokens\":", piece.tokens(),
                      ",\"score\":", JsonNumber(piece.score()),
                      ",\"ended\":", piece.ended() ? "true" : "false");
    }
    texts += "}";
  }
  return absl::StrCat("{\"event\":\"written\",\"step\":", step, ",\"texts\":[", texts, "]}");
}

std::string FinishedEvent(uint64_t step, const v1::FinishedRecord& finished, bool writes) {
  const bool succeeded = finished.state() == v1::JOB_STATE_SUCCEEDED;
  return absl::StrCat(
      "{\"event\":\"finished\",\"state\":", JsonText(StateName(finished.state())),
      ",\"step\":", step, ",\"loss\":", writes || step == 0 ? "null" : JsonNumber(finished.loss()),
      ",\"weights_digest\":",
      finished.weights_digest().empty() ? "null" : JsonText(finished.weights_digest()),
      succeeded ? "" : absl::StrCat(",\"message\":", JsonText(finished.message())), "}");
}

}  // namespace

bool Replays::Take(const v1::WatchJobResponse& record) {
  if (!record.has_step_done() && !record.has_evaluation()) return false;
  uint64_t& furthest = record.has_step_done() ? furthest_step_ : furthest_evaluation_;
  const bool replayed = record.step() <= furthest;
  furthest = std::max(furthest, record.step());
  return replayed;
}

std::string ToNdjson(const v1::WatchJobResponse& record, bool replayed, bool writes) {
  const uint64_t step = record.step();
  switch (record.kind_case()) {
    case v1::WatchJobResponse::kStepDone:
      return StepEvent(step, record.step_done(), replayed);
    case v1::WatchJobResponse::kEvaluation:
      return absl::StrCat("{\"event\":\"evaluation\",\"step\":", step,
                          ",\"loss\":", JsonNumber(record.evaluation().loss()),
                          ReplayedField(replayed), MeasureFields(record.evaluation().measures()),
                          SignaturesField(record.evaluation().measures()), "}");
    case v1::WatchJobResponse::kCheckpoint: {
      const std::string& error = record.checkpoint().error();
      return absl::StrCat("{\"event\":\"checkpoint\",\"step\":", step,
                          error.empty() ? "" : absl::StrCat(",\"error\":", JsonText(error)), "}");
    }
    case v1::WatchJobResponse::kRecovery:
      return absl::StrCat("{\"event\":\"recovery\",\"step\":", step,
                          ",\"message\":", JsonText(record.recovery().message()), "}");
    case v1::WatchJobResponse::kFinished:
      return FinishedEvent(step, record.finished(), writes);
    case v1::WatchJobResponse::kWritten:
      return WrittenEvent(step, record.written());
    case v1::WatchJobResponse::kState:
    case v1::WatchJobResponse::KIND_NOT_SET:
      return "";
  }
  return "";
}

std::string LoadingNdjson(const v1::WatchJobResponse& loading) {
  const std::string& message = loading.state().message();
  const std::optional<int> percent = PercentIn(message);
  return absl::StrCat("{\"event\":\"loading\",\"step\":", loading.step(),
                      ",\"message\":", JsonText(message),
                      percent.has_value() ? absl::StrCat(",\"percent\":", *percent) : "", "}");
}

std::string StateName(v1::JobState state) {
  return std::string(absl::StripPrefix(v1::JobState_Name(state), "JOB_STATE_"));
}

}  // namespace stagecoach
