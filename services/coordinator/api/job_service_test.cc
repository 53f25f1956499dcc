// Traces and logs as clients meet them: over gRPC.
#include "services/coordinator/api/job_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "checkpoint/names.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/coordinator/api/read_logs_reactor.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "services/coordinator/api/watch_reactor.h"

namespace stagecoach {
namespace {

class JobServiceTest : public WaitingJobTest {
 protected:
  JobServiceTest() : service_(ServiceParts()) {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.JobService", &service_}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    const auto channel = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                            grpc::InsecureChannelCredentials());
    // On a busy machine its first attempt may be too slow, and a call that came with it would fail.
    EXPECT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    stub_ = v1::JobService::NewStub(channel);
  }
  ~JobServiceTest() override {
    manager_->Shutdown();
    server_->Shutdown(0);
  }

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ReadLogsResponse>> reader;
    std::string Next() {  // text of the next line; empty at the end
      v1::ReadLogsResponse response;
      if (!reader->Read(&response) || response.lines_size() == 0) return "";
      return response.lines(0).message();
    }
  };
  std::unique_ptr<Call> ReadLogs(const std::string& job, bool follow, int stage = -1) {
    auto call = std::make_unique<Call>();
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::ReadLogsRequest request;
    request.set_job_id(job);
    request.set_follow(follow);
    if (stage >= 0) request.set_stage(stage);
    call->reader = stub_->ReadLogs(&call->context, request);
    return call;
  }
  // Of job-a.
  grpc::Status Export(v1::ExportWeightsResponse* response) {
    v1::ExportWeightsRequest request;
    request.set_job_id("job-a");
    grpc::ClientContext context;
    return stub_->ExportWeights(&context, request, response);
  }
  struct WatchCall {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchJobResponse>> reader;
  };
  static constexpr int kStreamsOfAConnection = 100;
  std::unique_ptr<v1::JobService::Stub> AnotherConnection() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::JobService::NewStub(
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                  grpc::InsecureChannelCredentials(), arguments));
  }
  std::unique_ptr<WatchCall> Watch(const std::string& job, uint64_t after,
                                   v1::JobService::Stub* stub = nullptr) {
    auto call = std::make_unique<WatchCall>();
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::WatchJobRequest request;
    request.set_id(job);
    request.set_after(after);
    call->reader = (stub != nullptr ? stub : stub_.get())->WatchJob(&call->context, request);
    return call;
  }
  // Asks the loop for something else until it has so many watches, or for a while.
  int64_t WatchesOnce(int64_t wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (manager_->watches() != wanted && std::chrono::steady_clock::now() < end) {
      Await<absl::StatusOr<JobView>>(kPatience,
                                     [this](auto done) { manager_->Get("job-a", done); });
    }
    return manager_->watches();
  }
  void Log(const std::string& text) {
    LogEntry entry;
    entry.message = text;
    ring_.Append(std::move(entry));
  }

  JobServiceAdapter service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

// Of a newer client: without the field it would be another job.
TEST_F(JobServiceTest, RefusesAJobWithAFieldThatItDoesNotKnow) {
  v1::SubmitJobRequest request;
  v1::GptModel* const gpt = request.mutable_spec()->mutable_model()->mutable_gpt();
  gpt->GetReflection()->MutableUnknownFields(gpt)->AddVarint(111, 1);
  grpc::ClientContext context;
  v1::SubmitJobResponse response;
  const grpc::Status submitted = stub_->SubmitJob(&context, request, &response);
  EXPECT_EQ(submitted.error_message(),
            "request.spec.model.gpt: has field 111, which this version does not know; upgrade the "
            "coordinator to the client's version");
  v1::PlanJobRequest plan;
  *plan.mutable_spec() = request.spec();
  grpc::ClientContext second;
  v1::PlanJobResponse planned;
  EXPECT_EQ(stub_->PlanJob(&second, plan, &planned).error_message(), submitted.error_message());
}

// The job stands still: no record finds out that they are gone. Some had read records, the others
// wait for one that never comes.
TEST_F(JobServiceTest, AWatchThatIsCancelledIsFreedAtOnce) {
  ASSERT_EQ(WatchesOnce(0), 0) << "the fixture's own may be on its way out still";
  constexpr int kBatch = 50;
  std::unique_ptr<v1::JobService::Stub> connection;
  for (int batch = 0; batch < 40; ++batch) {
    // The server ends a connection that resets over 1,000 streams at once (FrameWatch).
    if (batch % 10 == 0) connection = AnotherConnection();
    std::vector<std::unique_ptr<WatchCall>> calls;
    for (int i = 0; i < kBatch; ++i) {
      calls.push_back(Watch("job-a", i % 2 == 0 ? 0 : 1 << 20, connection.get()));
    }
    v1::WatchJobResponse record;
    for (int i = 0; i < kBatch; i += 2) EXPECT_TRUE(calls[i]->reader->Read(&record));
    ASSERT_EQ(WatchesOnce(kBatch), kBatch);
    for (const auto& call : calls) call->context.TryCancel();
    for (const auto& call : calls) call->reader->Finish();
    ASSERT_EQ(WatchesOnce(0), 0) << "after batch " << batch;
  }
}

// Up to 256 records waited for it, which may be 64 MiB.
TEST_F(JobServiceTest, OfLongTextsAMebibyteWaitsForAWatcherThatReadsNothing) {
  constexpr int kTexts = 80;  // 20 MiB: more than gRPC itself keeps
  AddLongTexts(kTexts);
  ASSERT_EQ(WatchesOnce(0), 0);
  const std::unique_ptr<WatchCall> call = Watch("job-a", 0);
  v1::WatchJobResponse record;
  ASSERT_TRUE(call->reader->Read(&record));
  EXPECT_EQ(WatchesOnce(0), 0) << "it is taken again when those are sent";
  uint64_t number = record.number();
  for (int texts = 0; texts < kTexts; texts += record.has_written() ? 1 : 0) {
    ASSERT_TRUE(call->reader->Read(&record));
    ASSERT_EQ(record.number(), ++number);
  }
  EXPECT_EQ(WatchesOnce(1), 1) << "for the records to come";
  call->context.TryCancel();
}

// A client that goes on behind its last number loses nothing and reads nothing twice.
TEST_F(JobServiceTest, AWatcherIsShownWhatALoadIsAtUnderTheNumberBefore) {
  JobSpec spec = SmallSpec();  // job-a waits for a profile that never comes
  spec.pipeline.partition.kind = PartitionSpec::Kind::kUniform;
  const auto submitted = Await<absl::StatusOr<JobView>>(
      kPatience, [&](auto done) { manager_->Submit("job-b", spec, done); });
  ASSERT_TRUE(submitted.has_value() && submitted->ok());
  const std::unique_ptr<WatchCall> call = Watch("job-b", 0);
  for (const char* const name : {"a", "b", "c", "d"}) {
    const auto granted = Await<absl::StatusOr<LeaseGrant>>(kPatience, [&](auto done) {
      manager_->RegisterStage({.name = name, .incarnation = "1", .address = "x:1"}, done);
    });
    ASSERT_TRUE(granted.has_value() && granted->ok());
  }
  v1::WatchJobResponse record;
  while (record.state().detail() != "loading") ASSERT_TRUE(call->reader->Read(&record));
  const uint64_t number = record.number();
  // A text that comes while something waits for the client is left out, and comes again.
  std::atomic<bool> read = false, ended = false;
  std::thread reader([&] {
    read = call->reader->Read(&record);
    ended = true;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!ended && std::chrono::steady_clock::now() < end) {
    Await<absl::StatusOr<LeaseGrant>>(kPatience, [&](auto done) {
      manager_->RenewLease({.name = "c",
                            .incarnation = "1",
                            .state = kLoadingState,
                            .fence = {.job = "job-b"},
                            .waiting_for = "encodes de.txt: 41 %"},
                           done);
    });
  }
  if (!ended) call->context.TryCancel();
  reader.join();
  ASSERT_TRUE(read);
  const auto view = Await<absl::StatusOr<JobView>>(
      kPatience, [this](auto done) { manager_->Get("job-b", done); });
  ASSERT_TRUE(view.has_value() && view->ok());
  EXPECT_EQ((*view)->message, "stage 0 (c): encodes de.txt: 41 %");
  EXPECT_EQ(record.state().message(), (*view)->message);
  EXPECT_EQ(record.state().detail(), "loading");
  EXPECT_EQ(record.number(), number);
  call->context.TryCancel();
}

TEST_F(JobServiceTest, RefusesMoreWatchesThanThereMayBe) {
  std::vector<std::unique_ptr<WatchCall>> calls;
  std::unique_ptr<v1::JobService::Stub> connection;
  for (int i = 0; i <= WatchReactor::kMostWatchers; ++i) {
    if (i % kStreamsOfAConnection == 0) connection = AnotherConnection();
    calls.push_back(Watch("job-a", 0, connection.get()));
    v1::WatchJobResponse record;
    EXPECT_EQ(calls.back()->reader->Read(&record), i < WatchReactor::kMostWatchers) << i;
  }
  const grpc::Status refused = calls.back()->reader->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(), "1000 watches of jobs are open already; try again later");
  for (const auto& call : calls) call->context.TryCancel();
}

TEST_F(JobServiceTest, ListsJobsInPagesWithoutTheirSpecs) {
  for (int i = 1; i <= 104; ++i) {
    const auto view = Await<absl::StatusOr<JobView>>(kPatience, [&](auto done) {
      manager_->Submit(absl::StrCat("job-", i), SmallSpec(), done);
    });
    ASSERT_TRUE(view.has_value() && view->ok());
  }
  const auto list = [this](int size, const std::string& token, v1::ListJobsResponse* page) {
    v1::ListJobsRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    grpc::ClientContext context;
    return stub_->ListJobs(&context, request, page);
  };
  v1::ListJobsResponse newest, rest, all;
  ASSERT_TRUE(list(0, "", &newest).ok());
  ASSERT_EQ(newest.jobs_size(), 100);
  EXPECT_EQ(newest.jobs(0).id(), "job-104");
  EXPECT_FALSE(newest.jobs(0).has_spec());
  EXPECT_EQ(newest.jobs(0).summary().name(), "small");
  EXPECT_EQ(newest.jobs(0).total_steps(), 10);
  ASSERT_TRUE(list(0, newest.next_page_token(), &rest).ok());
  ASSERT_EQ(rest.jobs_size(), 5);
  EXPECT_EQ(rest.jobs(4).id(), "job-a");
  EXPECT_EQ(rest.next_page_token(), "");
  ASSERT_TRUE(list(1000, "", &all).ok());
  EXPECT_EQ(all.jobs_size(), 105);
  EXPECT_EQ(list(1001, "", &all).error_message(), "page_size=1001: want 1 to 1000, or 0 for 100");
  EXPECT_EQ(list(-1, "", &all).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(list(0, "next", &all).error_message(),
            "page_token=\"next\": want next_page_token of the page before, or nothing for the "
            "newest jobs");
}

// Nobody has a name here, so everybody is an operator.
TEST_F(JobServiceTest, AnExportThatFailsTellsAnOperatorThePath) {
  CommitEmptyCheckpoint("job-a", 3);
  folder_.Write("exports", "a file in the place of the folder");
  v1::ExportWeightsResponse response;
  const grpc::Status failed = Export(&response);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(failed.error_message(), ::testing::HasSubstr(folder_.File("exports")));
}

// Symptom: `export` took an older checkpoint than the newest, and only the folder's name told.
TEST_F(JobServiceTest, AnExportTellsOfDamagedCheckpointsThatItPassedOver) {
  CommitEmptyCheckpoint("job-a", 3);
  folder_.Write("checkpoints/job-a/step-000000000006/MANIFEST.json", "{");
  v1::ExportWeightsResponse response;
  const grpc::Status status = Export(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.step(), 3u);
  EXPECT_THAT(response.damaged(), ::testing::ElementsAre("step-000000000006"));
}

// Its spec is in the journal only.
TEST_F(JobServiceTest, AnEndedJobIsShownWithItsSpec) {
  const auto cancelled = Await<absl::StatusOr<JobView>>(
      kPatience, [&](auto done) { manager_->Cancel("job-a", done); });
  ASSERT_TRUE(cancelled.has_value() && cancelled->ok());
  v1::GetJobRequest request;
  request.set_id("job-a");
  for (int i = 0; i < 2; ++i) {  // also once it is in memory as a view only
    v1::GetJobResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->GetJob(&context, request, &response).ok());
    EXPECT_EQ(response.job().state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(response.job().spec().model().gpt().layers(), 2);
    EXPECT_EQ(response.job().spec().training().steps(), 10);
  }
  v1::SubmitJobRequest again;
  again.set_id("job-a");
  *again.mutable_spec() = ToProto(SmallSpec());
  v1::SubmitJobResponse repeated;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->SubmitJob(&context, again, &repeated).ok()) << "to repeat one is harmless";
  EXPECT_EQ(repeated.job().spec().training().steps(), 10);
}

TEST_F(JobServiceTest, ReadsTheLinesThereAre) {
  Log("one");
  const auto call = ReadLogs("job-a", false);
  EXPECT_EQ(call->Next(), "one");
  EXPECT_EQ(call->Next(), "");
  EXPECT_TRUE(call->reader->Finish().ok());
}

TEST_F(JobServiceTest, FollowsUntilTheJobEnds) {
  Log("one");
  const auto call = ReadLogs("job-a", true);
  EXPECT_EQ(call->Next(), "one");
  Log("two");
  EXPECT_EQ(call->Next(), "two");
  Log("three");
  const auto cancelled = Await<absl::StatusOr<JobView>>(
      kPatience, [&](auto done) { manager_->Cancel("job-a", done); });
  EXPECT_TRUE(cancelled.has_value());
  EXPECT_EQ(call->Next(), "three");
  EXPECT_EQ(call->Next(), "");
  EXPECT_TRUE(call->reader->Finish().ok());
}

TEST_F(JobServiceTest, SplitsWhatIsTooMuchForOneMessage) {
  std::vector<v1::LogLine>& lines = observer_.stages["a:1"].lines;
  for (int i = 1; i <= 1200; ++i) {
    lines.emplace_back().set_number(i);
    lines.back().set_message(std::string(2000, 'x'));
  }
  StageRegistration stage;
  stage.name = "stage-a";
  stage.incarnation = "1";
  stage.address = "a:1";
  const auto grant = Await<absl::StatusOr<LeaseGrant>>(
      kPatience, [&](auto done) { manager_->RegisterStage(stage, done); });
  ASSERT_TRUE(grant.has_value() && grant->ok());
  const auto call = ReadLogs("", false);
  v1::ReadLogsResponse response;
  int total = 0;
  while (call->reader->Read(&response)) {
    EXPECT_LE(response.lines_size(), ReadLogsReactor::kLinesPerMessage);
    total += response.lines_size();
  }
  EXPECT_TRUE(call->reader->Finish().ok());
  EXPECT_EQ(total, 1200);
}

TEST_F(JobServiceTest, EndsWithTheClientAndWithTheServer) {
  auto leaves = ReadLogs("job-a", true), stays = ReadLogs("job-a", true);
  Log("one");
  EXPECT_EQ(leaves->Next(), "one");
  leaves->context.TryCancel();
  EXPECT_EQ(leaves->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(stays->Next(), "one");
  manager_->Shutdown();
  EXPECT_EQ(stays->Next(), "");
  EXPECT_EQ(stays->reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Exporting step 5 of job "job-a" replaced the final weights of a job named "job-a-step-5".
TEST_F(JobServiceTest, AnExportByHandLeavesTheWeightsOfEveryOtherJobAlone) {
  CommitEmptyCheckpoint("job-a", 5);
  const std::string finished =
      folder_.Write("exports/job-a-step-5/model.safetensors", "weights of another job");
  v1::ExportWeightsResponse response;
  const grpc::Status status = Export(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.folder(), folder_.File("exports/job-a.step-5"));
  EXPECT_TRUE(std::filesystem::exists(response.folder() + "/model.safetensors"));
  EXPECT_EQ(FileText(finished), "weights of another job");
  // Nobody can be called so.
  EXPECT_FALSE(CheckJobName(NameOf(response.folder())).ok());
}

TEST_F(JobServiceTest, TheFilesOfAHistoryCanBeReadWithTheGrant) {
  v1::GetRecordFilesRequest request;
  const auto ask = [&](const std::string& job, v1::GetRecordFilesResponse* response) {
    request.set_job_id(job);
    grpc::ClientContext context;
    return stub_->GetRecordFiles(&context, request, response);
  };
  v1::GetRecordFilesResponse none;
  ASSERT_TRUE(ask("job-a", &none).ok());
  EXPECT_TRUE(none.files().empty());
  folder_.Write("state/jobs/job-a/metrics.jsonl", "{}\n{");
  folder_.Write("state/jobs/job-a/events.out.tfevents.1.host", "12345");
  folder_.Write("state/jobs/job-b/metrics.jsonl", "another job's\n");
  v1::GetRecordFilesResponse found;
  ASSERT_TRUE(ask("job-a", &found).ok());
  ASSERT_EQ(found.files_size(), 2);
  EXPECT_EQ(found.files(0).name(), "events.out.tfevents.1.host");
  EXPECT_EQ(found.files(0).bytes(), 5);
  EXPECT_EQ(found.files(1).name(), "metrics.jsonl");
  EXPECT_EQ(found.files(1).bytes(), 3) << "whole lines";
  EXPECT_EQ(found.store_folder(), "records/job-a");
  EXPECT_TRUE(grants_.Check(found.grant(), "records/job-a", ObjectGrants::Use::kRead).ok());
  EXPECT_FALSE(grants_.Check(found.grant(), "records/job-a", ObjectGrants::Use::kWrite).ok());
  EXPECT_FALSE(grants_.Check(found.grant(), "records/job-b", ObjectGrants::Use::kRead).ok());
  EXPECT_EQ(ask("nobody", &found).error_code(), grpc::StatusCode::NOT_FOUND);
}

// Symptom: `describe` named a checkpoint that was removed.
TEST_F(JobServiceTest, TheNewestCheckpointOfAnEndedJobIsOneThatIsThere) {
  CommitEmptyCheckpoint("job-a", 3);
  CommitEmptyCheckpoint("job-a", 6);
  ASSERT_TRUE(Await<absl::StatusOr<JobView>>(kPatience, [this](auto done) {
                manager_->Cancel("job-a", done);
              })->ok());
  const auto newest = [this] {
    v1::GetJobRequest request;
    request.set_id("job-a");
    request.set_with_usage(true);
    grpc::ClientContext context;
    v1::GetJobResponse response;
    EXPECT_TRUE(stub_->GetJob(&context, request, &response).ok());
    return response.job().has_last_checkpoint_step() ? response.job().last_checkpoint_step() : -1;
  };
  for (const int64_t step : {6, 3}) {
    EXPECT_EQ(newest(), step);
    v1::RemoveCheckpointsRequest request;
    request.set_job_id("job-a");
    request.add_steps(static_cast<uint64_t>(step));
    grpc::ClientContext context;
    v1::RemoveCheckpointsResponse removed;
    ASSERT_TRUE(stub_->RemoveCheckpoints(&context, request, &removed).ok());
  }
  EXPECT_EQ(newest(), -1);
}

TEST_F(JobServiceTest, SaysWhatIsWrong) {
  EXPECT_EQ(ReadLogs("nobody", true)->reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReadLogs("", true, 1)->reader->Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext context;
  v1::GetTraceRequest request;
  request.set_job_id("nobody");
  v1::GetTraceResponse response;
  EXPECT_EQ(stub_->GetTrace(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(JobServiceTest, RefusesOneLogReaderTooMany) {
  std::vector<std::unique_ptr<Call>> calls;
  // gRPC takes a hundred streams a connection, so the limit is ours.
  for (int i = 0; i < ReadLogsReactor::kMostReaders; ++i) calls.push_back(ReadLogs("job-a", true));
  Log("one");
  for (const auto& call : calls) EXPECT_EQ(call->Next(), "one");
  EXPECT_EQ(ReadLogs("job-a", true)->reader->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  for (const auto& call : calls) call->context.TryCancel();
}

// Symptom: `describe` showed a job whose bucket did not answer as one without a checkpoint.
TEST_F(JobServiceTest, CheckpointsThatCannotBeListedAreNotNone) {
  ASSERT_TRUE(Await<absl::StatusOr<JobView>>(kPatience, [this](auto done) {
                manager_->Cancel("job-a", done);
              })->ok());
  folder_.Write("checkpoints/job-a", "a file in the place of the folder");
  v1::GetJobRequest request;
  request.set_id("job-a");
  request.set_with_usage(true);
  grpc::ClientContext context;
  v1::GetJobResponse response;
  ASSERT_TRUE(stub_->GetJob(&context, request, &response).ok());
  EXPECT_THAT(response.job().usage().checkpoints_error(), ::testing::HasSubstr("job-a"));
  EXPECT_FALSE(response.job().has_last_checkpoint_step());
}

TEST_F(JobServiceTest, AJobTellsWhatItOccupiesAndIsRid) {
  CommitEmptyCheckpoint("job-a", 3);
  CommitEmptyCheckpoint("job-a", 6);
  const std::string records = folder_.MakeFolder("state/jobs/job-a");
  folder_.Write("state/jobs/job-a/metrics.jsonl", "12345");
  const auto usage = [this](bool wanted) {
    v1::GetJobRequest request;
    request.set_id("job-a");
    request.set_with_usage(wanted);
    grpc::ClientContext context;
    v1::GetJobResponse response;
    EXPECT_TRUE(stub_->GetJob(&context, request, &response).ok());
    EXPECT_EQ(response.job().id(), "job-a");
    EXPECT_EQ(response.job().has_usage(), wanted);
    return response.job().usage();
  };
  const v1::JobUsage both = usage(true);
  EXPECT_EQ(both.checkpoints(), 2);
  EXPECT_EQ(both.record_bytes(), 5);
  EXPECT_EQ(both.export_bytes(), 0);
  usage(false);

  const auto remove = [this](std::vector<uint64_t> steps, v1::RemoveCheckpointsResponse* response) {
    v1::RemoveCheckpointsRequest request;
    request.set_job_id("job-a");
    request.mutable_steps()->Assign(steps.begin(), steps.end());
    grpc::ClientContext context;
    return stub_->RemoveCheckpoints(&context, request, response);
  };
  v1::RemoveCheckpointsResponse removed;
  EXPECT_EQ(remove({}, &removed).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(remove({6}, &removed).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const grpc::Status unknown = remove({4}, &removed);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), ::testing::HasSubstr("it has those of 3, 6"));
  ASSERT_TRUE(remove({3}, &removed).ok());
  EXPECT_THAT(removed.removed(), ::testing::ElementsAre(3));
  EXPECT_EQ(usage(true).checkpoint_bytes(), both.checkpoint_bytes() - removed.freed_bytes());

  ASSERT_TRUE(Await<absl::StatusOr<JobView>>(kPatience, [this](auto done) {
                manager_->Cancel("job-a", done);
              })->ok());
  v1::RemoveJobRequest request;
  request.set_id("job-a");
  grpc::ClientContext context;
  v1::RemoveJobResponse response;
  const grpc::Status gone = stub_->RemoveJob(&context, request, &response);
  ASSERT_TRUE(gone.ok()) << gone.error_message();
  EXPECT_EQ(response.id(), "job-a");
  EXPECT_EQ(response.freed().checkpoints(), 1);
  EXPECT_EQ(response.freed().record_bytes(), 5);
  EXPECT_FALSE(std::filesystem::exists(records));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("checkpoints/job-a")));
}

}  // namespace
}  // namespace stagecoach
