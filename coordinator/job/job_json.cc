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

// Each that the journal has as it is. State: JobState, const or not.
template <typename State, typename Visit>
void EachField(State& state, const Visit& visit) {
  visit("generation", state.generation);
  visit("records", state.records);
  visit("wanted_stages", state.stages.wanted);
  visit("furthest_step", state.furthest_step);
  visit("last_checkpoint_step", state.checkpoints.last.step);
  visit("snapshots", state.snapshots.taken);
  visit("fingerprint", state.found.fingerprint);
  visit("resumed_data_sha256", state.origin.data_sha256);
  visit("resume_step", state.origin.resume_step);
  visit("applied_at_start", state.origin.applied_steps);
  visit("profile_tried", state.profile_tried);
  visit("step", state.step);
  visit("reached_step", state.reached.step);
  visit("reached_text", state.reached.text);
  visit("consecutive_nonfinite", state.nonfinite.steps);
  visit("nonfinite_since", state.nonfinite.since);
  visit("nonfinite_evaluation_since", state.nonfinite.evaluation_since);
  auto& results = state.results;
  visit("recoveries", results.recoveries);
  visit("skipped_steps", results.skipped_steps);
  visit("has_loss", results.has_loss);
  visit("has_evaluation_loss", results.has_evaluation_loss);
  visit("tokens_per_second", results.tokens_per_second);
  visit("step_seconds", results.step_seconds);
  visit("bubble", results.bubble);
  visit("bubble_ideal", results.bubble_ideal);
  visit("forecast_step_seconds", results.forecast_step_seconds);
  visit("finished_unix_seconds", results.finished_unix_seconds);
  visit("weights_digest", results.weights_digest);
  visit("weights_folder", results.weights_folder);
}

void ReadPlacement(const Json& json, JobState* state) {
  for (const Json& layer : json.at("profile")) {
    state->profile.push_back({layer.at(0), layer.at(1)});
  }
  for (const Json& stage : json.at("stages")) {
    StageSlot slot;
    slot.stage.name = stage.at("name");
    slot.stage.address = stage.at("address");
    slot.place = stage.at("place");
    slot.first_layer = stage.at("first_layer");
    slot.last_layer = stage.at("last_layer");
    state->slots.push_back(std::move(slot));
  }
  DatasetManifest& data = state->found.data;
  data.bytes = json.at("data").at("bytes");
  data.sha256 = json.at("data").at("sha256");
  data.train_samples = json.at("data").at("train_sequences");
  data.evaluation_samples = json.at("data").at("evaluation_sequences");
}

}  // namespace

std::string EncodeJobState(const JobState& state) {
  const JobResults& results = state.results;
  const StageDeaths& deaths = state.failures.deaths;
  const LoadFindings& found = state.found;
  Json json = {
      {"phase", static_cast<int>(state.phase)},
      {"message", state.message},
      {"failures", FailuresJson(state.failures.steps)},
      {"deaths",
       {{"count", deaths.count},
        {"step", deaths.step},
        {"instruction", deaths.instruction},
        {"stages", deaths.stages},
        {"term", deaths.term},
        {"generation", deaths.generation}}},
      {"weights", {{"bytes", found.weights.bytes}, {"sha256", found.weights.sha256}}},
      {"data",
       {{"bytes", found.data.bytes},
        {"sha256", found.data.sha256},
        {"train_sequences", found.data.train_samples},
        {"evaluation_sequences", found.data.evaluation_samples}}},
      {"profile", ProfileJson(state.profile)},
      {"stages", StagesJson(state.slots)},
      {"loss", FiniteOr0(results.loss)},
      {"evaluation_loss", FiniteOr0(results.evaluation_loss)},
      {"measures", MeasuresJson(results.measures)},
      {"evaluation_measures", MeasuresJson(results.evaluation_measures)},
  };
  EachField(state, [&json](const char* name, const auto& value) { json[name] = value; });
  AddText(kLossText, results.loss, &json);
  AddText(kEvaluationLossText, results.evaluation_loss, &json);
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
    EachField(*state, [&json](const char* name, auto& value) { json.at(name).get_to(value); });
    for (const Json& entry : json.at("failures")) {
      StepFailures& failed = state->failures.steps[entry.at(0)];
      failed.count = entry.at(1);
      failed.stages = entry.at(2).get<std::set<std::string>>();
    }
    state->failures.deaths = ReadDeaths(json.at("deaths"));
    state->found.weights = {json.at("weights").at("bytes"), json.at("weights").at("sha256")};
    state->results.loss = ReadLoss(json, "loss", kLossText);
    state->results.evaluation_loss = ReadLoss(json, "evaluation_loss", kEvaluationLossText);
    state->results.measures = ReadMeasures(json, "measures");
    state->results.evaluation_measures = ReadMeasures(json, "evaluation_measures");
    ReadPlacement(json, state);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("journal: state of job ", job, ": ", error.what()));
  }
  if (IsTerminal(state->phase)) state->activity = Activity::kEnded;
  return absl::OkStatus();
}

}  // namespace stagecoach
