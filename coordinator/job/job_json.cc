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

// JSON has no word for a number that is not finite: 0 stands for it, with a text beside it.
// Without the text, the number holds.
std::string LossText(const char* key) { return absl::StrCat(key, "_text"); }

// A writer and a reader are shown the same list of members, by their keys or places.
class JsonWriter {
 public:
  explicit JsonWriter(Json* json) : json_(*json) {}
  template <typename Key, typename T>
  void Field(Key key, const T& value) {
    json_[key] = value;
  }
  void Loss(const char* key, double value) {
    json_[key] = std::isfinite(value) ? value : 0;
    if (!std::isfinite(value)) json_[LossText(key)] = absl::StrCat(value);
  }
  void Measures(const char* key, const std::vector<Measure>& measures) {
    List(key, measures, [](JsonWriter row, const Measure& measure) {
      row.Field(0, measure.name);
      row.Field(1, measure.value);
    });
  }
  void Cells(const std::vector<LayerRange>& cells) {
    List("cells", cells, [](JsonWriter row, const LayerRange& cell) {
      row.Field(0, cell.first);
      row.Field(1, cell.last);
    });
  }
  template <typename T, typename Visit>
  void List(const char* key, const std::vector<T>& values, Visit visit) {
    Json& list = json_[key] = Json::array();
    for (const T& value : values) visit(JsonWriter(&list.emplace_back()), value);
  }
  JsonWriter Object(const char* key) { return JsonWriter(&json_[key]); }

 private:
  Json& json_;
};

class JsonReader {
 public:
  explicit JsonReader(const Json* json) : json_(*json) {}
  template <typename Key, typename T>
  void Field(Key key, T& value) {
    json_.at(key).get_to(value);
  }
  void Loss(const char* key, double& value) {
    Field(key, value);
    const std::string text = json_.value(LossText(key), std::string());
    if (!text.empty() && !absl::SimpleAtod(text, &value)) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
  }
  // A value that was no finite number was written as null.
  void Measures(const char* key, std::vector<Measure>& measures) {
    for (const Json& row : json_.at(key)) {
      if (row.at(1).is_number()) measures.push_back({row.at(0), row.at(1)});
    }
  }
  void Cells(std::vector<LayerRange>& cells) {
    List("cells", cells, [](JsonReader row, LayerRange& cell) {
      row.Field(0, cell.first);
      row.Field(1, cell.last);
    });
  }
  template <typename T, typename Visit>
  void List(const char* key, std::vector<T>& values, Visit visit) {
    for (const Json& entry : json_.at(key)) visit(JsonReader(&entry), values.emplace_back());
  }
  JsonReader Object(const char* key) { return JsonReader(&json_.at(key)); }

 private:
  const Json& json_;
};

template <typename Visitor, typename State>
void VisitPlacement(Visitor& visit, State& state) {
  visit.List("profile", state.profile, [](auto row, auto& layer) {
    row.Field(0, layer.forward_seconds);
    row.Field(1, layer.backward_seconds);
  });
  visit.Field("profile_tried", state.profile_tried);
  visit.List("stages", state.slots, [](auto stage, auto& slot) {
    stage.Field("name", slot.stage.name);
    stage.Field("address", slot.stage.address);
    stage.Field("place", slot.place);
    stage.Cells(slot.cells);
  });
  auto data = visit.Object("data");
  data.Field("bytes", state.found.data.bytes);
  data.Field("sha256", state.found.data.sha256);
  data.Field("train_sequences", state.found.data.train_samples);
  data.Field("evaluation_sequences", state.found.data.evaluation_samples);
}

template <typename Visitor, typename State>
void VisitOutcome(Visitor& visit, State& state) {
  visit.Field("step", state.step);
  visit.Field("skipped_steps", state.results.skipped_steps);
  visit.Field("reached_step", state.reached.step);
  visit.Field("reached_text", state.reached.text);
  visit.Field("applied_at_start", state.origin.applied_steps);
  visit.Field("consecutive_nonfinite", state.nonfinite.steps);
  visit.Field("nonfinite_since", state.nonfinite.since);
  visit.Field("nonfinite_evaluation_since", state.nonfinite.evaluation_since);
  visit.Loss("loss", state.results.loss);
  visit.Field("has_loss", state.results.has_loss);
  visit.Loss("evaluation_loss", state.results.evaluation_loss);
  visit.Field("has_evaluation_loss", state.results.has_evaluation_loss);
  visit.Measures("measures", state.results.measures);
  visit.Measures("evaluation_measures", state.results.evaluation_measures);
  visit.Field("tokens_per_second", state.results.tokens_per_second);
  visit.Field("step_seconds", state.results.step_seconds);
  visit.Field("bubble", state.results.bubble);
  visit.Field("bubble_ideal", state.results.bubble_ideal);
  visit.Field("forecast_step_seconds", state.results.forecast_step_seconds);
  visit.Field("finished_unix_seconds", state.results.finished_unix_seconds);
  visit.Field("weights_digest", state.results.weights_digest);
  visit.Field("weights_folder", state.results.weights_folder);
}

// All but the phase and the failures of steps.
template <typename Visitor, typename State>
void VisitState(Visitor visit, State& state) {
  visit.Field("message", state.message);
  visit.Field("generation", state.generation);
  visit.Field("recoveries", state.results.recoveries);
  visit.Field("records", state.records);
  visit.Field("wanted_stages", state.stages.wanted);
  visit.Field("furthest_step", state.furthest_step);
  auto deaths = visit.Object("deaths");
  deaths.Field("count", state.failures.deaths.count);
  deaths.Field("step", state.failures.deaths.step);
  deaths.Field("instruction", state.failures.deaths.instruction);
  deaths.Field("stages", state.failures.deaths.stages);
  deaths.Field("term", state.failures.deaths.term);
  deaths.Field("generation", state.failures.deaths.generation);
  visit.Field("last_checkpoint_step", state.checkpoints.last.step);
  visit.Field("snapshots", state.snapshots.taken);
  visit.Field("fingerprint", state.found.fingerprint);
  visit.Field("resumed_data_sha256", state.origin.data_sha256);
  visit.Field("resume_step", state.origin.resume_step);
  auto weights = visit.Object("weights");
  weights.Field("bytes", state.found.weights.bytes);
  weights.Field("sha256", state.found.weights.sha256);
  VisitPlacement(visit, state);
  VisitOutcome(visit, state);
}

}  // namespace

std::string EncodeJobState(const JobState& state) {
  Json json = {{"phase", static_cast<int>(state.phase)}};
  VisitState(JsonWriter(&json), state);
  Json& failures = json["failures"] = Json::array();
  for (const auto& [step, failed] : state.failures.steps) {
    failures.push_back({step, failed.count, failed.stages});
  }
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
    VisitState(JsonReader(&json), *state);
    state->message = ShownText(state->message);
    for (const Json& entry : json.at("failures")) {
      state->failures.steps[entry.at(0)] = {entry.at(1), entry.at(2)};
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("journal: state of job ", job, ": ", error.what()));
  }
  if (IsTerminal(state->phase)) state->activity = Activity::kEnded;
  return absl::OkStatus();
}

}  // namespace stagecoach
