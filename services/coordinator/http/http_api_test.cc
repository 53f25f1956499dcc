// The HTTP side over a real job manager whose job waits for stages that never come.
#include "services/coordinator/http/http_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coordinator/journal/database.h"
#include "scores/sacrebleu_text.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "services/coordinator/http/event_stream.h"
#include "services/coordinator/watch/await.h"

namespace stagecoach {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpApiTest : public WaitingJobTest {
 protected:
  HttpApiTest()
      : api_(std::make_unique<HttpApi>(HttpApi::Parts{.manager = manager_.get(),
                                                      .checkpoints = &store_,
                                                      .stages = &observer_,
                                                      .traces = &traces_,
                                                      .log = &ring_})) {}

  static HttpRequest Request(const std::string& target, const std::string& method = "GET") {
    const std::vector<std::string> parts = absl::StrSplit(target, absl::MaxSplits('?', 1));
    return {method, parts[0], parts.size() > 1 ? parts[1] : "", {}};
  }
  HttpResponse Fetch(const std::string& target, const std::string& method = "GET") const {
    return api_->Answer(Request(target, method));
  }
  json Json(const std::string& target, int status = 200) const {
    const HttpResponse response = Fetch(target);
    EXPECT_EQ(response.status, status) << target << " " << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    return json::parse(response.body);
  }

  std::unique_ptr<HttpApi> api_;
};

TEST_F(HttpApiTest, PrintsEveryFieldWithTheNamesOfTheMessages) {
  const json jobs = Json("/api/v1/jobs");
  ASSERT_EQ(jobs["jobs"].size(), 1u);
  json job = Json("/api/v1/jobs/job-a");
  EXPECT_EQ(job["spec"]["name"], "small");
  EXPECT_EQ(job["summary"]["name"], "small");
  EXPECT_EQ(job["summary"]["model"], "gpt");
  json listed = job;
  listed.erase("spec");
  EXPECT_EQ(jobs["jobs"][0], listed) << "a list has no room for specs";
  EXPECT_EQ(job["id"], "job-a");
  EXPECT_EQ(job["state"], "JOB_STATE_PENDING");
  EXPECT_EQ(job["step"], "0") << "64-bit integers are strings, and zeros are printed";
  EXPECT_EQ(job["bubble_ideal"], 0);
  EXPECT_FALSE(job.contains("loss")) << "what is optional and not there is left out";
  EXPECT_EQ(Json("/api/v1/stages")["stages"].size(), 0u);
  EXPECT_EQ(Json("/api/v1/jobs/job-a/checkpoints")["checkpoints"].size(), 0u);
  EXPECT_EQ(Json("/api/v1/jobs/job-a/plan")["stages"].size(), 2u);
  EXPECT_EQ(Json("/api/v1/jobs/job-a/trace")["stages"].size(), 0u);
}

TEST_F(HttpApiTest, GivesJobsInPages) {
  for (const char* id : {"job-b", "job-c"}) {
    const auto view = Await<absl::StatusOr<JobView>>(
        kPatience, [&](auto done) { manager_->Submit(id, SmallSpec(), done); });
    ASSERT_TRUE(view.has_value() && view->ok());
  }
  const json newest = Json("/api/v1/jobs?limit=2");
  ASSERT_EQ(newest["jobs"].size(), 2u);
  EXPECT_EQ(newest["jobs"][0]["id"], "job-c");
  const std::string token = newest["next_page_token"];
  const json last = Json("/api/v1/jobs?limit=2&after=" + token);
  ASSERT_EQ(last["jobs"].size(), 1u);
  EXPECT_EQ(last["jobs"][0]["id"], "job-a");
  EXPECT_EQ(last["next_page_token"], "");
  EXPECT_EQ(Json("/api/v1/jobs?after=")["jobs"].size(), 3u)
      << "as a page asks that has no token yet";
}

TEST_F(HttpApiTest, GivesRecordsInPages) {
  const json all = Json("/api/v1/jobs/job-a/records");
  ASSERT_GE(all["records"].size(), 2u);
  EXPECT_EQ(all["complete"], true);
  EXPECT_EQ(all["next"], all["records"].size());
  const json first = Json("/api/v1/jobs/job-a/records?limit=1");
  EXPECT_EQ(first["records"].size(), 1u);
  EXPECT_EQ(first["complete"], false);
  EXPECT_EQ(first["next"], 1);
  const json rest = Json("/api/v1/jobs/job-a/records?after=1");
  EXPECT_EQ(rest["records"].size() + 1, all["records"].size());
  EXPECT_EQ(rest["records"][0]["number"], "2");
  const json none = Json("/api/v1/jobs/job-a/records?after=1000");
  EXPECT_EQ(none["next"], 1000);
  EXPECT_EQ(none["complete"], true);
}

TEST_F(HttpApiTest, AnAnswerWithLongTextsEndsAfterAMebibyte) {
  const uint64_t before = Json("/api/v1/jobs/job-a/records")["next"];
  AddLongTexts(6);
  const json first = Json(absl::StrCat("/api/v1/jobs/job-a/records?after=", before));
  ASSERT_EQ(first["records"].size(), 4u);
  EXPECT_EQ(first["records"][3]["written"]["texts"][0]["line"], "3");
  EXPECT_EQ(first["complete"], false);
  EXPECT_EQ(first["next"], before + 4);
  const json rest = Json(absl::StrCat("/api/v1/jobs/job-a/records?after=", before + 4));
  EXPECT_EQ(rest["records"].size(), 2u);
  EXPECT_EQ(rest["complete"], true);
}

TEST_F(HttpApiTest, SaysWhatIsWrongWithARequest) {
  for (const char* path :
       {"/api/v1/jobs/nobody", "/api/v1/jobs/nobody/records", "/api/v1/jobs/nobody/trace",
        "/api/v1/jobs/nobody/plan", "/api/v1/logs?job=nobody", "/api/v1/", "/api/", "/api/v1/jobs/",
        "/api/v1/jobs/job-a/", "/api/v1/jobs/job-a/nothing", "/api/v1/jobs/job-a/trace/more",
        "/api/v1/stages/x", "/api/v2/jobs"}) {
    EXPECT_EQ(Json(path, 404)["error"]["code"], "NOT_FOUND") << path;
  }
  for (const char* path :
       {"/api/v1/jobs?limit=0", "/api/v1/jobs?limit=1001", "/api/v1/jobs?after=x",
        "/api/v1/jobs?after=0", "/api/v1/jobs/job-a/records?after=-1",
        "/api/v1/jobs/job-a/records?after=x", "/api/v1/jobs/job-a/records?limit=0",
        "/api/v1/jobs/job-a/records?limit=10001", "/api/v1/jobs/job-a/trace?steps=51",
        "/api/v1/jobs/job-a/trace?steps=", "/api/v1/jobs/job-a/trace?format=svg",
        "/api/v1/logs?tail=0", "/api/v1/logs?tail=2001", "/api/v1/logs?stage=1",
        "/api/v1/logs?job=job-a&stage=-1"}) {
    EXPECT_EQ(Json(path, 400)["error"]["code"], "INVALID_ARGUMENT") << path;
  }
  EXPECT_THAT(Json("/api/v1/jobs/job-a/trace?steps=51", 400)["error"]["message"].dump(),
              HasSubstr("steps=51: want 1 to 50"));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const HttpResponse response = Fetch("/api/v1/jobs", method);
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_THAT(response.headers, ElementsAre(std::pair("Allow", "GET, HEAD")));
  }
}

TEST_F(HttpApiTest, QuotesWhatIsNotUtf8WithoutHarm) {
  EXPECT_EQ(Json("/api/v1/jobs/\xff\xfe\"<x>", 404)["error"]["code"], "NOT_FOUND");
}

TEST_F(HttpApiTest, CancelsOnlyWithTheHeader) {
  const std::string path = "/api/v1/jobs/job-a/cancel";
  EXPECT_EQ(Fetch(path).status, 405);
  EXPECT_EQ(Fetch(path, "POST").status, 403);
  HttpRequest request = Request(path, "POST");
  request.headers["x-stagecoach-request"] = "anything";
  EXPECT_EQ(api_->Answer(request).status, 403);
  EXPECT_EQ(Json("/api/v1/jobs/job-a")["state"], "JOB_STATE_PENDING");
  request.headers["x-stagecoach-request"] = "cancel";
  const HttpResponse response = api_->Answer(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body)["state"], "JOB_STATE_CANCELLED");
  request.path = "/api/v1/jobs/nobody/cancel";
  EXPECT_EQ(api_->Answer(request).status, 404);
}

TEST_F(HttpApiTest, GivesATraceForPerfettoAsADownload) {
  const HttpResponse response = Fetch("/api/v1/jobs/job-a/trace?format=chrome");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(json::parse(response.body).contains("traceEvents"));
  EXPECT_THAT(
      response.headers,
      ElementsAre(std::pair("Content-Disposition", "attachment; filename=\"job-a-trace.json\"")));
}

TEST_F(HttpApiTest, ReadsTheCoordinatorsLog) {
  LogEntry entry;
  entry.message = "of this job";
  entry.job_id = "job-a";
  ring_.Append(entry);
  entry.message = "of another";
  entry.job_id = "job-b";
  ring_.Append(entry);
  const json lines = Json("/api/v1/logs?job=job-a")["lines"];
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["message"], "of this job");
  EXPECT_EQ(lines[0]["source"], "coordinator");
  EXPECT_EQ(Json("/api/v1/logs")["lines"].size(), 2u);
  EXPECT_EQ(Json("/api/v1/logs?tail=1")["lines"][0]["message"], "of another");
}

// The path of a script in the page.
std::string ScriptOf(const std::string& page) {
  const size_t begin = page.find("/assets/app.");
  return page.substr(begin, page.find('"', begin) - begin);
}

std::string Header(const HttpResponse& response, const std::string& name) {
  for (const auto& [each, value] : response.headers) {
    if (each == name) return value;
  }
  return "";
}

TEST_F(HttpApiTest, ServesThePageAndNothingElse) {
  const std::string script = ScriptOf(HttpApi::AnswerPage(Request("/")).body);
  EXPECT_EQ(HttpApi::AnswerPage(Request(script)).content_type, "text/javascript; charset=utf-8");
  EXPECT_GT(HttpApi::AnswerPage(Request(script)).body.size(), 50000u);
  EXPECT_EQ(HttpApi::AnswerPage(Request("/etc/passwd")).status, 404);
  EXPECT_EQ(HttpApi::AnswerPage(Request("/assets/app.js")).status, 404);
  EXPECT_EQ(HttpApi::AnswerPage(Request(script, "POST")).status, 405);
}

TEST_F(HttpApiTest, ThePageSaysHowTranslationsAreScored) {
  const std::string page = HttpApi::AnswerPage(Request("/")).body;
  EXPECT_THAT(page, HasSubstr("BLEU " + CorpusBleuSignature()));
  EXPECT_THAT(page, HasSubstr("chrF2 " + CorpusChrfSignature()));
}

TEST_F(HttpApiTest, PartsAreKeptForEverAndThePageIsAskedForByItsTag) {
  HttpRequest request = Request("/");
  const HttpResponse page = HttpApi::AnswerPage(request);
  EXPECT_EQ(Header(page, "Cache-Control"), "no-cache");
  request.headers["if-none-match"] = Header(page, "ETag");
  const HttpResponse again = HttpApi::AnswerPage(request);
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  request.headers["if-none-match"] = "\"of another version\"";
  EXPECT_EQ(HttpApi::AnswerPage(request).body, page.body);

  HttpRequest part = Request(ScriptOf(page.body));
  const HttpResponse plain = HttpApi::AnswerPage(part);
  EXPECT_EQ(Header(plain, "Cache-Control"), "private, max-age=31536000, immutable");
  EXPECT_EQ(Header(plain, "Content-Encoding"), "");
  part.headers["accept-encoding"] = "gzip, deflate, br";
  const HttpResponse packed = HttpApi::AnswerPage(part);
  EXPECT_EQ(Header(packed, "Content-Encoding"), "gzip");
  EXPECT_LT(packed.body.size(), plain.body.size() / 2);
}

// A reader that stays for some turns.
class Turns final : public HttpStream {
 public:
  explicit Turns(
      int turns, std::function<void(int)> between = [](int) {})
      : turns_(turns), between_(std::move(between)) {}
  bool Write(const std::string& text) override {
    written.push_back(text);
    return true;
  }
  bool Wait(std::chrono::nanoseconds) override {
    between_(turns_);
    return --turns_ > 0;
  }
  std::vector<std::string> written;

 private:
  int turns_;
  const std::function<void(int)> between_;
};

// A reader that stays until it has what it came for, or kPatience is over. Each turn is a second of
// the clock: what one did not get from a busy job loop comes with a later snapshot.
class ReaderUntil final : public HttpStream {
 public:
  ReaderUntil(ManualClock* clock, std::function<bool(const std::vector<std::string>&)> has_all)
      : clock_(*clock), has_all_(std::move(has_all)) {}
  bool Write(const std::string& text) override {
    written.push_back(text);
    return true;
  }
  bool Wait(std::chrono::nanoseconds) override {
    clock_.AdvanceNanos(1'000'000'000);
    return !has_all_(written) && std::chrono::steady_clock::now() < leaves_at_;
  }
  std::vector<std::string> written;

 private:
  ManualClock& clock_;
  const std::function<bool(const std::vector<std::string>&)> has_all_;
  const std::chrono::steady_clock::time_point leaves_at_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(static_cast<int>(kPatience));
};

std::vector<std::string> NamesOf(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line.compare(0, 7, "event: ") == 0) names.push_back(line.substr(7));
  }
  return names;
}

TEST_F(HttpApiTest, StreamsWhatIsNewAndEndsWithAWord) {
  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpServer::StreamBody body;
  const HttpResponse response = events.Open(Request("/api/v1/stream?job=job-a"), &body);
  ASSERT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/event-stream");
  Turns turns(3, [&](int left) {
    if (left == 2) {
      const auto cancelled = Await<absl::StatusOr<JobView>>(
          kPatience, [&](auto done) { manager_->Cancel("job-a", done); });
      EXPECT_TRUE(cancelled.has_value());
    }
    clock_.AdvanceNanos(1'000'000'000);
  });
  body(turns);
  ASSERT_EQ(turns.written.size(), 4u);
  EXPECT_THAT(NamesOf(turns.written[0]), ElementsAre("jobs", "job", "stages", "records"));
  EXPECT_THAT(NamesOf(turns.written[1]), ElementsAre("stages")) << "nothing else is new";
  EXPECT_THAT(NamesOf(turns.written[2]), ElementsAre("jobs", "job", "stages", "records"));
  EXPECT_THAT(turns.written[2], HasSubstr("JOB_STATE_CANCELLED"));
  EXPECT_THAT(NamesOf(turns.written[3]), ElementsAre("stages", "end"));
}

TEST_F(HttpApiTest, StreamsDoNotRepeatTheLinesThatAJobIsToWrite) {
  JobSpec spec = SmallSpec();
  spec.initialize.from = "/nowhere/weights";
  spec.write = WriteSpec{.lines = {"Once upon a time"}, .generate = GenerateSpec{.tokens = 7}};
  const auto view = Await<absl::StatusOr<JobView>>(
      kPatience, [&](auto done) { manager_->Submit("writing", spec, done); });
  ASSERT_TRUE(view.has_value() && view->ok());
  EXPECT_EQ(Json("/api/v1/jobs/writing")["spec"]["write"]["lines"][0], "Once upon a time");
  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpServer::StreamBody body;
  ASSERT_EQ(events.Open(Request("/api/v1/stream?job=writing"), &body).status, 200);
  Turns turns(1);
  body(turns);
  EXPECT_THAT(NamesOf(turns.written[0]), Contains("job"));
  EXPECT_THAT(turns.written[0], HasSubstr(R"("tokens":"7")"));
  EXPECT_THAT(turns.written[0], Not(HasSubstr("Once upon a time")));
}

// The texts of each record about written ones that the turns brought.
std::vector<json> TextsIn(const std::vector<std::string>& turns) {
  std::vector<json> texts;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(absl::StrJoin(turns, "\n"), '\n'))) {
    if (!line.starts_with("data: {\"records\"")) continue;
    const json event = json::parse(line.substr(6));
    for (const json& record : event["records"]) {
      if (record.contains("written")) texts.push_back(record["written"]["texts"]);
    }
  }
  return texts;
}

// A turn has fewer while the job loop is busy, and the next ones have the rest.
TEST_F(HttpApiTest, StreamsHaveTheRecordsOfTextsWithoutTheTexts) {
  AddLongTexts(9);
  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpServer::StreamBody body;
  ASSERT_EQ(events.Open(Request("/api/v1/stream?job=job-a"), &body).status, 200);
  ReaderUntil reader(
      &clock_, [](const std::vector<std::string>& turns) { return TextsIn(turns).size() >= 9; });
  body(reader);
  EXPECT_THAT(TextsIn(reader.written), ElementsAreArray(std::vector<json>(9, json::array())))
      << "of several pages";
}

TEST_F(HttpApiTest, StreamGoesOnAfterTheRecordThatABrowserHasSeen) {
  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpRequest request = Request("/api/v1/stream?job=job-a&after=0");
  request.headers["last-event-id"] = "1";
  HttpServer::StreamBody body;
  ASSERT_EQ(events.Open(request, &body).status, 200);
  Turns turns(1);
  body(turns);
  EXPECT_THAT(turns.written[0], HasSubstr("\"records\":[{\"number\":\"2\""));
}

TEST_F(HttpApiTest, ReadersShareWhatIsNewAndThoseFarBackGetAllTheSame) {
  RecordTail tail(manager_.get());
  const json all = Json("/api/v1/jobs/job-a/records");
  const uint64_t last = all["next"];
  const auto read = [&](uint64_t after, double version) {
    const RecordTail::Page page = tail.Read("job-a", after, version);
    EXPECT_FALSE(page.more);
    return std::pair(json::parse("[" + page.json + "]"), page.last);
  };
  EXPECT_EQ(read(0, 1).first, all["records"]);
  EXPECT_EQ(read(last, 1), std::pair(json::array(), last));
  const auto cancelled = Await<absl::StatusOr<JobView>>(
      kPatience, [&](auto done) { manager_->Cancel("job-a", done); });
  ASSERT_TRUE(cancelled.has_value());
  EXPECT_EQ(read(last, 1).first.size(), 0u) << "of one version there is one answer";
  const json after = Json("/api/v1/jobs/job-a/records?after=" + std::to_string(last));
  ASSERT_GE(after["records"].size(), 1u);
  for (int reader = 0; reader < 2; ++reader) {
    EXPECT_EQ(read(last, 2).first, after["records"]);
    EXPECT_EQ(read(0, 2).first.size(), all["records"].size() + after["records"].size());
  }
}

// The page stood still without a word, and showed nothing of what stands before the damage.
TEST_F(HttpApiTest, ADamagedRecordIsToldAfterThoseBeforeIt) {
  {
    std::unique_ptr<Database> journal =
        Database::Open(folder_.File("state/journal.sqlite")).value();
    ASSERT_TRUE(journal->Execute("UPDATE records SET kind = 77 WHERE number = 2").ok());
  }
  const json before = Json("/api/v1/jobs/job-a/records");
  EXPECT_EQ(before["records"].size(), 1u);
  EXPECT_EQ(before["complete"], false);
  const json error = Json("/api/v1/jobs/job-a/records?after=1", 400)["error"];
  EXPECT_THAT(error["message"].dump(), HasSubstr("record 2 of job job-a has kind 77"));

  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpServer::StreamBody body;
  ASSERT_EQ(events.Open(Request("/api/v1/stream?job=job-a"), &body).status, 200);
  Turns turns(4, [this](int) { clock_.AdvanceNanos(1'000'000'000); });
  body(turns);
  ASSERT_EQ(turns.written.size(), 5u);
  EXPECT_THAT(NamesOf(turns.written[0]), ElementsAre("jobs", "job", "stages", "records"));
  EXPECT_THAT(NamesOf(turns.written[1]), ElementsAre("stages", "unreadable"));
  EXPECT_THAT(turns.written[1], HasSubstr(error["message"].get<std::string>()));
  EXPECT_THAT(NamesOf(turns.written[2]), ElementsAre("stages")) << "once";
}

TEST_F(HttpApiTest, StreamRefusesWhatItCannotShow) {
  LiveState live(manager_.get(), &clock_);
  EventStream events(manager_.get(), &live);
  HttpServer::StreamBody body;
  EXPECT_EQ(events.Open(Request("/api/v1/stream?job=nobody"), &body).status, 404);
  EXPECT_EQ(events.Open(Request("/api/v1/stream?after=x"), &body).status, 400);
  EXPECT_FALSE(body);
  EXPECT_EQ(EventStream::Busy().status, 503);
  ASSERT_EQ(events.Open(Request("/api/v1/stream"), &body).status, 200);
  Turns turns(1);
  body(turns);
  EXPECT_THAT(NamesOf(turns.written[0]), ElementsAre("jobs", "stages"));
}

}  // namespace
}  // namespace stagecoach
