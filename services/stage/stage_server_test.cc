// A stage server as its coordinator meets it: two of them over loopback, with a fleet service that
// only listens.
#include "services/stage/stage_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"
#include "base/testing/temporary_folder.h"
#include "base/threads/clock.h"
#include "network/zoo/gpt.h"
#include "plan/data/text.h"
#include "services/common/convert/convert_card.h"
#include "services/common/convert/convert_control.h"
#include "services/common/grpc/message_checksum.h"
#include "services/common/observe/log.h"
#include "services/common/process/last_death.h"
#include "stage/testing/staged_backend.h"
#include "stagecoach/v1/fleet.grpc.pb.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Property;

constexpr auto kPatience = std::chrono::seconds(20);

// Grants every lease, unless told to refuse, and remembers the last renewal of each stage.
class ListeningFleet final : public v1::FleetService::Service {
 public:
  grpc::Status RegisterStage(grpc::ServerContext*, const v1::RegisterStageRequest* request,
                             v1::RegisterStageResponse* response) override {
    std::lock_guard<std::mutex> lock(mutex_);
    registrations_.push_back(request->stage());
    if (request->has_last_death()) deaths_.push_back(request->last_death());
    changed_.notify_all();
    if (!refusal_.ok()) return refusal_;
    response->set_lease_seconds(lease_seconds_);
    SetChecksum(response);
    return grpc::Status::OK;
  }
  // Those that are granted from now on.
  void LeasesLast(double seconds) {
    std::lock_guard<std::mutex> lock(mutex_);
    lease_seconds_ = seconds;
  }
  void Refuse(const grpc::Status& refusal) {
    std::lock_guard<std::mutex> lock(mutex_);
    refusal_ = refusal;
  }
  // From now on it knows nobody, and gives no name to anybody.
  void Forget() {
    std::lock_guard<std::mutex> lock(mutex_);
    forgets_ = true;
    refusal_ = grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "the name is held");
    registrations_.clear();
  }
  // Of `stage`, once there are so many; fewer if that takes too long.
  std::vector<v1::Stage> WaitForRegistrations(size_t count, const std::string& stage) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::vector<v1::Stage> found;
    changed_.wait_for(lock, kPatience, [&] {
      found.clear();
      for (const v1::Stage& one : registrations_) {
        if (one.name() == stage) found.push_back(one);
      }
      return found.size() >= count;
    });
    return found;
  }
  grpc::Status RenewLease(grpc::ServerContext*, const v1::RenewLeaseRequest* request,
                          v1::RenewLeaseResponse* response) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      response->set_lease_seconds(lease_seconds_);
      SetChecksum(response);
      if (forgets_) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such stage");
      renewals_[request->name()] = *request;
      states_.insert(request->state());
    }
    changed_.notify_all();
    return grpc::Status::OK;
  }

  bool WaitFor(const std::function<bool(const v1::RenewLeaseRequest&)>& wanted,
               const std::string& stage) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return wanted(renewals_[stage]); });
  }
  std::vector<v1::StageDeath> deaths() {
    std::lock_guard<std::mutex> lock(mutex_);
    return deaths_;
  }
  bool Heard(const std::string& state) {
    std::lock_guard<std::mutex> lock(mutex_);
    return states_.count(state) > 0;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  double lease_seconds_ = 0.15;
  std::map<std::string, v1::RenewLeaseRequest> renewals_;
  std::set<std::string> states_;
  std::vector<v1::Stage> registrations_;
  std::vector<v1::StageDeath> deaths_;
  grpc::Status refusal_;
  bool forgets_ = false;
};

class StageServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(SetUpLogging("stage", "text", false).ok());
    data_ = folder_.Write("in.txt", std::string(4000, 'x'));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&fleet_);
    coordinator_ = builder.BuildAndStart();
    coordinator_address_ = absl::StrCat("127.0.0.1:", port);
    for (int k = 0; k < 2; ++k) StartStage(k, coordinator_address_);
  }

  void Release(int k) {
    grpc::ClientContext context;
    v1::ReleaseCellRequest request;
    *request.mutable_fence() = ToProto(FenceOf(0));
    v1::ReleaseCellResponse response;
    stubs_[k]->ReleaseCell(&context, WithChecksum(request), &response);
  }

  // Stages without a cell go at once.
  void TearDown() override {
    for (int k = 0; k < 2; ++k) Release(k);
    std::thread other([this] { servers_[0].reset(); });
    servers_[1].reset();
    other.join();
  }

  void StartStage(int k, const std::string& coordinator) {
    StageFlags flags;
    flags.server = {.listen = "127.0.0.1:0",
                    .http = "127.0.0.1:0",
                    .port_file = folder_.File(absl::StrCat(k, ".port"))};
    flags.coordinator = coordinator;
    flags.name = absl::StrCat("s", k);
    flags.device = "reference";
    flags.memory_limit_bytes = 1 << 30;
    flags.state_dir = state_dir_;
    flags.data_roots = data_roots_;
    servers_[k] = std::make_unique<StageServer>(flags, hooks_[k]);
    ASSERT_TRUE(servers_[k]->Start().ok());
    int port = 0;
    std::ifstream(flags.server.port_file) >> port;
    addresses_[k] = absl::StrCat("127.0.0.1:", port);
    stubs_[k] = v1::StageService::NewStub(
        grpc::CreateChannel(addresses_[k], grpc::InsecureChannelCredentials()));
  }

  static Fence FenceOf(uint64_t step) {
    return {.job = "a", .term = 1, .generation = 1, .step = step};
  }

  LoadCommand LoadOf(int k) const {
    LoadCommand command;
    command.fence = FenceOf(0);
    command.spec.name = "test";
    command.spec.network =
        GptSpec{.layers = 2, .width = 4, .heads = 2, .context = 4, .vocabulary = 128};
    command.spec.data = TextData{.path = data_};
    command.spec.training = {.steps = 10, .batch_size = 6, .micro_batches = 3};
    command.spec.pipeline.stages = 2;
    auto network = ExpandJob(command.spec);
    CHECK_OK(network.status());
    command.network = std::make_shared<const Network>(*std::move(network));
    command.partition = *UniformPartition(7, 2);
    command.stage = StageId(k);
    command.neighbours = {{.downstream_address = k == 0 ? addresses_[1] : ""}};
    return command;
  }

  // The same call on both at once; both must succeed.
  template <typename Call>
  void OnBoth(Call call) {
    grpc::Status first, second;
    std::thread other([&] { first = call(*stubs_[0], 0); });
    second = call(*stubs_[1], 1);
    other.join();
    ASSERT_TRUE(first.ok() && second.ok()) << first.error_message() << second.error_message();
  }

  void TrainSteps(uint64_t steps) {
    OnBoth([this](v1::StageService::Stub& stub, int k) {
      grpc::ClientContext context;
      v1::LoadCellResponse response;
      return stub.LoadCell(&context, WithChecksum(ToProto(LoadOf(k))), &response);
    });
    for (uint64_t step = 0; step < steps; ++step) {
      OnBoth([step](v1::StageService::Stub& stub, int) {
        RunCommand command{.fence = FenceOf(step), .work = WorkKind::kTrain};
        if (step > 0) command.apply = ApplyDecision{.step = step - 1, .learning_rate = 0.1};
        grpc::ClientContext context;
        v1::RunResponse response;
        return stub.Run(&context, WithChecksum(ToProto(command)), &response);
      });
    }
  }

  // Until each knows that it is registered: it may train before that, where its dial was too slow
  // and is tried again.
  void AwaitRenewals() {
    for (const char* name : {"s0", "s1"}) {
      ASSERT_TRUE(fleet_.WaitFor(
          [&](const v1::RenewLeaseRequest& renewal) { return renewal.name() == name; }, name));
    }
  }

  v1::StageTrace Trace(int k, const std::string& job, uint32_t steps) {
    grpc::ClientContext context;
    v1::GetStageTraceRequest request;
    request.set_job_id(job);
    request.set_steps(steps);
    v1::GetStageTraceResponse response;
    EXPECT_TRUE(stubs_[k]->GetStageTrace(&context, request, &response).ok());
    return response.trace();
  }

  TemporaryFolder folder_;
  std::string data_;
  std::string state_dir_;
  std::vector<std::string> data_roots_;
  StageServer::Hooks hooks_[2];
  ListeningFleet fleet_;
  std::unique_ptr<grpc::Server> coordinator_;
  std::string coordinator_address_;
  std::unique_ptr<StageServer> servers_[2];
  std::string addresses_[2];
  std::unique_ptr<v1::StageService::Stub> stubs_[2];
};

TEST_F(StageServerTest, AnswersWithTheTraceOfTheLastSteps) {
  TrainSteps(3);
  const int64_t before = SystemClock::Get()->UnixNanos();
  for (int k = 0; k < 2; ++k) {
    const v1::StageTrace trace = Trace(k, "a", 2);
    EXPECT_EQ(trace.stage(), k);
    EXPECT_EQ(trace.name(), absl::StrCat("s", k));
    EXPECT_GE(trace.now_unix_nanos(), before);
    std::set<uint64_t> steps;
    std::map<std::string, int> spans;
    for (const v1::TraceSpan& span : trace.spans()) {
      EXPECT_LE(span.begin_unix_nanos(), span.end_unix_nanos());
      EXPECT_LE(span.end_unix_nanos(), trace.now_unix_nanos()) << "one clock, set last";
      steps.insert(span.step());
      ++spans[absl::StrCat(v1::TraceTrack_Name(span.track()).substr(12), " ", span.name(), " ",
                           span.peer())];
    }
    EXPECT_EQ(steps, (std::set<uint64_t>{1, 2}));
    EXPECT_EQ(spans["COMPUTE forward "], 6) << "of three micro-batches and two steps";
    EXPECT_EQ(spans["COMPUTE backward "], 6);
    EXPECT_EQ(spans[k == 0 ? "RECEIVE gradient downstream" : "RECEIVE activation upstream"], 6);
    // The end of the last write may come after the neighbour's answer.
    EXPECT_GE(spans[k == 0 ? "SEND activation downstream" : "SEND gradient upstream"], 5);
  }
  EXPECT_EQ(Trace(0, "another", 0).spans_size(), 0);
  grpc::ClientContext context;
  v1::GetStageTraceResponse response;
  EXPECT_EQ(stubs_[0]->GetStageTrace(&context, {}, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(StageServerTest, TellsOnceHowTheProcessBeforeItEnded) {
  state_dir_ = folder_.File("state");
  folder_.Write("state/last_death",
                "signal=SIGSEGV job=a term=1 generation=2 step=12 micro_batch=3 "
                "instruction=backward operation=linear\n");
  StartStage(1, coordinator_address_);
  const std::string incarnation = fleet_.WaitForRegistrations(2, "s1").back().incarnation();
  ASSERT_TRUE(fleet_.WaitFor(
      [&](const v1::RenewLeaseRequest& renewal) { return renewal.incarnation() == incarnation; },
      "s1"));
  ASSERT_EQ(fleet_.deaths().size(), 1u);
  const auto told = FromProto(fleet_.deaths()[0]);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->fence, (Fence{.job = "a", .term = 1, .generation = 2, .step = 12}));
  EXPECT_EQ(DeathText(*told), "SIGSEGV at step 12, micro-batch 3, backward (linear)");
  EXPECT_EQ(ReadDeath(state_dir_), std::nullopt) << "the next process has nothing to tell";
}

// What a stage builds is in the message: it needs no entry of the zoo.
TEST_F(StageServerTest, BuildsANetworkWhoseModelItDoesNotKnow) {
  v1::LoadCellRequest request = ToProto(LoadOf(1));
  request.mutable_job()->clear_model();
  grpc::ClientContext context;
  v1::LoadCellResponse response;
  const grpc::Status status = stubs_[1]->LoadCell(&context, WithChecksum(request), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(response.memory().parameters(), 0);
}

// Symptom: a job read every file that the stage could read, and its errors told which files there
// are.
TEST_F(StageServerTest, ReadsForJobsWhatIsBeneathItsDataRootsAndNothingElse) {
  const std::string root = folder_.File("data");
  folder_.Write("data/in.txt", std::string(4000, 'x'));
  folder_.Write("data/run/journal.sqlite", std::string(4000, 'x'));
  state_dir_ = root + "/state";
  data_roots_ = {root};
  StartStage(1, coordinator_address_);
  const auto load = [this](const std::string& path, const std::string& from = "") {
    LoadCommand command = LoadOf(1);
    command.spec.data = TextData{.path = path};
    command.spec.initialize.from = from;
    grpc::ClientContext context;
    v1::LoadCellResponse response;
    return stubs_[1]->LoadCell(&context, WithChecksum(ToProto(command)), &response);
  };
  const auto refusal = [&](const std::string& path) {
    const grpc::Status status = load(path);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << path;
    const std::string where = absl::StrCat("data.text.path = \"", path, "\": ");
    const std::string text = status.error_message();
    EXPECT_THAT(text, HasSubstr(where));
    return text.substr(std::min(text.find(where) + where.size(), text.size()));
  };
  const std::string outside = refusal("/etc/shadow");
  EXPECT_THAT(outside, HasSubstr("--data-root"));
  for (const std::string& path :
       {data_, folder_.File("not-there"), std::string("/etc"), std::string("/etc/passwd/x"),
        std::string("/proc/self/environ")}) {
    EXPECT_EQ(refusal(path), outside);
  }
  EXPECT_THAT(refusal(root + "/run/journal.sqlite"), HasSubstr("is no data"));
  EXPECT_THAT(refusal(root + "/state/identity"), HasSubstr("is no data"));
  const grpc::Status weights = load(root + "/in.txt", "/etc/shadow");
  EXPECT_EQ(weights.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(weights.error_message(),
              AllOf(HasSubstr("initialize.from = \"/etc/shadow\": "), HasSubstr("--data-root")));
  const grpc::Status in = load(root + "/in.txt");
  EXPECT_TRUE(in.ok()) << in.error_message();
}

TEST_F(StageServerTest, RefusesWhatANewerCoordinatorAsksFor) {
  const auto refusal = [this](const v1::LoadCellRequest& request) {
    grpc::ClientContext context;
    v1::LoadCellResponse response;
    const grpc::Status status = stubs_[1]->LoadCell(&context, WithChecksum(request), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::LoadCellRequest operation = ToProto(LoadOf(1));
  for (auto& known : *operation.mutable_network()->mutable_operations()) {
    if (known.name() == "attention") known.set_name("sliding_attention");
  }
  EXPECT_THAT(refusal(operation),
              AllOf(HasSubstr("layer 1 (residual(layer_norm, attention)): there is no operation "
                              "\"sliding_attention\""),
                    HasSubstr("upgrade the older")));
  v1::LoadCellRequest field = ToProto(LoadOf(1));
  v1::Training* const training = field.mutable_job()->mutable_training();
  training->GetReflection()->MutableUnknownFields(training)->AddVarint(99, 1);
  EXPECT_THAT(refusal(field), AllOf(HasSubstr("job.training: has field 99"),
                                    HasSubstr("upgrade this stage server")));
  v1::LoadCellRequest before = ToProto(LoadOf(1));  // of a coordinator that sent the model alone
  before.clear_network();
  EXPECT_THAT(refusal(before), HasSubstr("network: not given; upgrade the coordinator"));
}

TEST_F(StageServerTest, AnswersWithTheLinesOfItsLog) {
  TrainSteps(1);
  grpc::ClientContext abort_context;
  v1::AbortRequest abort;
  *abort.mutable_fence() = ToProto(FenceOf(0));
  abort.set_reason("a test wants it");
  v1::AbortResponse aborted;
  ASSERT_TRUE(stubs_[0]->Abort(&abort_context, WithChecksum(abort), &aborted).ok());
  grpc::ClientContext context;
  v1::GetStageLogsRequest request;
  request.set_job_id("a");
  v1::GetStageLogsResponse response;
  ASSERT_TRUE(stubs_[0]->GetStageLogs(&context, request, &response).ok());
  EXPECT_GT(response.newest(), 0u);
  EXPECT_THAT(
      response.lines(),
      Contains(AllOf(Property(&v1::LogLine::job_id, "a"), Property(&v1::LogLine::step, 0u),
                     Property(&v1::LogLine::source, "s0"), Property(&v1::LogLine::level, "info"),
                     Property(&v1::LogLine::message, HasSubstr("loaded as stage 0")))));
  EXPECT_THAT(response.lines(),
              Contains(AllOf(Property(&v1::LogLine::level, "warning"),
                             Property(&v1::LogLine::message, HasSubstr("a test wants it")))));
  const uint64_t newest = response.newest();
  request.set_none_until_unix_seconds(1);
  grpc::ClientContext alone;
  v1::GetStageLogsResponse own;
  ASSERT_TRUE(stubs_[0]->GetStageLogs(&alone, request, &own).ok());
  EXPECT_THAT(own.lines(), Each(Property(&v1::LogLine::job_id, "a")));
  EXPECT_LT(own.lines_size(), response.lines_size());
  request.set_after(newest);
  grpc::ClientContext next;
  ASSERT_TRUE(stubs_[0]->GetStageLogs(&next, request, &response).ok());
  for (const v1::LogLine& line : response.lines()) EXPECT_GT(line.number(), newest);
}

// A coordinator whose journal went back learns from it what its term must be.
TEST_F(StageServerTest, HeartbeatsCarryTheHighestTermThatItMet) {
  Fence fence = FenceOf(0);
  for (const uint64_t term : {3, 7, 5}) {
    fence.term = term;
    grpc::ClientContext context;
    v1::AbortRequest request;
    *request.mutable_fence() = ToProto(fence);
    v1::AbortResponse response;
    ASSERT_TRUE(stubs_[0]->Abort(&context, WithChecksum(request), &response).ok());
  }
  ASSERT_TRUE(fleet_.WaitFor(
      [](const v1::RenewLeaseRequest& renewal) { return renewal.newest_term() == 7; }, "s0"));
}

// Symptom: without TLS one flipped bit in a learning rate was obeyed, and the job SUCCEEDED with
// another digest.
TEST_F(StageServerTest, RefusesWhatWasDamagedOnItsWay) {
  const auto run = [this](const v1::RunRequest& request) {
    grpc::ClientContext context;
    v1::RunResponse response;
    const grpc::Status status = stubs_[0]->Run(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
        << "sent again, not taken for a fault of the job";
    return status.error_message();
  };
  v1::RunRequest request;
  *request.mutable_fence() = ToProto(FenceOf(0));
  request.mutable_apply()->set_learning_rate(0.1);
  EXPECT_THAT(run(request), HasSubstr("RunRequest: has no checksum"));
  request = WithChecksum(request);
  request.mutable_apply()->set_learning_rate(0.4);
  EXPECT_THAT(run(request), HasSubstr("RunRequest: was damaged on its way"));
}

TEST_F(StageServerTest, MarksItsOwnErrors) {
  grpc::ClientContext context;
  v1::GetStageTraceResponse response;
  ASSERT_FALSE(stubs_[0]->GetStageTrace(&context, {}, &response).ok());
  EXPECT_EQ(context.GetServerTrailingMetadata().count("stagecoach-own-error"), 1u);
}

TEST_F(StageServerTest, HeartbeatsCarryTotals) {
  TrainSteps(2);
  ASSERT_TRUE(fleet_.WaitFor(
      [](const v1::RenewLeaseRequest& renewal) {
        const v1::StageTelemetry& telemetry = renewal.telemetry();
        return telemetry.links_size() == 1 && telemetry.links(0).received_bytes() > 0 &&
               telemetry.phases().seconds().at("forward") > 0;
      },
      "s1"));
  ASSERT_TRUE(fleet_.WaitFor(
      [](const v1::RenewLeaseRequest& renewal) { return renewal.telemetry().links_size() == 1; },
      "s0"));
  fleet_.WaitFor(
      [](const v1::RenewLeaseRequest& renewal) {
        const v1::StageTelemetry& telemetry = renewal.telemetry();
        EXPECT_EQ(telemetry.links(0).peer(), "upstream");
        EXPECT_GT(telemetry.links(0).transfer_p95_seconds(), 0);
        EXPECT_GT(telemetry.memory().parameters(), 0);
        EXPECT_GT(telemetry.memory_peak().activations(), 0);
        EXPECT_EQ(telemetry.memory_limit_bytes(), 1 << 30);
        EXPECT_GT(telemetry.uptime_seconds(), 0);
        return true;
      },
      "s1");
  grpc::ClientContext context;
  v1::GetStatusResponse status;
  const int64_t before = SystemClock::Get()->UnixNanos();
  ASSERT_TRUE(stubs_[0]->GetStatus(&context, {}, &status).ok());
  EXPECT_GE(status.now_unix_nanos(), before);
  EXPECT_LE(status.now_unix_nanos(), SystemClock::Get()->UnixNanos());
}

// A renewal has as long as the lease lasts: on a busy machine one that has a tenth of a second may
// not be heard.
class LongLeaseTest : public StageServerTest {
 protected:
  LongLeaseTest() { fleet_.LeasesLast(20); }
};

TEST_F(LongLeaseTest, SaysThatItDrainsBeforeItGoes) {
  TrainSteps(1);
  Release(0);
  ASSERT_FALSE(fleet_.WaitForRegistrations(1, "s0").empty());
  EXPECT_FALSE(fleet_.Heard("draining"));
  servers_[0]->Shutdown();
  EXPECT_TRUE(fleet_.Heard("draining"));
  grpc::ClientContext context;
  v1::GetStatusResponse status;
  EXPECT_EQ(stubs_[0]->GetStatus(&context, {}, &status).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// Symptom: Ctrl-C in `stagecoach local` took two seconds more than its checkpoint. Cause: stages
// waited for what a coordinator that had ended before them might still ask.
TEST_F(StageServerTest, GoesAtOnceIfItsCoordinatorIsGone) {
  TrainSteps(1);
  AwaitRenewals();
  coordinator_->Shutdown();
  std::thread other([this] { servers_[0]->Shutdown(); });
  servers_[1]->Shutdown();
  other.join();
  int told = 0;
  for (const LogEntry& line : ProcessLogRing()->Read(0, "", 0).lines) {
    if (absl::StrContains(line.message, "the coordinator is gone, there is nobody to wait for")) {
      ++told;
    }
  }
  EXPECT_EQ(told, 2) << "each stage, before its time was over";
}

// A stage that was refused its name waited, told to end, for half its time: nobody asked about it
// any more, so nothing said that it is nobody's.
TEST_F(StageServerTest, GoesAtOnceIfNobodyHasRegisteredIt) {
  TrainSteps(1);
  fleet_.Forget();
  for (const char* name : {"s0", "s1"}) {
    ASSERT_FALSE(fleet_.WaitForRegistrations(1, name).empty()) << name;
  }
  const uint64_t before = ProcessLogRing()->Read(0, "", 1).newest;
  std::thread other([this] { servers_[0]->Shutdown(); });
  servers_[1]->Shutdown();
  other.join();
  int told = 0;
  for (const LogEntry& line : ProcessLogRing()->Read(before, "", 0).lines) {
    told += absl::StrContains(line.message, "it is registered with no coordinator") ? 1 : 0;
  }
  EXPECT_EQ(told, 2) << "each stage, before its time was over";
}

// A processor would ignore it, and its operator believe in other bits.
TEST(StageServerFlags, ATableOfMatrixAlgorithmsIsForCardsAlone) {
  for (const char* device : {"cpu", "reference", "simulated"}) {
    StageFlags flags;
    flags.server = {.listen = "127.0.0.1:0", .http = "127.0.0.1:0"};
    flags.device = device;
    flags.matmul_table = "/tables/h100.json";
    EXPECT_THAT(StageServer(flags).Start(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(
                             "--matmul-table=/tables/h100.json: only cards have a choice "
                             "of matrix algorithms, and --device=",
                             device, " is none"))));
  }
}

// The story: the coordinator alone found it, and named a field of its own, "stage.address".
TEST(StageServerFlags, AnAddressThatNobodyCanDialIsRefusedByTheNameOfItsFlag) {
  const auto start = [](const std::string& advertise) {
    StageFlags flags;
    flags.server = {.listen = "127.0.0.1:0", .http = "127.0.0.1:0"};
    flags.device = "reference";
    flags.advertise = advertise;
    return StageServer(flags).Start();
  };
  for (const auto& [advertise, remedy] : std::map<std::string, std::string>{
           {"box", "no port; want box:"},
           {"unix:/run/x.sock", "want"},
           {"http://box:8101", "want box:"},
           {"::1:8101", "in brackets"},
           {"0.0.0.0:8101", "nobody can dial it; give the one by which"},
           {"[::]:8101", "nobody can dial it; give the one by which"}}) {
    const absl::Status status = start(advertise);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << advertise << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(absl::StrCat("--advertise=", advertise, ": ")), HasSubstr(remedy)));
  }
  EXPECT_TRUE(start("box.example:8101").ok());
}

TEST(StageServerFlags, GraphsOfLaunchesAreForCardsAlone) {
  for (const char* device : {"cpu", "reference", "simulated"}) {
    StageFlags flags;
    flags.server = {.listen = "127.0.0.1:0", .http = "127.0.0.1:0"};
    flags.device = device;
    flags.cuda_graphs = true;
    EXPECT_THAT(StageServer(flags).Start(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(
                             "--cuda-graphs: only cards have graphs of launches, and --device=",
                             device, " is none"))));
  }
}

// A fleet that gives stage 0 its name only later.
class RefusingFleetTest : public StageServerTest {
 protected:
  void SaysSoOnceAndGoesOnAsking(const grpc::Status& refusal);
};

void RefusingFleetTest::SaysSoOnceAndGoesOnAsking(const grpc::Status& refusal) {
  AwaitRenewals();  // theirs are granted
  fleet_.Refuse(refusal);
  servers_[0].reset();
  const size_t before = fleet_.WaitForRegistrations(1, "s0").size();
  const uint64_t newest = ProcessLogRing()->Read(0, "", 1).newest;
  StartStage(0, coordinator_address_);
  const std::vector<v1::Stage> asked = fleet_.WaitForRegistrations(before + 2, "s0");
  ASSERT_GE(asked.size(), before + 2);
  EXPECT_EQ(asked[before].incarnation(), asked[before + 1].incarnation());
  EXPECT_FALSE(asked[before].identity().empty());
  bool told = false;
  for (const LogEntry& line : ProcessLogRing()->Read(newest, "", 0).lines) {
    // Behind a try that did not come so far, as a dial that was too slow, the refusal is news
    // again.
    if (absl::StrContains(line.message, "cannot register with the coordinator")) told = false;
    if (!absl::StrContains(line.message, "not registered: " + refusal.error_message())) continue;
    EXPECT_FALSE(told) << "it was said already";
    told = true;
  }
  EXPECT_TRUE(told);
  fleet_.Refuse(grpc::Status::OK);
  EXPECT_TRUE(fleet_.WaitFor(
      [&](const v1::RenewLeaseRequest& renewal) {
        return renewal.incarnation() == asked.back().incarnation();
      },
      "s0"))
      << "it takes the name once it is free";
}

// Two processes with one name registered in turn for ever, each the other's loss.
TEST_F(RefusingFleetTest, WhileAnotherHasTheName) {
  SaysSoOnceAndGoesOnAsking(
      {grpc::StatusCode::ALREADY_EXISTS, "the name s0 is held by somebody at a:1"});
}

// A certificate of somebody else, until the coordinator is started with another rule.
TEST_F(RefusingFleetTest, WhileItsCertificateIsNotForTheName) {
  SaysSoOnceAndGoesOnAsking(
      {grpc::StatusCode::PERMISSION_DENIED, "stage.name=s0: the certificate is that of stage s9"});
}

const CardProfile kCardWithAttention = {.attention = AttentionKernels{.name = "fused"}};

// The first stage computes on a made-up card.
class LostDeviceTest : public StageServerTest {
 protected:
  LostDeviceTest() {
    auto backend = std::make_unique<StagedBackend>();
    backend->BeCard(kCardWithAttention);
    backend->LoseKernels({"max_pool", "max_pool_gradient"});  // which no test here needs
    card_ = &backend->api();
    card_->run_per_query = 16;
    hooks_[0].make_backend = [backend = std::make_shared<std::unique_ptr<StagedBackend>>(
                                  std::move(backend))] { return std::move(*backend); };
    hooks_[0].on_fault = [this] { told_.set_value(); };
  }

  FakeDeviceApi* card_ = nullptr;
  std::promise<void> told_;
};

TEST_F(LostDeviceTest, FailsTheStepWithTheReasonThenTellsAndGoes) {
  TrainSteps(2);
  EXPECT_TRUE(servers_[0]->fault().ok());
  card_->fault = FakeDeviceApi::kIllegalAddress;
  grpc::ClientContext context;
  v1::RunResponse response;
  RunCommand command{.fence = FenceOf(2), .work = WorkKind::kTrain};
  command.apply = ApplyDecision{.step = 1, .learning_rate = 0.1};
  const grpc::Status status = stubs_[0]->Run(&context, WithChecksum(ToProto(command)), &response);
  EXPECT_FALSE(status.ok());
  const auto reason = AllOf(HasSubstr("device cuda:0, "), HasSubstr("cudaErrorIllegalAddress"),
                            HasSubstr("restart the stage server"));
  EXPECT_THAT(status.error_message(), reason);
  ASSERT_EQ(told_.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_THAT(std::string(servers_[0]->fault().message()), reason);
  const double before = SystemClock::Get()->MonotonicSeconds();
  servers_[0]->Shutdown();
  EXPECT_LT(SystemClock::Get()->MonotonicSeconds() - before, 10) << "there is nothing to wait for";
  EXPECT_TRUE(servers_[1]->fault().ok()) << "the neighbour goes on";
}

TEST_F(LostDeviceTest, RegistersWhatAPlanMustKnowOfItsCard) {
  const std::vector<v1::Stage> card = fleet_.WaitForRegistrations(1, "s0");
  const std::vector<v1::Stage> host = fleet_.WaitForRegistrations(1, "s1");
  ASSERT_FALSE(card.empty() || host.empty());
  ASSERT_TRUE(card[0].has_card());
  EXPECT_EQ(FromProto(card[0].card()), kCardWithAttention);
  EXPECT_FALSE(host[0].has_card());
  EXPECT_THAT(card[0].without_kernels(), testing::ElementsAre("max_pool", "max_pool_gradient"));
  EXPECT_THAT(host[0].without_kernels(), testing::IsEmpty());
}

}  // namespace
}  // namespace stagecoach
