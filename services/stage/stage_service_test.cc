// Commands that reach a stage before it knows its own name.
#include "services/stage/stage_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/message_checksum.h"
#include "stage/link/grpc/rpc_loop.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Without a runtime: what is tested here never comes so far.
class StageServiceTest : public ::testing::Test {
 protected:
  StageServiceTest() : service_(StageServiceAdapter::Parts{}) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.service());
    loop_ = std::make_unique<RpcLoop>(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    service_.Serve(loop_.get());
    stub_ = v1::StageService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~StageServiceTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    loop_->Stop();
  }

  // Of nothing, which is no job: what is not refused before is refused for that.
  grpc::Status LoadFor(const std::string& stage) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::LoadCellRequest request;
    request.set_stage_name(stage);
    SetChecksum(&request);
    v1::LoadCellResponse response;
    return stub_->LoadCell(&context, request, &response);
  }

  StageServiceAdapter service_;
  std::unique_ptr<RpcLoop> loop_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::StageService::Stub> stub_;
};

// The story: between its first call served and its name such a stage said "this is stage , ... end
// it" of itself.
TEST_F(StageServiceTest, AStageThatIsNotRegisteredYetAsksForAnotherTry) {
  const grpc::Status early = LoadFor("stage-0");
  EXPECT_EQ(early.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(early.error_message(),
              AllOf(HasSubstr("meant for stage stage-0"),
                    HasSubstr("not registered yet; try again"), Not(HasSubstr("--advertise"))));
  service_.set_name("stage-0");
  EXPECT_EQ(LoadFor("stage-0").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(LoadFor("stage-1").error_message(), HasSubstr("this is stage stage-0"));
}

}  // namespace
}  // namespace stagecoach
