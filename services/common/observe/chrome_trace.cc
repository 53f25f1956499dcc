#include "services/common/observe/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stagecoach {
namespace {

constexpr int kCompute = 0, kSend = 1, kReceive = 2, kTracks = 3;
constexpr const char* kTrackNames[kTracks] = {"compute", "send", "receive"};
// Overflow threads of a track lie this far apart, so that tid modulo it is the track.
constexpr int kLaneStride = 10;

std::string Quoted(const std::string& text) {
  // Names come from command lines: what is not UTF-8 must not make the file unreadable.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Micros(int64_t nanos) {
  return absl::StrFormat("%d.%03d", nanos / 1000, static_cast<int>(nanos % 1000));
}

std::optional<int> TrackOf(const v1::TraceSpan& span) {
  switch (span.track()) {
    case v1::TRACE_TRACK_COMPUTE:
      return kCompute;
    case v1::TRACE_TRACK_SEND:
      return kSend;
    case v1::TRACE_TRACK_RECEIVE:
      return kReceive;
    default:
      return std::nullopt;  // of a newer server
  }
}

std::string CategoryOf(const v1::TraceSpan& span, int track) {
  if (track == kSend) return "send";
  return track == kReceive ? "receive" : span.name();
}

std::string NameOf(const v1::TraceSpan& span, int track) {
  const std::string& name = span.name();
  if (span.micro_batch() < 0 || name.empty()) return name;
  if (track != kCompute) {
    return absl::StrCat(track == kSend ? ">" : "<", name.substr(0, 1), span.micro_batch());
  }
  const char* letter = name == "forward"     ? "F"
                       : name == "recompute" ? "R"
                       : name == "backward"  ? "B"
                                             : nullptr;
  if (letter == nullptr) return name;
  return span.has_cell() ? absl::StrCat(letter, span.cell(), ".", span.micro_batch())
                         : absl::StrCat(letter, span.micro_batch());
}

// A span where it is drawn; times of the coordinator's clock.
struct Placed {
  const v1::TraceSpan* span;
  int stage, track, tid;
  int64_t begin, end;
};

// A message as both of its ends know it: step, attempt, micro-batch, kind, the cell above its edge.
using MessageKey = std::tuple<uint64_t, uint32_t, int32_t, std::string, int>;

MessageKey KeyOf(const Placed& placed) {
  const v1::TraceSpan& span = *placed.span;
  return {span.step(), span.attempt(), span.micro_batch(), span.name(), span.cell()};
}

class TraceWriter {
 public:
  TraceWriter(const std::string& job_id, const v1::GetTraceResponse& trace)
      : job_id_(job_id), trace_(trace) {}

  std::string Write() {
    Place();
    for (const v1::StageTrace& stage : trace_.stages()) WriteNames(stage);
    for (const Placed& placed : spans_) WriteSpan(placed);
    WriteArrows();
    return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", events_, "\n],\n",
                        OtherData(), "}\n");
  }

 private:
  void Place() {
    for (const v1::StageTrace& stage : trace_.stages()) {
      for (const v1::TraceSpan& span : stage.spans()) {
        const std::optional<int> track = TrackOf(span);
        if (!track.has_value()) continue;
        const int64_t begin = span.begin_unix_nanos() - stage.clock_offset_nanos();
        const int64_t end = span.end_unix_nanos() - stage.clock_offset_nanos();
        spans_.push_back({&span, stage.stage(), *track, *track, begin, std::max(begin, end)});
      }
    }
    std::stable_sort(spans_.begin(), spans_.end(), [](const Placed& a, const Placed& b) {
      return std::tie(a.stage, a.track, a.begin, a.end) <
             std::tie(b.stage, b.track, b.begin, b.end);
    });
    std::map<std::pair<int, int>, std::vector<int64_t>> lane_ends;  // by stage and track
    for (Placed& placed : spans_) {
      std::vector<int64_t>& ends = lane_ends[{placed.stage, placed.track}];
      auto lane =
          std::find_if(ends.begin(), ends.end(), [&](int64_t end) { return end <= placed.begin; });
      if (lane == ends.end()) lane = ends.insert(ends.end(), 0);
      *lane = placed.end;
      placed.tid = placed.track + kLaneStride * static_cast<int>(lane - ends.begin());
      start_ = std::min(start_, placed.begin);
    }
    for (const auto& [where, ends] : lane_ends) lanes_[where] = static_cast<int>(ends.size());
    if (spans_.empty()) start_ = 0;
  }

  void Event(const std::string& body) {
    absl::StrAppend(&events_, events_.empty() ? "\n{" : ",\n{", body, "}");
  }

  void Metadata(int stage, int tid, const char* name, const std::string& arguments) {
    Event(absl::StrCat("\"name\":\"", name, "\",\"ph\":\"M\",\"pid\":", stage, ",\"tid\":", tid,
                       ",\"args\":{", arguments, "}"));
  }

  void WriteNames(const v1::StageTrace& stage) {
    const int pid = stage.stage();
    Metadata(pid, 0, "process_name",
             absl::StrCat("\"name\":", Quoted(absl::StrCat("stage ", pid, ": ", stage.name()))));
    Metadata(pid, 0, "process_sort_index", absl::StrCat("\"sort_index\":", pid));
    const std::string label =
        stage.error().empty()
            ? absl::StrFormat("clock offset %.3f ms, error at most %.3f ms",
                              static_cast<double>(stage.clock_offset_nanos()) * 1e-6,
                              static_cast<double>(stage.clock_error_nanos()) * 1e-6)
            : absl::StrCat("missing: ", stage.error());
    Metadata(pid, 0, "process_labels", absl::StrCat("\"labels\":", Quoted(label)));
    for (int track = 0; track < kTracks; ++track) {
      const auto lanes = lanes_.find({pid, track});
      const int count = lanes == lanes_.end() ? 1 : lanes->second;
      for (int lane = 0; lane < count; ++lane) {
        const int tid = track + kLaneStride * lane;
        const std::string number = lane == 0 ? "" : absl::StrCat(" ", lane + 1);
        Metadata(pid, tid, "thread_name",
                 absl::StrCat("\"name\":\"", kTrackNames[track], number, "\""));
        // All lanes of a track side by side, whatever their numbers.
        Metadata(pid, tid, "thread_sort_index",
                 absl::StrCat("\"sort_index\":", track * 1000 + lane));
      }
    }
  }

  void WriteSpan(const Placed& placed) {
    const v1::TraceSpan& span = *placed.span;
    std::string arguments = absl::StrCat("\"step\":", span.step(), ",\"attempt\":", span.attempt());
    if (span.micro_batch() >= 0) {
      absl::StrAppend(&arguments, ",\"microbatch\":", span.micro_batch());
    }
    if (placed.track == kCompute && span.has_cell()) {
      absl::StrAppend(&arguments, ",\"cell\":", span.cell());
    }
    if (placed.track != kCompute) {
      absl::StrAppend(&arguments, ",\"bytes\":", span.bytes(), ",\"peer\":", Quoted(span.peer()));
    }
    Event(absl::StrCat("\"name\":", Quoted(NameOf(span, placed.track)),
                       ",\"cat\":", Quoted(CategoryOf(span, placed.track)),
                       ",\"ph\":\"X\",\"ts\":", Micros(placed.begin - start_),
                       ",\"dur\":", Micros(placed.end - placed.begin), ",\"pid\":", placed.stage,
                       ",\"tid\":", placed.tid, ",\"args\":{", arguments, "}"));
  }

  void WriteArrows() {
    std::multimap<MessageKey, const Placed*> receives;
    for (const Placed& placed : spans_) {
      if (placed.track == kReceive) receives.emplace(KeyOf(placed), &placed);
    }
    int id = 0;
    for (const Placed& send : spans_) {
      if (send.track != kSend) continue;
      const auto receive = receives.find(KeyOf(send));
      if (receive == receives.end()) continue;  // the ring of one of them has forgotten it
      WriteArrow(send, *receive->second, ++id);
      receives.erase(receive);
    }
  }

  void WriteArrow(const Placed& send, const Placed& receive, int id) {
    const std::string common =
        absl::StrCat("\"name\":", Quoted(send.span->name()), ",\"cat\":\"message\",\"id\":", id);
    Event(absl::StrCat(common, ",\"ph\":\"s\",\"ts\":", Micros(send.begin - start_),
                       ",\"pid\":", send.stage, ",\"tid\":", send.tid));
    // Its end must lie inside of the receive's span, and a span does not hold its own end.
    const int64_t inside = std::max(receive.begin, receive.end - 1);
    Event(absl::StrCat(common, ",\"ph\":\"f\",\"bp\":\"e\",\"ts\":", Micros(inside - start_),
                       ",\"pid\":", receive.stage, ",\"tid\":", receive.tid));
  }

  std::string OtherData() const {
    std::string stages;
    for (const v1::StageTrace& stage : trace_.stages()) {
      absl::StrAppend(&stages, stages.empty() ? "\n{" : ",\n{", "\"stage\":", stage.stage(),
                      ",\"name\":", Quoted(stage.name()),
                      ",\"clock_offset_nanos\":", stage.clock_offset_nanos(),
                      ",\"clock_error_nanos\":", stage.clock_error_nanos(),
                      ",\"error\":", Quoted(stage.error()), "}");
    }
    return absl::StrCat("\"otherData\":{\"job\":", Quoted(job_id_),
                        ",\"clock\":\"coordinator\",\"start_unix_nanos\":\"", start_,
                        "\",\"stages\":[", stages, "\n]}");
  }

  const std::string& job_id_;
  const v1::GetTraceResponse& trace_;
  std::vector<Placed> spans_;
  std::map<std::pair<int, int>, int> lanes_;  // by stage and track
  int64_t start_ = std::numeric_limits<int64_t>::max();
  std::string events_;
};

}  // namespace

std::string ToChromeTrace(const std::string& job_id, const v1::GetTraceResponse& trace) {
  return TraceWriter(job_id, trace).Write();
}

}  // namespace stagecoach
