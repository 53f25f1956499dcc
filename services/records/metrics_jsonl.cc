#include "services/records/metrics_jsonl.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/ascii.h"
#include "plan/measure.h"
#include "scores/sacrebleu_text.h"

namespace stagecoach {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNumberKey[] = "{\"number\":";
constexpr char kEventKey[] = ",\"event\":\"";

const char* EventName(JobRecord::Kind kind) {
  switch (kind) {
    case JobRecord::Kind::kStep:
      return "step";
    case JobRecord::Kind::kEvaluation:
      return "evaluation";
    case JobRecord::Kind::kCheckpoint:
      return "checkpoint";
    case JobRecord::Kind::kRecovery:
      return "recovery";
    case JobRecord::Kind::kFinished:
      return "finished";
    case JobRecord::Kind::kWritten:
      return "written";
    case JobRecord::Kind::kState:
      break;
  }
  return "state";
}

Json StagesJson(const std::vector<StageAssignment>& stages) {
  Json list = Json::array();
  for (const StageAssignment& stage : stages) {
    Json phases = Json::object();
    for (int i = 0; i < kPhases; ++i) {
      const auto phase = static_cast<Phase>(i);
      phases[PhaseName(phase)] = stage.phases[phase];
    }
    const StageMemory& memory = stage.memory_peak;
    list.push_back({{"name", stage.stage_name},
                    {"phases", std::move(phases)},
                    {"memory_peak",
                     {{"parameters", memory.parameters},
                      {"gradients", memory.gradients},
                      {"optimizer", memory.optimizer},
                      {"activations", memory.activations}}}});
  }
  return list;
}

void AddMeasureFields(const JobRecord& record, Json* line) {
  for (const Measure& measure : record.measures) (*line)[measure.name] = measure.value;
}

void AddSignatures(const JobRecord& record, Json* line) {
  const auto is_a_score = [](const Measure& measure) { return IsAScore(measure.name); };
  if (std::none_of(record.measures.begin(), record.measures.end(), is_a_score)) return;
  (*line)["signatures"] = {{kBleu, CorpusBleuSignature()}, {kChrf2, CorpusChrfSignature()}};
}

void AddStep(const JobRecord& record, bool replayed, const std::vector<StageAssignment>& stages,
             Json* line) {
  Json& json = *line;
  json["loss"] = record.loss;
  json["learning_rate"] = record.learning_rate;
  json["gradient_norm"] = record.gradient_norm;
  json["tokens_per_second"] = record.tokens_per_second;
  json["step_seconds"] = record.step_seconds;
  json["bubble"] = record.bubble;
  json["bubble_ideal"] = record.bubble_ideal;
  AddMeasureFields(record, line);
  if (record.skipped) json["skipped"] = true;
  if (replayed) json["replayed"] = true;
  if (!stages.empty()) json["stages"] = StagesJson(stages);
}

void AddFinished(const JobRecord& record, Json* line) {
  Json& json = *line;
  json["state"] = absl::AsciiStrToUpper(JobPhaseName(record.phase));
  json["loss"] = record.step == 0 ? Json(nullptr) : Json(record.loss);
  json["weights_digest"] =
      record.weights_digest.empty() ? Json(nullptr) : Json(record.weights_digest);
  if (!record.message.empty()) json["message"] = record.message;
}

// Of a line as MetricsLine writes it; nothing for anything else.
std::optional<JobRecord> ParseLine(const std::string& line) {
  JobRecord record;
  const char* const end = line.data() + line.size();
  if (line.compare(0, sizeof(kNumberKey) - 1, kNumberKey) != 0 || line.back() != '}') {
    return std::nullopt;
  }
  if (std::from_chars(line.data() + sizeof(kNumberKey) - 1, end, record.number).ec != std::errc()) {
    return std::nullopt;
  }
  const size_t event = line.find(kEventKey);
  if (event == std::string::npos) return std::nullopt;
  const size_t name = event + sizeof(kEventKey) - 1;
  const size_t quote = line.find("\",\"step\":", name);
  if (quote == std::string::npos) return std::nullopt;
  if (std::from_chars(line.data() + quote + 9, end, record.step).ec != std::errc()) {
    return std::nullopt;
  }
  for (const JobRecord::Kind kind :
       {JobRecord::Kind::kStep, JobRecord::Kind::kEvaluation, JobRecord::Kind::kFinished}) {
    if (line.compare(name, quote - name, EventName(kind)) == 0) record.kind = kind;
  }
  return record;
}

}  // namespace

std::string MetricsLine(const JobRecord& record, bool replayed,
                        const std::vector<StageAssignment>& stages) {
  Json line = {{"number", record.number},
               {"unix_seconds", record.unix_seconds},
               {"event", EventName(record.kind)},
               {"step", record.step}};
  switch (record.kind) {
    case JobRecord::Kind::kStep:
      AddStep(record, replayed, stages, &line);
      break;
    case JobRecord::Kind::kEvaluation:
      line["loss"] = record.loss;
      AddMeasureFields(record, &line);
      if (replayed) line["replayed"] = true;
      AddSignatures(record, &line);
      break;
    case JobRecord::Kind::kCheckpoint:
      if (!record.message.empty()) line["error"] = record.message;
      break;
    case JobRecord::Kind::kRecovery:
      line["message"] = record.message;
      break;
    case JobRecord::Kind::kState:
      line["state"] = JobPhaseName(record.phase);
      if (!record.message.empty()) line["message"] = record.message;
      break;
    case JobRecord::Kind::kFinished:
      AddFinished(record, &line);
      break;
    case JobRecord::Kind::kWritten:  // the texts are for the job's watchers
      line["tokens_per_second"] = record.tokens_per_second;
      line["step_seconds"] = record.step_seconds;
      break;
  }
  // Messages may quote bytes of files; a number that is not finite becomes null.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool AddToTail(const JobRecord& record, MetricsTail* tail) {
  tail->number = record.number;
  if (record.kind == JobRecord::Kind::kFinished) tail->finished = true;
  uint64_t* const furthest = record.kind == JobRecord::Kind::kStep ? &tail->furthest_step
                             : record.kind == JobRecord::Kind::kEvaluation
                                 ? &tail->furthest_evaluation
                                 : nullptr;
  if (furthest == nullptr) return false;
  const bool replayed = record.step <= *furthest;
  *furthest = std::max(*furthest, record.step);
  return replayed;
}

absl::StatusOr<MetricsTail> RepairMetrics(const std::string& path) {
  MetricsTail tail;
  if (access(path.c_str(), F_OK) != 0) return tail;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::ErrnoToStatus(errno, path);
  off_t whole = 0;
  bool broken = false;
  for (std::string line; std::getline(file, line);) {
    // Without its line end a line is not whole, whatever it looks like.
    const std::optional<JobRecord> record = file.eof() ? std::nullopt : ParseLine(line);
    broken = !record.has_value();
    if (broken) break;
    whole += static_cast<off_t>(line.size()) + 1;
    AddToTail(*record, &tail);
  }
  if (broken && truncate(path.c_str(), whole) != 0) return absl::ErrnoToStatus(errno, path);
  return tail;
}

}  // namespace stagecoach
