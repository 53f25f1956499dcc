// The golden file is what a viewer gets; STAGECOACH_REWRITE=1 writes it anew.
#include "services/common/observe/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/golden_testing.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int64_t kStart = 1'700'000'000'000'000'000;

v1::TraceSpan* Add(v1::StageTrace* stage, const std::string& name, v1::TraceTrack track,
                   int micro_batch, int64_t begin, int64_t end, const std::string& peer = "") {
  v1::TraceSpan* span = stage->add_spans();
  span->set_name(name);
  span->set_track(track);
  span->set_step(7);
  span->set_attempt(2);
  span->set_micro_batch(micro_batch);
  span->set_begin_unix_nanos(kStart + begin);
  span->set_end_unix_nanos(kStart + end);
  span->set_peer(peer);
  if (!peer.empty()) span->set_bytes(4096);
  if (!peer.empty()) span->set_cell(0);
  return span;
}

// Two stages, one micro-batch down and up; the clock of stage 1 is 1 ms ahead.
v1::GetTraceResponse TwoStages() {
  v1::GetTraceResponse trace;
  v1::StageTrace* first = trace.add_stages();
  first->set_stage(0);
  first->set_name("stage-0");
  first->set_clock_error_nanos(40'000);
  Add(first, "data_wait", v1::TRACE_TRACK_COMPUTE, 0, 0, 1'500);
  Add(first, "forward", v1::TRACE_TRACK_COMPUTE, 0, 1'500, 101'500);
  Add(first, "activation", v1::TRACE_TRACK_SEND, 0, 101'500, 151'500, "downstream");
  Add(first, "gradient", v1::TRACE_TRACK_RECEIVE, 0, 301'500, 351'500, "downstream");
  Add(first, "backward", v1::TRACE_TRACK_COMPUTE, 0, 351'500, 551'500);
  Add(first, "optimizer", v1::TRACE_TRACK_COMPUTE, -1, 551'500, 561'500);
  v1::StageTrace* second = trace.add_stages();
  second->set_stage(1);
  second->set_name("stage-1");
  second->set_clock_offset_nanos(1'000'000);
  second->set_clock_error_nanos(50'000);
  Add(second, "activation", v1::TRACE_TRACK_RECEIVE, 0, 1'101'500, 1'151'500, "upstream");
  Add(second, "bubble", v1::TRACE_TRACK_COMPUTE, 0, 1'000'000, 1'101'500);
  Add(second, "forward", v1::TRACE_TRACK_COMPUTE, 0, 1'151'500, 1'201'500);
  Add(second, "backward", v1::TRACE_TRACK_COMPUTE, 0, 1'201'500, 1'301'500);
  Add(second, "gradient", v1::TRACE_TRACK_SEND, 0, 1'301'500, 1'351'500, "upstream");
  return trace;
}

json EventsOf(const v1::GetTraceResponse& trace) {
  return json::parse(ToChromeTrace("job-1", trace)).at("traceEvents");
}

TEST(ChromeTrace, LooksAsTheGoldenFile) {
  ExpectGolden("chrome_trace.json", ToChromeTrace("job-1", TwoStages()));
}

TEST(ChromeTrace, TimesStartAtZeroOnTheCoordinatorsClock) {
  std::map<std::string, std::pair<double, double>> spans;
  for (const json& event : EventsOf(TwoStages())) {
    if (event.at("ph") != "X") continue;
    spans[absl::StrCat(event.at("pid").get<int>(), event.at("name").get<std::string>())] = {
        event.at("ts"), event.at("dur")};
  }
  EXPECT_EQ(spans.at("0data_wait"), std::make_pair(0.0, 1.5));
  EXPECT_EQ(spans.at("0F0"), std::make_pair(1.5, 100.0));
  EXPECT_EQ(spans.at("1bubble"), std::make_pair(0.0, 101.5)) << "1 ms of offset is taken off";
  EXPECT_EQ(spans.at("1<a0"), std::make_pair(101.5, 50.0));
  EXPECT_EQ(spans.at("1>g0"), std::make_pair(301.5, 50.0));
}

TEST(ChromeTrace, ArrowsLeadFromSendsToTheirReceives) {
  std::map<int, json> starts, ends;
  for (const json& event : EventsOf(TwoStages())) {
    if (event.at("ph") == "s") starts[event.at("id")] = event;
    if (event.at("ph") == "f") ends[event.at("id")] = event;
  }
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  for (const auto& [id, start] : starts) {
    const json& end = ends.at(id);
    EXPECT_EQ(start.at("name"), end.at("name"));
    EXPECT_EQ(start.at("tid"), 1);
    EXPECT_EQ(end.at("tid"), 2);
    EXPECT_EQ(end.at("bp"), "e");
    EXPECT_EQ(end.at("pid"), 1 - start.at("pid").get<int>());
    EXPECT_EQ(start.at("pid"), start.at("name") == "activation" ? 0 : 1);
    EXPECT_LT(start.at("ts").get<double>(), end.at("ts").get<double>());
  }
}

TEST(ChromeTrace, AnotherTryOfAStepIsAnotherMessage) {
  v1::GetTraceResponse trace = TwoStages();
  for (v1::TraceSpan& span : *trace.mutable_stages(1)->mutable_spans()) span.set_attempt(3);
  for (const json& event : EventsOf(trace)) EXPECT_NE(event.at("ph"), "s");
}

TEST(ChromeTrace, OverlappingSpansGoToThreadsOfTheirOwn) {
  v1::GetTraceResponse trace;
  v1::StageTrace* stage = trace.add_stages();
  Add(stage, "activation", v1::TRACE_TRACK_SEND, 0, 0, 100, "downstream");
  Add(stage, "activation", v1::TRACE_TRACK_SEND, 1, 50, 120, "downstream");
  Add(stage, "activation", v1::TRACE_TRACK_SEND, 2, 100, 110, "downstream");
  std::map<std::string, int> tids;
  std::map<int, std::string> names;
  for (const json& event : EventsOf(trace)) {
    if (event.at("ph") == "X") tids[event.at("name")] = event.at("tid");
    if (event.at("name") == "thread_name") {
      names[event.at("tid")] = event.at("args").at("name").get<std::string>();
    }
  }
  EXPECT_EQ(tids, (std::map<std::string, int>{{">a0", 1}, {">a1", 11}, {">a2", 1}}));
  EXPECT_EQ(names, (std::map<int, std::string>{
                       {0, "compute"}, {1, "send"}, {2, "receive"}, {11, "send 2"}}));
}

TEST(ChromeTrace, OffsetsErrorsAndMissingStagesAreStated) {
  v1::GetTraceResponse trace = TwoStages();
  v1::StageTrace* missing = trace.add_stages();
  missing->set_stage(2);
  missing->set_name("stage\"2\xff");
  missing->set_error("no answer within 2 s");
  const std::string text = ToChromeTrace("job-1", trace);
  const json other = json::parse(text).at("otherData");
  EXPECT_EQ(other.at("job"), "job-1");
  EXPECT_EQ(other.at("start_unix_nanos"), absl::StrCat(kStart));
  ASSERT_EQ(other.at("stages").size(), 3u);
  EXPECT_EQ(other.at("stages")[1].at("clock_offset_nanos"), 1'000'000);
  EXPECT_EQ(other.at("stages")[1].at("clock_error_nanos"), 50'000);
  EXPECT_EQ(other.at("stages")[2].at("error"), "no answer within 2 s");
  EXPECT_THAT(text, HasSubstr("\"labels\":\"missing: no answer within 2 s\""));
}

TEST(ChromeTrace, NothingIsAFileToo) {
  const json empty = json::parse(ToChromeTrace("job-1", {}));
  EXPECT_TRUE(empty.at("traceEvents").empty());
  EXPECT_EQ(empty.at("otherData").at("start_unix_nanos"), "0");
}

}  // namespace
}  // namespace stagecoach
