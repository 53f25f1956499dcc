// Whose jobs a certificate opens, as users meet it: the real service behind mutual TLS.
#include "services/coordinator/api/callers_jobs.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <set>

#include "base/errors/check.h"
#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "base/testing/status_is.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/tls/certificates_testing.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "stagecoach/v1/fleet.pb.h"

namespace stagecoach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const google::protobuf::MethodDescriptor& Method(const std::string& name) {
  v1::RegisterStageRequest::descriptor();  // or its file would not be in the pool
  const auto* method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  CHECK(method != nullptr) << name;
  return *method;
}

// "job-a" is there, submitted by nobody that is known. Ann has a token as well; cid and dora have
// nothing else.
class CallersJobsTest : public WaitingJobTest {
 protected:
  CallersJobsTest()
      : tokens_(WriteTokens({{"ann", ""}, {"cid", ""}, {"dora", " operator"}})),
        callers_(Callers::Open(tokens_).value()),
        service_(PartsWithCallers()) {
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls = authority_.IssueRole("coordinator", "coordinator");
    options.callers = callers_.get();
    server_ = std::make_unique<GrpcServer>(
        options, std::vector<GrpcServer::NamedService>{{"stagecoach.v1.JobService", &service_}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    ann_ = Connect("user", "ann");
    bob_ = Connect("user", "bob");
    operator_ = Connect("operator", "ann");  // not the user of that name
  }
  ~CallersJobsTest() override {
    manager_->Shutdown();
    server_->Shutdown(0);
  }

  // The token of each is the name with "-token" behind it.
  std::string WriteTokens(const std::vector<std::pair<std::string, std::string>>& people) {
    std::string text;
    for (const auto& [name, mark] : people) {
      absl::StrAppend(&text, name, " ", Sha256Hex(name + "-token"), mark, "\n");
    }
    const std::string path = folder_.Write("tokens", text);
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
    return path;
  }
  JobServiceAdapter::Parts PartsWithCallers() {
    JobServiceAdapter::Parts parts = ServiceParts();
    parts.callers = callers_.get();
    return parts;
  }

  TlsFlags WithToken(const std::string& token) {
    TlsFlags tls = authority_.IssueRole("user", "nobody");
    tls.server_cert = tls.server_key = "";
    tls.token_file = folder_.Write("token-" + token, token + "\n");
    return tls;
  }
  std::shared_ptr<grpc::Channel> ConnectBy(const TlsFlags& tls) {
    return MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                              MakeChannelCredentials(tls).value());
  }
  std::shared_ptr<grpc::Channel> Connect(const std::string& role, const std::string& name) {
    return ConnectBy(authority_.IssueRole(role, name));
  }

  static void Prepare(grpc::ClientContext* context) {
    context->set_wait_for_ready(true);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }

  absl::StatusOr<v1::Job> Submit(const std::shared_ptr<grpc::Channel>& as, const std::string& id,
                                 const JobSpec& spec = SmallSpec()) {
    v1::SubmitJobRequest request;
    request.set_id(id);
    *request.mutable_spec() = ToProto(spec);
    grpc::ClientContext context;
    Prepare(&context);
    v1::SubmitJobResponse response;
    const grpc::Status status =
        v1::JobService::NewStub(as)->SubmitJob(&context, request, &response);
    if (!status.ok()) return FromGrpc(status);
    return response.job();
  }

  std::vector<std::string> List(const std::shared_ptr<grpc::Channel>& as, int page_size = 0) {
    std::vector<std::string> ids;
    v1::ListJobsRequest request;
    request.set_page_size(page_size);
    do {
      grpc::ClientContext context;
      Prepare(&context);
      v1::ListJobsResponse response;
      const grpc::Status status =
          v1::JobService::NewStub(as)->ListJobs(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      for (const v1::Job& job : response.jobs()) ids.push_back(job.id());
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return ids;
  }

  // Any method whose request names a job in its first field, as a message of bytes; streams to
  // their first message.
  grpc::Status Ask(const std::shared_ptr<grpc::Channel>& as,
                   const google::protobuf::MethodDescriptor& method, const std::string& job,
                   bool waits = true) {
    grpc::ClientContext context;
    Prepare(&context);
    context.set_wait_for_ready(waits);
    const std::string bytes =
        absl::StrCat("\x0a", std::string(1, static_cast<char>(job.size())), job);
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(as);
    const auto call = stub.PrepareCall(
        &context, absl::StrCat("/", method.service()->full_name(), "/", method.name()), &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    call->WriteLast(request, {}, nullptr);
    queue.Next(&tag, &ok);
    grpc::ByteBuffer response;
    call->Read(&response, nullptr);
    queue.Next(&tag, &ok);
    if (ok && method.server_streaming()) {
      context.TryCancel();
      return grpc::Status::OK;
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return status;
  }

  TestAuthority authority_;
  const std::string tokens_;
  const std::unique_ptr<Callers> callers_;
  JobServiceAdapter service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> ann_, bob_, operator_;
};

TEST_F(CallersJobsTest, EveryMethodThatNamesAJobIsForItsOwnerAndForOperators) {
  ASSERT_TRUE(Submit(ann_, "job-of-ann").ok());
  std::set<std::string> asked;
  const auto& service = *Method("stagecoach.v1.JobService.GetJob").service();
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    const google::protobuf::FieldDescriptor& first = *method.input_type()->FindFieldByNumber(1);
    if (method.name() == "SubmitJob" || (first.name() != "id" && first.name() != "job_id"))
      continue;
    if (method.name() == "CancelJob") continue;  // last, below
    asked.insert(method.name());
    for (const char* job : {"job-of-ann", "job-a"}) {
      const grpc::Status refused = Ask(bob_, method, job);
      EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED)
          << method.name() << ": " << refused.error_message();
      EXPECT_THAT(refused.error_message(),
                  HasSubstr(absl::StrCat("job ", job, " is not of user/bob")));
      EXPECT_THAT(refused.error_message(), ::testing::Not(HasSubstr("user/ann")));
    }
    for (const auto& as : {ann_, operator_}) {
      // Some have nothing to tell of a job that waits.
      EXPECT_THAT(Ask(as, method, "job-of-ann").error_code(),
                  ::testing::AnyOf(grpc::StatusCode::OK, grpc::StatusCode::NOT_FOUND,
                                   grpc::StatusCode::FAILED_PRECONDITION,
                                   grpc::StatusCode::INVALID_ARGUMENT))
          << method.name();
    }
    EXPECT_EQ(Ask(bob_, method, "no-job").error_code(), grpc::StatusCode::NOT_FOUND)
        << method.name();
  }
  EXPECT_EQ(asked.size(), 11u) << "methods: " << ::testing::PrintToString(asked);
  const auto& cancel = Method("stagecoach.v1.JobService.CancelJob");
  EXPECT_EQ(Ask(bob_, cancel, "job-of-ann").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Ask(ann_, cancel, "job-of-ann").ok());
  EXPECT_TRUE(Ask(operator_, cancel, "job-a").ok());
}

TEST_F(CallersJobsTest, AnEndedJobIsRemovedByItsOwnerAndByOperatorsOnly) {
  const auto& cancel = Method("stagecoach.v1.JobService.CancelJob");
  const auto& remove = Method("stagecoach.v1.JobService.RemoveJob");
  for (const auto& as : {ann_, operator_}) {
    ASSERT_TRUE(Submit(ann_, "job-of-ann").ok());
    const grpc::Status live = Ask(ann_, remove, "job-of-ann");
    EXPECT_EQ(live.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(live.error_message(), HasSubstr("`stagecoach cancel job-of-ann` ends it"));
    ASSERT_TRUE(Ask(ann_, cancel, "job-of-ann").ok());
    EXPECT_EQ(Ask(bob_, remove, "job-of-ann").error_code(), grpc::StatusCode::PERMISSION_DENIED);
    const grpc::Status removed = Ask(as, remove, "job-of-ann");
    EXPECT_TRUE(removed.ok()) << removed.error_message();
    EXPECT_EQ(Ask(as, remove, "job-of-ann").error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_THAT(List(operator_), ElementsAre("job-a"));
  }
}

// Symptom: an export that failed told the client where the coordinator keeps its files.
TEST_F(CallersJobsTest, AnExportThatFailsNamesNoPathToAUser) {
  ASSERT_TRUE(Submit(ann_, "ann-1").ok());
  CommitEmptyCheckpoint("ann-1", 3);
  folder_.Write("exports", "a file in the place of the folder");
  const grpc::Status failed = Ask(ann_, Method("stagecoach.v1.JobService.ExportWeights"), "ann-1");
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(failed.error_message(), Not(HasSubstr(folder_.path())));
  EXPECT_THAT(failed.error_message(), HasSubstr("log has the paths under e-"));
}

TEST_F(CallersJobsTest, AListHasTheCallersJobsPageByPage) {
  for (const char* id : {"ann-1", "ann-2", "ann-3"}) ASSERT_TRUE(Submit(ann_, id).ok());
  const absl::StatusOr<v1::Job> of_bob = Submit(bob_, "bob-1");
  ASSERT_TRUE(of_bob.ok()) << of_bob.status();
  EXPECT_EQ(of_bob->owner(), "user/bob");
  ASSERT_TRUE(Submit(ann_, "ann-4").ok());
  EXPECT_THAT(List(ann_, 1), ElementsAre("ann-4", "ann-3", "ann-2", "ann-1"));
  EXPECT_THAT(List(bob_), ElementsAre("bob-1"));
  EXPECT_THAT(List(operator_, 2),
              ElementsAre("ann-4", "bob-1", "ann-3", "ann-2", "ann-1", "job-a"));
}

TEST_F(CallersJobsTest, AUserNeitherTakesAnothersIdNorItsCheckpoints) {
  ASSERT_TRUE(Submit(ann_, "job-of-ann").ok());
  const absl::StatusOr<v1::Job> again = Submit(ann_, "job-of-ann");
  EXPECT_TRUE(again.ok()) << again.status();
  const absl::StatusOr<v1::Job> same = Submit(bob_, "job-of-ann");  // the same spec, too
  EXPECT_THAT(same.status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("choose another id")));

  JobSpec resumes = SmallSpec();
  resumes.resume.job = "job-of-ann";
  const absl::StatusOr<v1::Job> from_ann = Submit(bob_, "job-of-bob", resumes);
  EXPECT_THAT(from_ann.status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("resume.job: job job-of-ann is not of user/bob")));
  // Past that check: there are no checkpoints.
  EXPECT_EQ(Submit(ann_, "next-of-ann", resumes).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Submit(operator_, "next", resumes).status().code(), absl::StatusCode::kNotFound);
  // Checkpoints of a job that the coordinator has forgotten: whose it was is not known any more.
  resumes.resume.job = "forgotten";
  EXPECT_THAT(Submit(bob_, "job-of-bob", resumes).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not known")));
}

// Lines of no job stood in everybody's: refused calls, others' jobs, and what errors to users leave
// out.
TEST_F(CallersJobsTest, AUserReadsNoLinesOfNoJob) {
  ASSERT_TRUE(Submit(ann_, "job-of-ann").ok());
  LogEntry entry;
  entry.message = "e-00000000: /secret/path";
  ring_.Append(entry);
  entry.message = "of her job";
  entry.job_id = "job-of-ann";
  ring_.Append(entry);
  const auto read = [](const std::shared_ptr<grpc::Channel>& as) {
    grpc::ClientContext context;
    Prepare(&context);
    v1::ReadLogsRequest request;
    request.set_job_id("job-of-ann");
    const auto reader = v1::JobService::NewStub(as)->ReadLogs(&context, request);
    std::vector<std::string> lines;
    v1::ReadLogsResponse response;
    while (reader->Read(&response)) {
      for (const v1::LogLine& line : response.lines()) lines.push_back(line.message());
    }
    EXPECT_TRUE(reader->Finish().ok());
    return lines;
  };
  EXPECT_THAT(read(ann_), ElementsAre("of her job"));
  EXPECT_THAT(read(operator_), ElementsAre("e-00000000: /secret/path", "of her job"));
}

TEST_F(CallersJobsTest, LinesOfAllJobsAreForOperators) {
  const auto& method = Method("stagecoach.v1.JobService.ReadLogs");
  const grpc::Status refused = Ask(ann_, method, "");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("name one"));
  EXPECT_TRUE(Ask(operator_, method, "").ok());
}

TEST_F(CallersJobsTest, ATokenIsAsGoodAsACertificateOfItsName) {
  const auto ann = ConnectBy(WithToken("ann-token")), cid = ConnectBy(WithToken("cid-token"));
  const absl::StatusOr<v1::Job> job = Submit(cid, "job-of-cid");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner(), "user/cid");
  ASSERT_TRUE(Submit(ann_, "job-of-ann").ok());
  EXPECT_THAT(List(ann), ElementsAre("job-of-ann"));
  EXPECT_THAT(List(cid), ElementsAre("job-of-cid"));
  EXPECT_THAT(List(ConnectBy(WithToken("dora-token"))),
              ElementsAre("job-of-ann", "job-of-cid", "job-a"));
  const auto& get = Method("stagecoach.v1.JobService.GetJob");
  EXPECT_EQ(Ask(cid, get, "job-of-ann").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  // What the table keeps from users, it keeps from tokens of users.
  const auto& fleet = Method("stagecoach.v1.FleetService.RegisterStage");
  const grpc::Status refused = Ask(cid, fleet, "x");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("user cid by its token"));
}

TEST_F(CallersJobsTest, WithoutCertificateOrTokenNothingIsAnswered) {
  const auto& list = Method("stagecoach.v1.JobService.ListJobs");
  TlsFlags nothing = authority_.IssueRole("user", "nobody");
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = FileText(nothing.root_cert);
  const auto stranger = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                           grpc::SslCredentials(options));
  const grpc::Status silent = Ask(stranger, list, "");
  EXPECT_EQ(silent.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(silent.error_message(), HasSubstr("--token-file"));
  const auto& service = *Method("stagecoach.v1.JobService.GetJob").service();
  for (int i = 0; i < service.method_count(); ++i) {
    EXPECT_EQ(Ask(stranger, *service.method(i), "job-a").error_code(),
              grpc::StatusCode::UNAUTHENTICATED)
        << service.method(i)->name();
  }
  const grpc::Status wrong = Ask(ConnectBy(WithToken("no-token")), list, "");
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(wrong.error_message(), HasSubstr("not known"));
  // Another authority's certificate is no certificate, and is not passed over for its token.
  const auto with_both = [&](TestAuthority& authority) {
    const TlsFlags eve = authority.IssueRole("operator", "eve");
    grpc::SslCredentialsOptions both = options;
    both.pem_cert_chain = FileText(eve.server_cert);
    both.pem_private_key = FileText(eve.server_key);
    return MakeControlChannel(
        absl::StrCat("127.0.0.1:", server_->port()),
        grpc::CompositeChannelCredentials(grpc::SslCredentials(both),
                                          grpc::AccessTokenCredentials("cid-token")));
  };
  EXPECT_TRUE(Ask(with_both(authority_), list, "").ok()) << "but for the authority it is right";
  TestAuthority other("other");
  EXPECT_EQ(Ask(with_both(other), list, "", /*waits=*/false).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CallersJobsTest, ATokenThatIsTakenOutOfTheFileIsOutAtOnce) {
  const auto cid = ConnectBy(WithToken("cid-token"));
  EXPECT_THAT(List(cid), ElementsAre());
  WriteTokens({{"ann", ""}});
  const auto& list = Method("stagecoach.v1.JobService.ListJobs");
  EXPECT_EQ(Ask(cid, list, "").error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(CallersJobsTest, AClientsTokenIsCheckedBeforeItIsSent) {
  TlsFlags tls = WithToken("cid-token");
  tls.use_ssl = false;
  EXPECT_THAT(MakeChannelCredentials(tls).status().message(), HasSubstr("read on the way"));
  tls.use_ssl = true;
  folder_.Write("token-cid-token", "two words\n");
  EXPECT_THAT(MakeChannelCredentials(tls).status().message(), HasSubstr("one word"));
  folder_.Write("token-cid-token", "\n");
  EXPECT_THAT(MakeChannelCredentials(tls).status().message(), HasSubstr("one word"));
  tls.token_file += "-not-there";
  EXPECT_THAT(MakeChannelCredentials(tls).status().message(), HasSubstr("cannot be read"));
  tls = WithToken("cid-token");
  tls.server_cert = "some.crt";
  EXPECT_THAT(MakeChannelCredentials(tls).status().message(),
              HasSubstr("in place of a certificate"));
}

}  // namespace
}  // namespace stagecoach
