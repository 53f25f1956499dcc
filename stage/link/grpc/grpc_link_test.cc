// Links over loopback: order, credit, sizes, and every way in which one ends.
#include <gmock/gmock.h>

#include "stage/link/grpc/grpc_link_testing.h"
#include "stagecoach/v1/link.grpc.pb.h"
#include "stagecoach/v1/stage.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

TEST_F(GrpcLinkTest, CarriesBothDirectionsInOrder) {
  Connect();
  constexpr int kMessages = 40;
  constexpr int64_t kElements = 200'000;  // 800 kB: four chunks
  for (int i = 0, sent_down = 0, sent_up = 0; i < kMessages; ++i) {
    ASSERT_TRUE(bell_.WaitFor([&] {
      if (sent_down == i && up_->TrySend(Message(MessageKind::kActivation, i, kElements))) {
        ++sent_down;
      }
      if (sent_up == i && down_->TrySend(Message(MessageKind::kGradient, i, kElements))) ++sent_up;
      return sent_down > i && sent_up > i;
    })) << up_->status()
        << down_->status();
    for (Link* link : {down_.get(), up_.get()}) {
      const std::optional<TensorMessage> message = Receive(*link);
      ASSERT_TRUE(message.has_value()) << link->status();
      EXPECT_EQ(message->micro_batch.value, i);
      EXPECT_EQ(message->fence, (Fence{"job-a", 1, 2, 7, 1}));
      EXPECT_GT(message->sent_unix_nanos, 0);
      EXPECT_TRUE(Holds(*message, kElements));
    }
  }
  EXPECT_EQ(up_->statistics().sent_bytes, kMessages * kElements * 4u);
  EXPECT_EQ(up_->statistics().received_messages, static_cast<uint64_t>(kMessages));
  EXPECT_EQ(server_->connector.upstream_totals().received_bytes.load(), kMessages * kElements * 4u);
  EXPECT_EQ(dialler_->downstream_totals().edges.load(), 1u);
  EXPECT_EQ(dialler_->downstream_totals().reconnects.load(), 0u);
}

// Protects the traces: every message is told once where it was sent and once where it arrived.
TEST_F(GrpcLinkTest, TellsWhatPassed) {
  std::mutex mutex;
  std::vector<LinkTransfer> told;
  options_.on_transfer = [&](const LinkTransfer& transfer) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      told.push_back(transfer);
    }
    bell_.Rope()();
  };
  Connect();
  constexpr int64_t kElements = 200'000;  // four chunks
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 3, kElements)));
  ASSERT_TRUE(Receive(*down_).has_value());
  ASSERT_TRUE(down_->TrySend(Message(MessageKind::kGradient, 4, kElements)));
  ASSERT_TRUE(Receive(*up_).has_value());
  ASSERT_TRUE(bell_.WaitFor([&] {
    std::lock_guard<std::mutex> lock(mutex);
    return told.size() == 4;
  }));
  // A link that is closed tells nothing more, so the test's own variables may go.
  up_->Close(absl::CancelledError("end"));
  down_->Close(absl::CancelledError("end"));
  int sent = 0;
  for (const LinkTransfer& transfer : told) {
    const bool activation = transfer.kind == MessageKind::kActivation;
    EXPECT_EQ(transfer.upstream_peer, transfer.sent != activation);
    EXPECT_EQ(transfer.micro_batch.value, activation ? 3 : 4);
    EXPECT_EQ(transfer.fence, (Fence{"job-a", 1, 2, 7, 1}));
    EXPECT_EQ(transfer.bytes, kElements * 4);
    EXPECT_GT(transfer.begin_unix_nanos, 0);
    EXPECT_GE(transfer.end_unix_nanos, transfer.begin_unix_nanos);
    if (transfer.sent) ++sent;
  }
  EXPECT_EQ(sent, 2);
}

TEST_F(GrpcLinkTest, CarriesTuplesScalarsAndEmptyTensors) {
  Connect();
  TensorMessage message = Message(MessageKind::kActivation, 0, 10);
  message.tensors.push_back(*MakeTensor(*allocator_, MemoryKind::kActivations, DType::kI64, {}));
  *message.tensors.back().data<int64_t>() = -5;
  message.tensors.push_back(*MakeTensor(*allocator_, MemoryKind::kActivations, DType::kU8, {0, 7}));
  ASSERT_TRUE(up_->TrySend(std::move(message)));
  const std::optional<TensorMessage> received = Receive(*down_);
  ASSERT_TRUE(received.has_value()) << down_->status();
  ASSERT_EQ(received->tensors.size(), 3u);
  EXPECT_EQ(*received->tensors[1].data<int64_t>(), -5);
  EXPECT_EQ(received->tensors[2].shape(), Shape({0, 7}));
}

TEST_F(GrpcLinkTest, CarriesLargeTensors) {
  Connect();
  constexpr int64_t kElements = 4 << 20;  // 16 MiB
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, i, kElements)));
  }
  for (int i = 0; i < 3; ++i) {
    const std::optional<TensorMessage> message = Receive(*down_);
    ASSERT_TRUE(message.has_value()) << down_->status();
    EXPECT_TRUE(Holds(*message, kElements));
  }
}

TEST_F(GrpcLinkTest, RefusesASendWhenTheReceiverTakesNothing) {
  options_.link.capacity_messages = 2;
  Connect();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 1, 1000)));
  TensorMessage third = Message(MessageKind::kActivation, 2, 1000);
  EXPECT_FALSE(up_->TrySend(std::move(third)));
  ASSERT_EQ(third.tensors.size(), 1u) << "a refused message stays with its sender";
  EXPECT_EQ(up_->statistics().inflight_messages, 2u);
  // Arrival is not enough: room comes back when the executor takes a message.
  const auto& arrived = server_->connector.upstream_totals().received_bytes;
  ASSERT_TRUE(bell_.WaitFor([&] { return arrived.load() == 8000; }));
  EXPECT_FALSE(up_->TrySend(std::move(third)));
  ASSERT_TRUE(Receive(*down_).has_value());
  EXPECT_TRUE(bell_.WaitFor([&] { return up_->TrySend(std::move(third)); }));
  EXPECT_EQ(Receive(*down_)->micro_batch.value, 1);
  EXPECT_EQ(Receive(*down_)->micro_batch.value, 2);
}

TEST_F(GrpcLinkTest, TakesSendsBeforeThePeerIsThere) {
  Start();
  up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  down_ = server_->connector.Accept(boundary_, "", *allocator_, kAnyMessageBytes);
  Hear();
  const std::optional<TensorMessage> message = Receive(*down_);
  ASSERT_TRUE(message.has_value()) << down_->status();
  EXPECT_TRUE(Holds(*message, 1000));
}

// Each end has its own limit, of what comes to it.
TEST_F(GrpcLinkTest, AMessageLargerThanAnEndMayBeSentClosesTheLink) {
  Start();
  down_ = server_->connector.Accept(boundary_, "", *allocator_, 4000);
  up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, 8000);
  Hear();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  ASSERT_TRUE(Receive(*down_).has_value()) << down_->status();
  ASSERT_TRUE(down_->TrySend(Message(MessageKind::kGradient, 0, 2000)));
  ASSERT_TRUE(Receive(*up_).has_value()) << up_->status();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 1, 1001)));
  EXPECT_FALSE(Receive(*down_).has_value());
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << "as any wrong frame";
  EXPECT_THAT(std::string(down_->status().message()), HasSubstr("none of more than 4000"));

  boundary_.generation = 3;
  down_ = server_->connector.Accept(boundary_, "", *allocator_, 4000);
  up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, 8000);
  Hear();
  ASSERT_TRUE(down_->TrySend(Message(MessageKind::kGradient, 0, 2001)));
  EXPECT_FALSE(Receive(*up_).has_value());
  EXPECT_THAT(std::string(WaitClosed(*up_).message()), HasSubstr("none of more than 8000"));
}

TEST_F(GrpcLinkTest, MemoryComesBackAfterTransfers) {
  Connect();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        bell_.WaitFor([&] { return up_->TrySend(Message(MessageKind::kActivation, i, 300'000)); }));
    ASSERT_TRUE(Receive(*down_).has_value());
  }
  up_.reset();
  down_.reset();
  dialler_.reset();
  server_.reset();
  EXPECT_TRUE(AllMemoryComesBack()) << "gRPC lets go of every aliasing slice";
}

TEST_F(GrpcLinkTest, TellsThePeerThatTheAcceptingEndClosed) {
  Connect();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  ASSERT_TRUE(Receive(*down_).has_value());
  down_->Close(absl::FailedPreconditionError("loss is not finite"));
  EXPECT_EQ(down_->status().code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status status = WaitClosed(*up_);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cells 0 -> 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(server_->address()));
}

TEST_F(GrpcLinkTest, TellsThePeerThatTheDiallingEndClosed) {
  Connect();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  ASSERT_TRUE(Receive(*down_).has_value());
  up_->Close(absl::CancelledError("aborted"));
  const absl::Status status = WaitClosed(*down_);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cells 0 -> 1"));
}

TEST_F(GrpcLinkTest, KeepsTheFirstReason) {
  Connect();
  up_->Close(absl::AbortedError("first"));
  up_->Close(absl::InternalError("second"));
  EXPECT_EQ(up_->status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(up_->TrySend(Message(MessageKind::kActivation, 0, 10)));
}

TEST_F(GrpcLinkTest, ClosesInTheMiddleOfATransfer) {
  for (const bool upstream_closes : {true, false}) {
    ++boundary_.generation;
    Connect();
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, i, 4 << 20)));
    }
    ASSERT_TRUE(Receive(*down_).has_value()) << down_->status();
    Link& closing = upstream_closes ? *up_ : *down_;
    Link& other = upstream_closes ? *down_ : *up_;
    closing.Close(absl::AbortedError("stop"));
    EXPECT_EQ(WaitClosed(other).code(), absl::StatusCode::kUnavailable);
    up_.reset();
    down_.reset();
    dialler_.reset();
    server_.reset();
    EXPECT_TRUE(AllMemoryComesBack());
  }
}

TEST_F(GrpcLinkTest, NoticesThatThePeersProcessIsGone) {
  Connect();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 1000)));
  ASSERT_TRUE(Receive(*down_).has_value());
  dialler_->Shutdown();
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(up_->status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcLinkTest, RefusesAnOlderIncarnation) {
  Connect();
  BoundaryId older = boundary_;
  older.generation = 1;
  std::unique_ptr<Link> late =
      dialler_->Dial(server_->address(), older, *allocator_, kAnyMessageBytes);
  late->SetReadyCallback(bell_.Rope());
  const absl::Status status = WaitClosed(*late);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("generation 2"));
  EXPECT_TRUE(up_->status().ok()) << "the current stream is not disturbed";
}

TEST_F(GrpcLinkTest, RefusesASecondStreamForABoundary) {
  Connect();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 10)));
  ASSERT_TRUE(Receive(*down_).has_value());
  std::unique_ptr<Link> twin =
      dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
  twin->SetReadyCallback(bell_.Rope());
  EXPECT_EQ(WaitClosed(*twin).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(up_->status().ok());
}

TEST_F(GrpcLinkTest, GivesUpWhenNobodyAccepts) {
  options_.connect_deadline_seconds = 0.2;
  Start();
  up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  EXPECT_EQ(WaitClosed(*up_).code(), absl::StatusCode::kDeadlineExceeded) << up_->status();
}

TEST_F(GrpcLinkTest, GivesUpWhenNobodyDials) {
  options_.connect_deadline_seconds = 0.2;
  Start();
  down_ = server_->connector.Accept(boundary_, "", *allocator_, kAnyMessageBytes);
  Hear();
  const absl::Status status = WaitClosed(*down_);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cells 0 -> 1"));
}

TEST_F(GrpcLinkTest, GivesUpWhenNobodyListens) {
  options_.connect_deadline_seconds = 0.2;
  Start();
  up_ = dialler_->Dial("127.0.0.1:1", boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  EXPECT_EQ(WaitClosed(*up_).code(), absl::StatusCode::kDeadlineExceeded) << up_->status();
}

// One flipped bit in the name of the method, and gRPC answered UNIMPLEMENTED in the stage's place:
// the job ended for good.
TEST_F(GrpcLinkTest, AnAnswerThatGrpcMakesUpIsABrokenLink) {
  Start();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  v1::StageService::Service another;  // no links
  builder.RegisterService(&another);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  up_ = dialler_->Dial(absl::StrCat("127.0.0.1:", port), boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  const absl::Status status = WaitClosed(*up_);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("UNIMPLEMENTED"));
}

class Refuses final : public v1::LinkService::Service {
 public:
  grpc::Status Exchange(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ExchangeResponse, v1::ExchangeRequest>*) override {
    return grpc::Status(code, text);
  }
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string text = "no";
};

// Of a length with a flipped bit gRPC says RESOURCE_EXHAUSTED, of a certificate of another role
// PERMISSION_DENIED: the coordinator took the one for the fault of the stage, the other, of a load,
// for the job's.
TEST_F(GrpcLinkTest, ARefusalThatIsNoFaultOfTheJobIsABrokenLink) {
  Start();
  Refuses refuses;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&refuses);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  for (const grpc::StatusCode code :
       {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::RESOURCE_EXHAUSTED,
        grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED}) {
    refuses.code = code;
    up_ =
        dialler_->Dial(absl::StrCat("127.0.0.1:", port), boundary_, *allocator_, kAnyMessageBytes);
    Hear();
    EXPECT_TRUE(absl::IsUnavailable(WaitClosed(*up_))) << up_->status();
  }
}

// The story: of more than 8 KiB gRPC said "received initial metadata size exceeds limit" in their
// place.
TEST_F(GrpcLinkTest, ALongReasonComesAsItIs) {
  Start();
  Refuses refuses;
  refuses.code = grpc::StatusCode::ABORTED;
  refuses.text = std::string(20'000, 'a');
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&refuses);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  up_ = dialler_->Dial(absl::StrCat("127.0.0.1:", port), boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  const absl::Status closed = WaitClosed(*up_);
  EXPECT_EQ(closed.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(closed.message()), HasSubstr(refuses.text));
}

TEST_F(GrpcLinkTest, LinksMayBeDestroyedAtAnyTime) {
  Start();
  for (int round = 0; round < 30; ++round) {
    ++boundary_.generation;
    up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
    down_ = server_->connector.Accept(boundary_, "", *allocator_, kAnyMessageBytes);
    for (int i = 0; i < round % 4; ++i) {
      ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, i, 100'000)));
    }
    if (round % 2 == 0) {
      up_.reset();
    } else {
      down_.reset();
    }
  }
}

}  // namespace
}  // namespace stagecoach
