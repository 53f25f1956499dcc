// Data sets over real connections: users with certificates, who upload parts to the store, make sets
// of them and submit jobs that read them, and who look for each other's.
#include "services/coordinator/api/data_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "plan/data/data_sets_of.h"
#include "services/common/convert/spec/convert_spec.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/store/store_client.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/tls_identity.h"
#include "services/coordinator/api/waiting_job_testing.h"
#include "services/coordinator/data/data_set_testing.h"
#include "services/coordinator/store/store_service.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kCallTime = std::chrono::seconds(60);

// One of the callers.
struct Person {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::DataService::Stub> data;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<StoreClient> store;

  template <typename Stub, typename Request, typename Response>
  static grpc::Status Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + kCallTime);
    return (stub.*method)(&context, request, response);
  }
  grpc::Status Prepare(const TestSet& set, v1::PrepareUploadResponse* response) {
    v1::PrepareUploadRequest request;
    for (const v1::DataPart& part : set.Listed()) *request.add_parts() = part;
    return Call(*data, &v1::DataService::Stub::PrepareUpload, request, response);
  }
  absl::Status Upload(const TestSet& set) {
    v1::PrepareUploadResponse prepared;
    const grpc::Status status = Prepare(set, &prepared);
    if (!status.ok()) return absl::InternalError(status.error_message());
    const std::vector<v1::DataPart> parts = set.Listed();
    for (const int index : prepared.missing()) {
      const std::string& digest = parts[static_cast<size_t>(index)].sha256();
      const StoredObject object{absl::StrCat(prepared.folder(), "/", digest), prepared.grant()};
      const absl::Status written =
          store->Append(object, 0, std::as_bytes(std::span(set.parts.at(digest))), true);
      if (!written.ok()) return written;
    }
    return absl::OkStatus();
  }
  grpc::Status Put(const TestSet& set, const std::string& name, v1::DataSet* made,
                   bool replace = false) {
    v1::PutDataSetRequest request;
    request.set_manifest_sha256(set.manifest_sha256);
    request.set_name(name);
    request.set_replace(replace);
    v1::PutDataSetResponse response;
    const grpc::Status status = Call(*data, &v1::DataService::Stub::PutDataSet, request, &response);
    *made = response.data_set();
    return status;
  }
  v1::DataSet MustPut(const TestSet& set, const std::string& name) {
    const absl::Status uploaded = Upload(set);
    EXPECT_TRUE(uploaded.ok()) << uploaded;
    v1::DataSet made;
    const grpc::Status status = Put(set, name, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made;
  }
  grpc::Status Open(const std::string& set, v1::OpenDataSetResponse* response) {
    v1::OpenDataSetRequest request;
    request.set_data_set(set);
    return Call(*data, &v1::DataService::Stub::OpenDataSet, request, response);
  }
  grpc::Status Remove(const std::string& set) {
    v1::RemoveDataSetRequest request;
    request.set_data_set(set);
    v1::RemoveDataSetResponse response;
    return Call(*data, &v1::DataService::Stub::RemoveDataSet, request, &response);
  }
  v1::ListDataSetsResponse List() {
    v1::ListDataSetsResponse response;
    const grpc::Status status =
        Call(*data, &v1::DataService::Stub::ListDataSets, v1::ListDataSetsRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status Submit(const std::string& id, const v1::JobSpec& spec,
                      v1::SubmitJobResponse* response) {
    v1::SubmitJobRequest request;
    request.set_id(id);
    *request.mutable_spec() = spec;
    return Call(*jobs, &v1::JobService::Stub::SubmitJob, request, response);
  }
  grpc::Status Cancel(const std::string& id) {
    v1::CancelJobRequest request;
    request.set_id(id);
    v1::CancelJobResponse response;
    return Call(*jobs, &v1::JobService::Stub::CancelJob, request, &response);
  }
};

class DataServiceTest : public WaitingJobTest {
 protected:
  DataServiceTest() {
    DataCatalog::Options options;
    options.folder = folder_.File("state/data");
    options.reserve_bytes = 0;
    catalog_ = DataCatalog::Open(options).value();
    data_ = std::make_unique<DataServiceAdapter>(DataServiceAdapter::Parts{
        .catalog = catalog_.get(),
        .grants = &grants_,
        .list_jobs = [this](DataServiceAdapter::OnJobs done) { manager_->List(std::move(done)); }});
    JobServiceAdapter::Parts parts = ServiceParts();
    parts.data = data_.get();
    jobs_ = std::make_unique<JobServiceAdapter>(parts);
    objects_ =
        std::make_unique<ObjectFiles>(ObjectFolders{.checkpoints = folder_.File("checkpoints"),
                                                    .exports = folder_.File("exports"),
                                                    .data = folder_.File("state/data")},
                                      0);
    store_service_ = std::make_unique<StoreService>(objects_.get(), &grants_);
    GrpcServerOptions server;
    server.listen = "127.0.0.1:0";
    server.tls = authority_.IssueRole("coordinator", "coordinator");
    server_ = std::make_unique<GrpcServer>(
        server,
        std::vector<GrpcServer::NamedService>{{"stagecoach.v1.DataService", data_.get()},
                                              {"stagecoach.v1.JobService", jobs_.get()},
                                              {"stagecoach.v1.StoreService", store_service_.get()}},
        nullptr);
    EXPECT_TRUE(server_->Start().ok());
    alice_ = Meet("user", "alice");
    bob_ = Meet("user", "bob");
    eve_ = Meet("operator", "eve");
  }
  ~DataServiceTest() override {
    manager_->Shutdown();
    server_->Shutdown(0);
    server_.reset();
    jobs_.reset();
    data_.reset();
  }

  Person Meet(const std::string& role, const std::string& name) {
    const TlsFlags flags = authority_.IssueRole(role, name);
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = FileText(flags.root_cert);
    options.pem_private_key = FileText(flags.server_key);
    options.pem_cert_chain = FileText(flags.server_cert);
    const auto dial = [address = absl::StrCat("127.0.0.1:", server_->port()), options] {
      return MakeControlChannel(address, grpc::SslCredentials(options));
    };
    Person person;
    person.channel = dial();
    person.data = v1::DataService::NewStub(person.channel);
    person.jobs = v1::JobService::NewStub(person.channel);
    person.store = std::make_unique<StoreClient>(StoreClient::Options{.dial = dial});
    return person;
  }
  // A job that waits for stages that never come.
  static v1::JobSpec SpecWith(const std::string& dataset, const std::string& path) {
    v1::JobSpec spec = ToProto(SmallSpec());
    spec.mutable_data()->mutable_text()->set_path(path);
    spec.mutable_data()->set_dataset(dataset);
    return spec;
  }

  TestAuthority authority_;
  std::unique_ptr<DataCatalog> catalog_;
  std::unique_ptr<DataServiceAdapter> data_;
  std::unique_ptr<JobServiceAdapter> jobs_;
  std::unique_ptr<ObjectFiles> objects_;
  std::unique_ptr<StoreService> store_service_;
  std::unique_ptr<GrpcServer> server_;
  Person alice_, bob_, eve_;
  const TestSet cats_ = SetOf({{"train/a.txt", "miau"}, {"tokens", "x"}});
};

TEST_F(DataServiceTest, ASetIsPutOpenedReadAndRemoved) {
  const v1::DataSet made = alice_.MustPut(cats_, "cats");
  EXPECT_EQ(made.owner(), "user/alice");
  v1::PrepareUploadResponse again;
  ASSERT_TRUE(alice_.Prepare(cats_, &again).ok());
  EXPECT_EQ(again.missing_size(), 0);
  v1::OpenDataSetResponse opened;
  ASSERT_TRUE(alice_.Open("cats", &opened).ok());
  EXPECT_EQ(opened.data_set().id(), made.id());
  const StoredObject manifest{absl::StrCat(opened.folder(), "/manifest"), opened.grant()};
  std::string bytes(cats_.parts.at(cats_.manifest_sha256).size(), '\0');
  ASSERT_TRUE(alice_.store->Read(manifest, 0, std::as_writable_bytes(std::span(bytes))).ok());
  EXPECT_EQ(bytes, cats_.parts.at(cats_.manifest_sha256));
  EXPECT_EQ(alice_.List().data_sets_size(), 1);
  EXPECT_TRUE(alice_.Remove("cats").ok());
  EXPECT_EQ(alice_.List().data_sets_size(), 0);
  EXPECT_EQ(alice_.Remove("cats").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(alice_.store->Find(manifest).status().code(), absl::StatusCode::kNotFound);
}

// A stage that was taken over has its certificate, and grants for what its own jobs read.
TEST_F(DataServiceTest, AStolenStageReadsTheDataOfItsOwnJobsAlone) {
  const v1::DataSet cats = alice_.MustPut(cats_, "cats");
  const v1::DataSet dogs = bob_.MustPut(cats_, "dogs");  // the same content
  Person stage = Meet("stage", "stage-0");
  v1::OpenDataSetResponse opened;
  EXPECT_EQ(stage.Open(cats.id(), &opened).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(stage.Remove(cats.id()).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  v1::GetRecordFilesRequest records;
  records.set_job_id("job-a");
  v1::GetRecordFilesResponse found;
  EXPECT_EQ(Person::Call(*stage.jobs, &v1::JobService::Stub::GetRecordFiles, records, &found)
                .error_code(),
            grpc::StatusCode::PERMISSION_DENIED);

  const std::string granted = grants_.Make(SetObject(dogs.id()), ObjectGrants::Use::kRead);
  const auto manifest = [&](const v1::DataSet& set, const std::string& grant) {
    std::string bytes(cats_.parts.at(cats_.manifest_sha256).size(), '\0');
    return stage.store->Read({absl::StrCat(SetObject(set.id()), "/manifest"), grant}, 0,
                             std::as_writable_bytes(std::span(bytes)));
  };
  EXPECT_EQ(manifest(dogs, granted), absl::OkStatus());
  for (const std::string& grant : {std::string(), granted}) {
    EXPECT_TRUE(absl::IsPermissionDenied(manifest(cats, grant)));
    EXPECT_TRUE(absl::IsPermissionDenied(
        stage.store->Find({"records/job-a/metrics.jsonl", grant}).status()));
    EXPECT_TRUE(absl::IsPermissionDenied(
        stage.store
            ->Find({absl::StrCat(PartsObject("user/alice"), "/", cats_.manifest_sha256), grant})
            .status()));
  }
  const std::byte byte{};
  EXPECT_TRUE(absl::IsPermissionDenied(stage.store->Append(
      {absl::StrCat(PartsObject("user/bob"), "/", std::string(64, '0')), granted}, 0, {&byte, 1},
      true)));
}

TEST_F(DataServiceTest, NothingOfAnotherUserIsThere) {
  const v1::DataSet made = alice_.MustPut(cats_, "cats");
  EXPECT_EQ(bob_.List().data_sets_size(), 0);
  v1::OpenDataSetResponse opened;
  for (const std::string& set : {std::string("cats"), made.id()}) {
    EXPECT_EQ(bob_.Open(set, &opened).error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(bob_.Remove(set).error_code(), grpc::StatusCode::NOT_FOUND);
    v1::SubmitJobResponse submitted;
    const grpc::Status status = bob_.Submit("", SpecWith(set, "train/a.txt"), &submitted);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_THAT(status.error_message(), StartsWith("data.text.path = \"train/a.txt\": data set "));
  }
  // By the digests that he knows from somewhere.
  v1::DataSet put;
  EXPECT_EQ(bob_.Put(cats_, "cats", &put).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  v1::PrepareUploadResponse prepared;
  ASSERT_TRUE(bob_.Prepare(cats_, &prepared).ok());
  EXPECT_EQ(prepared.missing_size(), static_cast<int>(cats_.parts.size()));
  EXPECT_EQ(prepared.folder(), "data/parts/user%2Fbob");
  // With his own grant he neither writes nor reads in Alice's folders.
  for (const std::string& folder :
       {std::string("data/parts/user%2Falice"), absl::StrCat("data/sets/", made.id())}) {
    const StoredObject object{absl::StrCat(folder, "/", cats_.manifest_sha256), prepared.grant()};
    EXPECT_EQ(bob_.store->Find(object).status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(bob_.store->Append(object, 0, {}, true).code(), absl::StatusCode::kPermissionDenied);
  }
  ASSERT_TRUE(alice_.Open("cats", &opened).ok());
  const StoredObject own{absl::StrCat(opened.folder(), "/manifest"), opened.grant()};
  EXPECT_EQ(alice_.store->Append(own, 0, {}, true).code(), absl::StatusCode::kPermissionDenied)
      << "sets are only read";
}

TEST_F(DataServiceTest, AnOperatorHasAll) {
  const v1::DataSet made = alice_.MustPut(cats_, "cats");
  EXPECT_EQ(eve_.List().data_sets_size(), 1);
  v1::OpenDataSetResponse opened;
  EXPECT_TRUE(eve_.Open("cats", &opened).ok());
  v1::SubmitJobResponse submitted;
  const grpc::Status status = eve_.Submit("of-eve", SpecWith("cats", "train/a.txt"), &submitted);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(eve_.Cancel("of-eve").ok());
  EXPECT_TRUE(eve_.Remove(made.id()).ok());
  EXPECT_EQ(alice_.List().data_sets_size(), 0);
}

TEST_F(DataServiceTest, ChangedBytesAreRefusedByTheStore) {
  v1::PrepareUploadResponse prepared;
  ASSERT_TRUE(alice_.Prepare(cats_, &prepared).ok());
  const StoredObject object{absl::StrCat(prepared.folder(), "/", cats_.manifest_sha256),
                            prepared.grant()};
  const std::string other = "other bytes";
  const absl::Status status =
      alice_.store->Append(object, 0, std::as_bytes(std::span(other)), true);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("changed while it was uploaded"));
  EXPECT_TRUE(alice_.Upload(cats_).ok()) << "it begins anew";
  v1::DataSet made;
  EXPECT_TRUE(alice_.Put(cats_, "", &made).ok());
}

TEST_F(DataServiceTest, AnotherClientGoesOnWithAnUpload) {
  const TestSet large = SetOf({{"large", std::string(100'000, 'x')}});
  const std::string digest = Sha256Hex(std::string(100'000, 'x'));
  v1::PrepareUploadResponse prepared;
  ASSERT_TRUE(alice_.Prepare(large, &prepared).ok());
  const StoredObject first{absl::StrCat(prepared.folder(), "/", digest), prepared.grant()};
  const std::string& bytes = large.parts.at(digest);
  const auto all = std::as_bytes(std::span(bytes));
  ASSERT_TRUE(alice_.store->Append(first, 0, all.first(40'000), false).ok());
  Person again = Meet("user", "alice");
  ASSERT_TRUE(again.Prepare(large, &prepared).ok());
  EXPECT_EQ(prepared.missing_size(), 2);
  const StoredObject second{first.name, prepared.grant()};
  const auto found = again.store->Find(second);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->committed, 40'000);
  EXPECT_FALSE(found->complete);
  ASSERT_TRUE(again.store->Append(second, 40'000, all.subspan(40'000), true).ok());
  EXPECT_EQ(again.MustPut(large, "large").bytes(), 100'000);
}

TEST_F(DataServiceTest, ErrorsOfFilesHaveNoPaths) {
  const v1::DataSet made = alice_.MustPut(cats_, "cats");
  std::filesystem::remove(folder_.File(absl::StrCat("state/data/sets/", made.id(), "/manifest")));
  v1::SubmitJobResponse submitted;
  const grpc::Status status = alice_.Submit("", SpecWith("cats", "train/a.txt"), &submitted);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("data.text.path = "), HasSubstr("STATE/data"),
                                            Not(HasSubstr(folder_.path()))));
}

TEST_F(DataServiceTest, JobsHaveIdsAndPinTheirSets) {
  const v1::DataSet made = alice_.MustPut(cats_, "cats");
  v1::SubmitJobResponse submitted;
  ASSERT_TRUE(alice_.Submit("reads", SpecWith("cats", "train/a.txt"), &submitted).ok());
  EXPECT_EQ(submitted.job().spec().data().text().path(),
            absl::StrCat("store:/data/", made.id(), "/train/a.txt"));
  EXPECT_EQ(submitted.job().spec().data().dataset(), "");
  const v1::ListDataSetsResponse listed = alice_.List();
  ASSERT_EQ(listed.data_sets_size(), 1);
  EXPECT_THAT(listed.data_sets(0).jobs(), ElementsAre("reads"));

  const grpc::Status refused = alice_.Remove("cats");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), AllOf(HasSubstr("data set cats"), HasSubstr("reads"),
                                             HasSubstr("stagecoach cancel")));
  v1::OpenDataSetResponse opened;
  EXPECT_TRUE(alice_.Open("cats", &opened).ok()) << "it is back";
  // The name may go to another content meanwhile; the job goes on with its own.
  const TestSet dogs = SetOf({{"train/a.txt", "wuff"}});
  ASSERT_TRUE(alice_.Upload(dogs).ok());
  v1::DataSet other;
  ASSERT_TRUE(alice_.Put(dogs, "cats", &other, true).ok());
  EXPECT_EQ(alice_.Remove(made.id()).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(alice_.Cancel("reads").ok());
  EXPECT_TRUE(alice_.Remove(made.id()).ok());
}

// A set does not vanish between the look at it and the acceptance of the job.
TEST_F(DataServiceTest, OfASubmissionAndARemovalAtATimeOneIsRefused) {
  int removed = 0, submitted = 0;
  for (int i = 0; i < 30; ++i) {
    const v1::DataSet made = alice_.MustPut(cats_, "cats");
    const std::string id = absl::StrCat("race-", i);
    grpc::Status submit;
    std::thread other([&] {
      v1::SubmitJobResponse response;
      submit = alice_.Submit(id, SpecWith("cats", "train/a.txt"), &response);
    });
    const grpc::Status remove = alice_.Remove(made.id());
    other.join();
    ASSERT_NE(submit.ok(), remove.ok())
        << "submit: " << submit.error_message() << "; remove: " << remove.error_message();
    EXPECT_EQ(submit.ok(),
              std::filesystem::exists(folder_.File(absl::StrCat("state/data/sets/", made.id()))));
    ++(submit.ok() ? submitted : removed);
    if (submit.ok()) {
      EXPECT_EQ(remove.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_TRUE(alice_.Cancel(id).ok());
    }
  }
  EXPECT_EQ(submitted + removed, 30);
}

TEST_F(DataServiceTest, PathsAreLookedForInTheSet) {
  alice_.MustPut(cats_, "cats");
  const auto says = [&](const v1::JobSpec& spec) {
    v1::SubmitJobResponse submitted;
    const grpc::Status status = alice_.Submit("", spec, &submitted);
    v1::PlanJobRequest plan;
    *plan.mutable_spec() = spec;
    v1::PlanJobResponse planned;
    EXPECT_EQ(
        Person::Call(*alice_.jobs, &v1::JobService::Stub::PlanJob, plan, &planned).error_message(),
        status.error_message());
    return absl::StrCat(static_cast<int>(status.error_code()), " ", status.error_message());
  };
  EXPECT_THAT(says(SpecWith("cats", "train/b.txt")),
              StartsWith("3 data.text.path = \"train/b.txt\": data set cats has no such file; "));
  EXPECT_THAT(says(SpecWith("cats", "train")),
              StartsWith("3 data.text.path = \"train\": data set cats has a folder there"));
  EXPECT_THAT(says(SpecWith("dogs", "train/a.txt")),
              StartsWith("5 data.text.path = \"train/a.txt\": data set dogs is not here; "));
  EXPECT_THAT(says(SpecWith("cats", "../a.txt")), StartsWith("3 data.text.path: "));
  v1::JobSpec weights = SpecWith("cats", "train/a.txt");
  weights.mutable_initialize()->set_from("none.safetensors");
  weights.mutable_initialize()->set_dataset("cats");
  EXPECT_THAT(says(weights),
              StartsWith("3 initialize.from = \"none.safetensors\": data set cats has no such"));
  EXPECT_THAT(bob_.List().data_sets(), IsEmpty());
}

}  // namespace
}  // namespace stagecoach
