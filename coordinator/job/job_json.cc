#include "coordinator/job/job_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

Json ProfileJson(const std::vector<LayerProfile>& profile) {
  Json json = Json::array();
  for (const LayerProfile& layer : profile) {
    json.push_back({layer.forward_seconds, layer.backward_seconds});
  }
  return json;
}

Json FailuresJson(const std::map<uint64_t, StepFailures>& failures) {
  Json json = Json::array();
  for (const auto& [step, failed] : failures) json.push_back({step, failed.count, failed.stages});
  return json;
}

Json DeathsJson(const StageDeaths& deaths) {
  return {{"count", deaths.count},   {"step", deaths.step}, {"instruction", deaths.instruction},
          {"stages", deaths.stages}, {"term", deaths.term}, {"generation", deaths.generation}};
}

StageDeaths ReadDeaths(const Json& json) {
  return {json.at("count"),  json.at("step"), json.at("instruction"),
          json.at("stages"), json.at("term"), json.at("generation")};
}

Json StagesJson(const std::vector<StageSlot>& slots) {
  Json json = Json::array();
  for (const StageSlot& slot : slots) {
    json.push_back({{"name", slot.stage.name},
                    {"address", slot.stage.address},
                    {"place", slot.place},
                    {"first_layer", slot.first_layer},
                    {"last_layer", slot.last_layer}});
  }
  return json;
}

Json MeasuresJson(const std::vector<Measure>& measures) {
  Json json = Json::array();
  for (const Measure& measure : measures) json.push_back({measure.name, measure.value});
  return json;
}

// A value that was no finite number was written as null.
std::vector<Measure> ReadMeasures(const Json& json, const char* key) {
  std::vector<Measure> measures;
  for (const Json& entry : json.at(key)) {
    if (entry.at(1).is_number()) measures.push_back({entry.at(0), entry.at(1)});
  }
  return measures;
}

// JSON has no word for a number that is not finite. Absent: the number beside it holds.
constexpr char kLossText[] = "loss_text";
constexpr char kEvaluationLossText[] = "evaluation_loss_text";

void AddText(const char* key, double value, Json* json) {
  if (!std::isfinite(value)) (*json)[key] = absl::StrCat(value);
}

double FiniteOr0(double value) { return std::isfinite(value) ? value : 0; }

double ReadLoss(const Json& json, const char* key, const char* text_key) {
  double value = json.at(key);
  const std::string text = json.value(text_key, std::string());
  if (!text.empty() && !absl::SimpleAtod(text, &value)) {
    value = std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

void ReadOutcome(const Json& json, JobState* state) {
  state->step = json.at("step");
  state->skipped_steps = json.at("skipped_steps");
  state->reached_step = json.at("reached_step");
  state->reached_text = json.at("reached_text");
  state->applied_at_start = json.at("applied_at_start");
  state->consecutive_nonfinite = json.at("consecutive_nonfinite");
  state->nonfinite_since = json.at("nonfinite_since");
  state->nonfinite_evaluation_since = json.at("nonfinite_evaluation_since");
  state->last_loss = ReadLoss(json, "loss", kLossText);
  state->has_loss = json.at("has_loss");
  state->evaluation_loss = ReadLoss(json, "evaluation_loss", kEvaluationLossText);
  state->has_evaluation_loss = json.at("has_evaluation_loss");
  state->last_measures = ReadMeasures(json, "measures");
  state->evaluation_measures = ReadMeasures(json, "evaluation_measures");
  state->tokens_per_second = json.at("tokens_per_second");
  state->step_seconds = json.at("step_seconds");
  state->bubble = json.at("bubble");
  state->bubble_ideal = json.at("bubble_ideal");
  state->forecast_step_seconds = json.at("forecast_step_seconds");
  state->finished_unix_seconds = json.at("finished_unix_seconds");
  state->weights_digest = json.at("weights_digest");
  state->weights_folder = json.at("weights_folder");
}

void ReadPlacement(const Json& json, JobState* state) {
  for (const Json& layer : json.at("profile")) {
    state->profile.push_back({layer.at(0), layer.at(1)});
  }
  state->profile_tried = json.at("profile_tried");
  for (const Json& stage : json.at("stages")) {
    StageSlot slot;
    slot.stage.name = stage.at("name");
    slot.stage.address = stage.at("address");
    slot.place = stage.at("place");
    slot.first_layer = stage.at("first_layer");
    slot.last_layer = stage.at("last_layer");
    state->slots.push_back(std::move(slot));
  }
  const Json& data = json.at("data");
  state->data.bytes = data.at("bytes");
  state->data.sha256 = data.at("sha256");
  state->data.train_samples = data.at("train_sequences");
  state->data.evaluation_samples = data.at("evaluation_sequences");
}

}  // namespace

std::string EncodeJobState(const JobState& state) {
  Json json = {
      {"phase", static_cast<int>(state.phase)},
      {"message", state.message},
      {"generation", state.generation},
      {"recoveries", state.recoveries},
      {"records", state.records},
      {"wanted_stages", state.wanted_stages},
      {"furthest_step", state.furthest_step},
      {"failures", FailuresJson(state.failures)},
      {"deaths", DeathsJson(state.deaths)},
      {"last_checkpoint_step", state.last_checkpoint_step},
      {"snapshots", state.snapshots.taken},
      {"fingerprint", state.fingerprint},
      {"resumed_data_sha256", state.resumed_data_sha256},
      {"resume_step", state.resume_step},
      {"weights", {{"bytes", state.weights.bytes}, {"sha256", state.weights.sha256}}},
      {"data",
       {{"bytes", state.data.bytes},
        {"sha256", state.data.sha256},
        {"train_sequences", state.data.train_samples},
        {"evaluation_sequences", state.data.evaluation_samples}}},
      {"profile", ProfileJson(state.profile)},
      {"profile_tried", state.profile_tried},
      {"stages", StagesJson(state.slots)},
      {"step", state.step},
      {"skipped_steps", state.skipped_steps},
      {"reached_step", state.reached_step},
      {"reached_text", state.reached_text},
      {"consecutive_nonfinite", state.consecutive_nonfinite},
      {"applied_at_start", state.applied_at_start},
      {"nonfinite_since", state.nonfinite_since},
      {"nonfinite_evaluation_since", state.nonfinite_evaluation_since},
      {"loss", FiniteOr0(state.last_loss)},
      {"has_loss", state.has_loss},
      {"evaluation_loss", FiniteOr0(state.evaluation_loss)},
      {"has_evaluation_loss", state.has_evaluation_loss},
      {"measures", MeasuresJson(state.last_measures)},
      {"evaluation_measures", MeasuresJson(state.evaluation_measures)},
      {"tokens_per_second", state.tokens_per_second},
      {"step_seconds", state.step_seconds},
      {"bubble", state.bubble},
      {"bubble_ideal", state.bubble_ideal},
      {"forecast_step_seconds", state.forecast_step_seconds},
      {"finished_unix_seconds", state.finished_unix_seconds},
      {"weights_digest", state.weights_digest},
      {"weights_folder", state.weights_folder},
  };
  AddText(kLossText, state.last_loss, &json);
  AddText(kEvaluationLossText, state.evaluation_loss, &json);
  // A message may quote bytes from anywhere: what is not UTF-8 is replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status DecodeJobState(const std::string& text, JobState* state) {
  const std::string& job = state->job->id;
  // nlohmann::json reports by exceptions; they end here.
  try {
    const Json json = Json::parse(text);
    const int phase = json.at("phase");
    if (phase < 0 || phase > static_cast<int>(JobPhase::kHeld)) {
      return absl::DataLossError(absl::StrCat("journal: job ", job, ": phase ", phase));
    }
    state->phase = static_cast<JobPhase>(phase);
    state->message = ShownText(std::string(json.at("message")));
    state->generation = json.at("generation");
    state->recoveries = json.at("recoveries");
    state->records = json.at("records");
    state->wanted_stages = json.at("wanted_stages");
    state->furthest_step = json.at("furthest_step");
    for (const Json& entry : json.at("failures")) {
      StepFailures& failed = state->failures[entry.at(0)];
      failed.count = entry.at(1);
      failed.stages = entry.at(2).get<std::set<std::string>>();
    }
    state->deaths = ReadDeaths(json.at("deaths"));
    state->last_checkpoint_step = json.at("last_checkpoint_step");
    state->snapshots.taken = json.at("snapshots");
    state->fingerprint = json.at("fingerprint");
    state->resumed_data_sha256 = json.at("resumed_data_sha256");
    state->resume_step = json.at("resume_step");
    state->weights = {json.at("weights").at("bytes"), json.at("weights").at("sha256")};
    ReadPlacement(json, state);
    ReadOutcome(json, state);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("journal: state of job ", job, ": ", error.what()));
  }
  if (IsTerminal(state->phase)) state->activity = Activity::kEnded;
  return absl::OkStatus();
}

}  // namespace stagecoach
