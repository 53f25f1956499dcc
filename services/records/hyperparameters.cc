#include "services/records/hyperparameters.h"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/job/learning_rate_kinds.h"
#include "services/records/event_bytes.h"

namespace stagecoach {
namespace {

using event_bytes::AppendLittleEndian;
using event_bytes::AppendText;

constexpr char kSessionTag[] = "_hparams_/session_start_info";
constexpr char kPlugin[] = "hparams";
// Fields of the messages, as in event_bytes.h.
constexpr char kValueTag = 0x0a, kValueTensor = 0x42, kValueMetadata = 0x4a;
constexpr char kMetadataPlugin = 0x0a, kPluginName = 0x0a, kPluginContent = 0x12;
constexpr char kContentSessionStart = 0x1a;
constexpr char kStartParameters = 0x0a, kStartGroup = 0x22, kStartTime = 0x29;
constexpr char kEntryKey = 0x0a, kEntryValue = 0x12;
constexpr char kNumber = 0x11, kString = 0x1a;
// A tensor of no floats: TensorBoard drops summaries that have no value at all.
constexpr char kNoTensor[] = "\x08\x01\x12\x02\x12\x00";

void AppendDouble(char tag, double value, std::string* bytes) {
  *bytes += tag;
  AppendLittleEndian(std::bit_cast<uint64_t>(value), bytes);
}

class List {
 public:
  void Add(const char* name, double value) { all.push_back({name, value}); }
  void Add(const char* name, bool value) { Add(name, value ? 1.0 : 0.0); }
  void Add(const char* name, int64_t value) { Add(name, static_cast<double>(value)); }
  template <typename Number>
  void Add(const char* name, const std::vector<Number>& values) {
    if (!values.empty()) Add(name, absl::StrCat("[", absl::StrJoin(values, ", "), "]"));
  }
  void Add(const char* name, std::string value) { all.push_back({name, std::move(value)}); }
  void Add(const char* name, const char* value) { Add(name, std::string(value)); }

  void AddNetwork(const NetworkSpec& network) {
    Add("model", network.kind.c_str());
    if (!network.layers.empty()) Add("layers", static_cast<int64_t>(network.layers.size()));
    if (!network.encoder.empty()) Add("encoder", static_cast<int64_t>(network.encoder.size()));
    AddFields(network.attributes);
  }
  void AddFields(const Attributes& fields) {
    for (const Attributes::Entry& entry : fields.entries()) {
      std::visit([&](const auto& value) { Add(entry.name.c_str(), value); }, entry.value);
    }
  }

  std::vector<HyperParameter> all;
};

}  // namespace

std::vector<HyperParameter> HyperParametersOf(const JobSpec& spec) {
  List list;
  list.AddNetwork(spec.network);
  const TrainingSpec& training = spec.training;
  list.Add("precision", PrecisionName(spec.precision));
  list.Add("seed", static_cast<double>(spec.seed));
  if (spec.initialize.given()) list.Add("initialize", spec.initialize.from);
  list.Add("steps", training.steps);
  if (training.epochs > 0) list.Add("epochs", training.epochs);
  list.Add("batch_size", training.batch_size);
  list.Add("micro_batches", training.micro_batches);
  list.Add("optimizer", training.optimizer.kind);
  list.AddFields(training.optimizer.attributes);
  const LearningRateKind& rate = LearningRateKinds().Named(training.learning_rate.kind);
  list.Add("learning_rate", rate.Peak(training.learning_rate));
  list.Add("learning_rate_curve", training.learning_rate.kind);
  const RateSpan warmup = rate.WarmUp(training.learning_rate);
  list.Add("warmup_steps", warmup.steps);
  if (warmup.epochs > 0) list.Add("warmup_epochs", warmup.epochs);
  list.Add("gradient_clip_norm", training.gradient_clip_norm);
  list.Add("schedule", spec.pipeline.schedule);
  list.Add("rematerialization", RematerializationName(spec.pipeline.rematerialization));
  return std::move(list.all);
}

std::string SessionStartEvent(double unix_seconds, const std::string& job,
                              const std::vector<HyperParameter>& parameters) {
  std::string start;
  for (const HyperParameter& parameter : parameters) {
    std::string value, entry;
    if (const auto* number = std::get_if<double>(&parameter.value)) {
      AppendDouble(kNumber, *number, &value);
    } else {
      AppendText(kString, std::get<std::string>(parameter.value), &value);
    }
    AppendText(kEntryKey, parameter.name, &entry);
    AppendText(kEntryValue, value, &entry);
    AppendText(kStartParameters, entry, &start);
  }
  AppendText(kStartGroup, job, &start);
  AppendDouble(kStartTime, unix_seconds, &start);
  std::string content, plugin, metadata, value;
  AppendText(kContentSessionStart, start, &content);
  AppendText(kPluginName, kPlugin, &plugin);
  AppendText(kPluginContent, content, &plugin);
  AppendText(kMetadataPlugin, plugin, &metadata);
  AppendText(kValueTag, kSessionTag, &value);
  AppendText(kValueTensor, std::string(kNoTensor, sizeof(kNoTensor) - 1), &value);
  AppendText(kValueMetadata, metadata, &value);
  return event_bytes::SummaryEvent(unix_seconds, 0, value);
}

}  // namespace stagecoach
