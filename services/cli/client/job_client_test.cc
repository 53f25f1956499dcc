// The client beside a coordinator that answers what the test says, over gRPC.
#include "services/cli/client/job_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;

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
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ClientOptions options;
  options.address = absl::StrCat("127.0.0.1:", port);
  const auto client = ConnectJobClient(options);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<v1::ListJobsResponse> jobs = (*client)->List();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<std::string> ids;
  for (const v1::Job& job : jobs->jobs()) ids.push_back(job.id());
  EXPECT_THAT(ids, ElementsAre("job-3", "job-2", "job-1"));
  EXPECT_THAT(service.tokens, ElementsAre("", "1", "2"));
  server->Shutdown();
}

}  // namespace
}  // namespace stagecoach
