// The client beside a coordinator that answers what the test says, over gRPC.
#include "services/cli/client/job_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/testing/temporary_folder.h"
#include "stagecoach/v1/job.grpc.pb.h"
#include "stagecoach/v1/store.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server with this service, and a client of it.
class Joined {
 public:
  explicit Joined(grpc::Service* service) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    ClientOptions options;
    options.address = absl::StrCat("127.0.0.1:", port);
    options.timeout_seconds = 30;
    client_ = ConnectJobClient(options).value();
  }
  ~Joined() { server_->Shutdown(std::chrono::system_clock::now()); }
  JobClient* operator->() { return client_.get(); }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<JobClient> client_;
};

class PagedJobs final : public v1::JobService::Service {
 public:
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    tokens.push_back(request->page_token());
    const size_t page = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    response->add_jobs()->set_id(absl::StrCat("job-", pages - page));
    if (page + 1 < pages) response->set_next_page_token(absl::StrCat(page + 1));
    return grpc::Status::OK;
  }

  size_t pages = 3;
  std::vector<std::string> tokens;  // as they were asked for
};

TEST(JobClientTest, ReadsAListPageByPage) {
  PagedJobs service;
  Joined client(&service);
  const absl::StatusOr<v1::ListJobsResponse> jobs = client->List();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<std::string> ids;
  for (const v1::Job& job : jobs->jobs()) ids.push_back(job.id());
  EXPECT_THAT(ids, ElementsAre("job-3", "job-2", "job-1"));
  EXPECT_THAT(service.tokens, ElementsAre("", "1", "2"));
}

class HostileJobs final : public v1::JobService::Service {
 public:
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    response->add_jobs()->set_message("\x1b[2J");
    response->mutable_jobs(0)->add_stages()->set_name("a\nb");
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    v1::WatchJobResponse record;
    record.mutable_recovery()->set_message("\u202e\x07");
    writer->Write(record);
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "\xff\x1b[2J");
  }
};

class LongWinded final : public v1::JobService::Service {
 public:
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                      v1::GetJobResponse*) override {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, text);
  }

  const std::string text = std::string(20'000, 'a');
};

// The story: an error of more than 8 KiB came as gRPC's own, "received initial metadata size
// exceeds limit".
TEST(JobClientTest, AnErrorOfTwentyKilobytesComesAsItIs) {
  LongWinded service;
  Joined client(&service);
  const absl::Status refused = client->Get("a").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound) << refused.message().substr(0, 200);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(service.text));
}

// A store that never answers.
class SilentStore final : public v1::StoreService::Service {
 public:
  grpc::Status ReadObject(grpc::ServerContext* context, const v1::ReadObjectRequest*,
                          grpc::ServerWriter<v1::ReadObjectResponse>*) override {
    asked.Notify();
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  }
  absl::Notification asked;
};

// Symptom: Ctrl-C did nothing while weights were fetched.
TEST(JobClientTest, AFetchEndsWhenTheUserWantsIt) {
  SilentStore service;
  Joined client(&service);
  const TemporaryFolder folder;
  v1::ExportWeightsResponse exported;
  exported.set_store_folder("exports/job");
  exported.add_files()->set_name("model.safetensors");
  exported.mutable_files(0)->set_bytes(1);
  StopSignal stop;
  std::thread user([&] {
    service.asked.WaitForNotification();
    stop.Request(absl::CancelledError("interrupted"));
  });
  const absl::Status fetched = client->Fetch(
      exported, folder.path(), [](int64_t, int64_t) {}, &stop);
  user.join();
  EXPECT_EQ(fetched.code(), absl::StatusCode::kCancelled) << fetched;
}

// What a coordinator answers is shown by a terminal: a server that was taken over may not write to
// it.
TEST(JobClientTest, AnswersAreTextThatNoTerminalObeys) {
  HostileJobs service;
  Joined client(&service);
  const absl::StatusOr<v1::ListJobsResponse> jobs = client->List();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs(0).message(), "\\x1b[2J");
  EXPECT_EQ(jobs->jobs(0).stages(0).name(), "a\\x0ab");
  StopSignal stop;
  std::string message;
  const absl::Status ended = client->Watch(
      "a", 0, [&](const v1::WatchJobResponse& record) { message = record.recovery().message(); },
      &stop);
  EXPECT_EQ(message, "\\xe2\\x80\\xae\\x07");
  EXPECT_EQ(ended.message(), "\\xff\\x1b[2J");
}

}  // namespace
}  // namespace stagecoach
