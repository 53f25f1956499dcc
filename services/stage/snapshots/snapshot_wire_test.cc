// Snapshots from stage to stage over gRPC: what comes is what was sent, and what is wrong with a
// call is said.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/convert/convert_control.h"
#include "services/common/convert/convert_snapshot.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/grpc/message_checksum.h"
#include "services/stage/snapshots/snapshot_client.h"
#include "services/stage/snapshots/snapshot_service.h"
#include "stage/link/grpc/rpc_loop.h"
#include "stage/testing/runtime_fleet.h"

namespace stagecoach {
namespace {

constexpr char kKey[] = "key";

// A runtime's service on a port of its own.
class Served {
 public:
  explicit Served(StageRuntime* runtime) : service_(runtime) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(8 << 20);
    builder.RegisterService(service_.service());
    loop_ = std::make_unique<RpcLoop>(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    service_.Serve(loop_.get());
  }
  ~Served() {
    server_->Shutdown(std::chrono::system_clock::now());
    loop_->Stop();
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  SnapshotServiceAdapter service_;
  int port_ = 0;
  std::unique_ptr<RpcLoop> loop_;
  std::unique_ptr<grpc::Server> server_;
};

class SnapshotWireTest : public testing::Test {
 protected:
  SnapshotWireTest() : client_(grpc::InsecureChannelCredentials()) {
    client_.Serve(&loop_);
    fleet_ = std::make_unique<RuntimeFleet>(
        RuntimeFleet::Options{.stages = 2, .snapshot_peers = &client_});
    served_.resize(2);
    for (int k = 0; k < 2; ++k) Serve(k);
  }
  ~SnapshotWireTest() override {
    client_.Shutdown();
    fleet_.reset();
    served_.clear();
    loop_.Stop();
  }

  // Until the client has a connection: a dial has two seconds, a busy machine may need more, and no
  // part of a snapshot is sent twice.
  void Serve(int k) {
    served_[k] = std::make_unique<Served>(&fleet_->runtime(k));
    std::vector<std::byte> bytes(1);
    Await([&] { return !absl::IsUnavailable(client_.Get(served_[k]->address(), {}, bytes)); });
  }

  absl::Status Load(uint64_t generation, const Snapshot* snapshot = nullptr) {
    std::vector<LoadAnswer> answers(2);
    for (int k = 0; k < 2; ++k) {
      const uint64_t step = snapshot == nullptr ? 0 : snapshot->manifest.state.step;
      LoadCommand load = fleet_->LoadOf(k, generation, step);
      load.snapshot = {.key = kKey, .replica_address = served_[1 - k]->address()};
      if (snapshot != nullptr) {
        load.snapshot.manifest = FormatManifest(snapshot->manifest);
        for (size_t i = 0; i < snapshot->holders.size(); ++i) {
          load.snapshot.holders.push_back(
              {snapshot->manifest.shards[i].file, served_[snapshot->holders[i]]->address()});
        }
      }
      // As it comes over the wire.
      auto sent = FromProto(ToProto(load));
      CHECK_OK(sent.status());
      fleet_->runtime(k).Load(*std::move(sent), answers[k].callback());
    }
    absl::Status status;
    for (LoadAnswer& answer : answers) status.Update(answer.Get().status());
    return status;
  }

  std::vector<double> Train(uint64_t generation, uint64_t first, uint64_t last, uint64_t at) {
    std::vector<double> losses;
    for (uint64_t step = first; step < last; ++step) {
      RunCommand command = RuntimeFleet::Train(generation, step, step > first);
      if (step == at) command.snapshot = FormatManifest({.job = "a", .state = {.step = step}});
      std::vector<RunAnswer> answers(2);
      for (int k = 0; k < 2; ++k) fleet_->runtime(k).Run(command, answers[k].callback());
      for (RunAnswer& answer : answers) {
        const auto report = answer.Get();
        CHECK_OK(report.status());
        if (report->has_loss) losses.push_back(report->loss_sum);
      }
    }
    return losses;
  }

  RpcLoop loop_;
  SnapshotClient client_;
  std::unique_ptr<RuntimeFleet> fleet_;
  std::vector<std::unique_ptr<Served>> served_;
};

TEST_F(SnapshotWireTest, AStageFetchesWhatItLostFromItsNeighbour) {
  ASSERT_TRUE(Load(1).ok());
  const std::vector<double> golden = Train(1, 0, 5, 2);
  const auto held = [this] {
    std::vector<std::vector<HeldShard>> told;
    for (int k = 0; k < 2; ++k) {
      auto listed = FromProto(ToProto(fleet_->runtime(k).ListSnapshots("a", kKey)));
      CHECK_OK(listed.status());
      told.push_back(*std::move(listed));
    }
    return told;
  };
  Await([&] { return held()[0].size() == 2 && held()[1].size() == 2; });
  served_[1].reset();
  fleet_->Restart(1);
  Serve(1);
  const std::optional<Snapshot> snapshot = NewestSnapshot(held(), 7, 1, 100);
  ASSERT_TRUE(snapshot.has_value());
  const absl::Status loaded = Load(2, &*snapshot);
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(Train(2, 2, 5, 100), std::vector<double>(golden.begin() + 2, golden.end()));
}

TEST_F(SnapshotWireTest, SaysWhatIsWrongWithACall) {
  ASSERT_TRUE(Load(1).ok());
  std::vector<std::byte> bytes(10);
  const SnapshotRange range{.job = "a", .key = kKey, .step = 3, .file = "x"};
  EXPECT_TRUE(absl::IsNotFound(client_.Get(served_[0]->address(), range, bytes)));
  SnapshotPart part{.fence = RuntimeFleet::FenceOf(7, 0), .key = kKey};
  part.shard = {.step = 0, .layers = {{0, 2}}, .manifest = "m"};
  part.shard.info = {.file = ShardFileName({{0, 2}}), .bytes = 10};
  part.bytes = bytes;
  EXPECT_TRUE(absl::IsAborted(client_.Put(served_[0]->address(), part)));
  part.shard.info.file = "../x";
  EXPECT_TRUE(absl::IsInvalidArgument(client_.Put(served_[0]->address(), part)));

  const auto stub = v1::SnapshotService::NewStub(
      grpc::CreateChannel(served_[0]->address(), grpc::InsecureChannelCredentials()));
  const auto ask = [&stub](auto method, const auto& request, auto response) {
    grpc::ClientContext context;
    return FromGrpc((stub.get()->*method)(&context, request, &response));
  };
  v1::PutSnapshotPartRequest put;
  put.set_data("abc");
  put.set_crc32c(1);
  EXPECT_TRUE(absl::IsDataLoss(
      ask(&v1::SnapshotService::Stub::PutSnapshotPart, put, v1::PutSnapshotPartResponse())));
  // Seen: a bit that flipped in what was asked for ended the job, as an error of the loading
  // stage's own.
  v1::GetSnapshotPartRequest get;
  get.set_checksum(1);
  EXPECT_TRUE(absl::IsUnavailable(
      ask(&v1::SnapshotService::Stub::GetSnapshotPart, get, v1::GetSnapshotPartResponse())));
  for (const int bytes_asked : {-1, (1 << 20) + 1}) {
    get.set_bytes(bytes_asked);
    SetChecksum(&get);
    EXPECT_TRUE(absl::IsInvalidArgument(
        ask(&v1::SnapshotService::Stub::GetSnapshotPart, get, v1::GetSnapshotPartResponse())));
  }
}

// Refuses, and knows over which connection it was asked.
class Refusing final : public v1::SnapshotService::Service {
 public:
  grpc::Status GetSnapshotPart(grpc::ServerContext* context, const v1::GetSnapshotPartRequest*,
                               v1::GetSnapshotPartResponse*) override {
    from.push_back(context->peer());
    return error;
  }
  grpc::Status error;
  std::vector<std::string> from;  // host and port
};

// The certificate of the connection is refused; there may be another by the next call.
TEST_F(SnapshotWireTest, ANeighbourThatRefusedIsAskedOverANewConnection) {
  Refusing neighbour;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&neighbour);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::byte> bytes(10);
  for (const grpc::StatusCode code :
       {grpc::StatusCode::NOT_FOUND, grpc::StatusCode::PERMISSION_DENIED,
        grpc::StatusCode::UNAUTHENTICATED, grpc::StatusCode::NOT_FOUND}) {
    neighbour.error = grpc::Status(code, "no");
    // Until it has come: a dial may take too long.
    const size_t before = neighbour.from.size();
    Await([&] {
      EXPECT_FALSE(client_.Get(absl::StrCat("127.0.0.1:", port), {}, bytes).ok());
      return neighbour.from.size() > before;
    });
  }
  ASSERT_EQ(neighbour.from.size(), 4u);
  EXPECT_EQ(neighbour.from[0], neighbour.from[1]);
  EXPECT_NE(neighbour.from[1], neighbour.from[2]);
  EXPECT_NE(neighbour.from[2], neighbour.from[3]);
}

TEST_F(SnapshotWireTest, AClientThatDoesNotServeRefuses) {
  std::vector<std::byte> bytes(10);
  SnapshotClient other(grpc::InsecureChannelCredentials());
  EXPECT_TRUE(absl::IsUnavailable(other.Get(served_[0]->address(), {}, bytes)));
  client_.Shutdown();
  EXPECT_TRUE(absl::IsCancelled(client_.Get(served_[0]->address(), {}, bytes)));
}

}  // namespace
}  // namespace stagecoach
