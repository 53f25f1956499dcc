// What becomes of a link whose peer does not keep to the protocol, as any gRPC client may not.
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "stage/link/grpc/grpc_link_testing.h"
#include "stage/link/grpc/messages/checksum_testing.h"
#include "stage/link/grpc/waiting_streams.h"
#include "stagecoach/v1/link.grpc.pb.h"

namespace stagecoach {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// A peer that says something else than we do, with the generated classes.
class StrangePeerTest : public GrpcLinkTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::ExchangeRequest, v1::ExchangeResponse>;

  void Open() {
    Start();
    down_ = server_->connector.Accept(boundary_, "", *allocator_, kAnyMessageBytes);
    Hear();
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::LinkService::NewStub(channel_);
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Exchange(&context_);
  }

  void SayHello() {
    SendHello();
    v1::ExchangeResponse response;
    ASSERT_TRUE(stream_->Read(&response));
    EXPECT_EQ(response.hello().capacity(), 4u);
  }

  void SendHello() {
    v1::ExchangeRequest request;
    v1::Hello& hello = *request.mutable_hello();
    hello.mutable_fence()->set_job("job-a");
    hello.mutable_fence()->set_term(1);
    hello.mutable_fence()->set_generation(2);
    hello.set_protocol(1);
    hello.set_capacity(4);
    hello.set_crc32c(ChecksumOf(hello));
    ASSERT_TRUE(stream_->Write(request));
  }

  v1::ExchangeRequest FrameRequest(uint64_t generation = 2) {
    v1::ExchangeRequest request;
    v1::Frame& frame = *request.mutable_frame();
    frame.set_term(1);
    frame.set_generation(generation);
    frame.set_kind(v1::TENSOR_KIND_ACTIVATION);
    frame.set_tensor_count(1);
    frame.set_dtype(4);
    frame.add_shape(9);
    frame.set_crc32c(0xe3069283);
    frame.set_head_crc32c(ChecksumOf(frame));
    frame.set_data("123456789");
    return request;
  }

  void SendCredit(uint64_t taken, uint32_t round) {
    v1::ExchangeRequest request;
    request.mutable_credit()->set_taken(taken);
    request.mutable_credit()->set_round(round);
    request.mutable_credit()->set_crc32c(ChecksumOf(request.credit()));
    ASSERT_TRUE(stream_->Write(request));
  }

  void SendRepeat(uint32_t round, uint64_t next) {
    v1::ExchangeRequest request;
    request.mutable_repeat()->set_round(round);
    request.mutable_repeat()->set_next(next);
    request.mutable_repeat()->set_crc32c(ChecksumOf(request.repeat()));
    ASSERT_TRUE(stream_->Write(request));
  }

  v1::ExchangeRequest DamagedFrame() {
    v1::ExchangeRequest request = FrameRequest();
    request.mutable_frame()->set_data("123456788");
    return request;
  }

  // What comes next, for people.
  std::string Read() {
    v1::ExchangeResponse response;
    if (!stream_->Read(&response)) return "the end";
    if (response.has_frame()) return absl::StrCat("frame ", response.frame().micro_batch());
    if (response.has_repeat()) {
      return absl::StrCat("repeat ", response.repeat().round(), " from ", response.repeat().next());
    }
    return absl::StrCat("credit ", response.credit().taken(), " round ", response.credit().round());
  }

  grpc::Status End() {
    v1::ExchangeResponse response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }

  // The reason reaches the peer unless a write of ours was still on its way when the link closed:
  // then the stream is cancelled, because a peer that does not read could hold it open for ever.
  void ExpectEnd(grpc::StatusCode reason) {
    EXPECT_THAT(End().error_code(), AnyOf(reason, grpc::StatusCode::CANCELLED));
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::LinkService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

TEST_F(StrangePeerTest, AnyProtobufPeerCanSpeak) {
  Open();
  SayHello();
  ASSERT_TRUE(stream_->Write(FrameRequest()));
  const std::optional<TensorMessage> message = Receive(*down_);
  ASSERT_TRUE(message.has_value()) << down_->status();
  EXPECT_EQ(std::memcmp(message->tensors[0].raw(), "123456789", 9), 0);
  v1::ExchangeResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.credit().taken(), 1u);
  context_.TryCancel();
  End();
}

TEST_F(StrangePeerTest, WhatArrivesDamagedIsAskedForAgain) {
  Open();
  SayHello();
  ASSERT_TRUE(stream_->Write(FrameRequest()));
  ASSERT_TRUE(Receive(*down_).has_value());
  EXPECT_EQ(Read(), "credit 1 round 0");
  ASSERT_TRUE(stream_->Write(DamagedFrame()));
  EXPECT_EQ(Read(), "repeat 1 from 1");
  ASSERT_TRUE(stream_->Write(FrameRequest()));  // on its way when it was asked
  SendCredit(0, 1);
  v1::ExchangeRequest again = FrameRequest();
  again.mutable_frame()->clear_head_crc32c();
  again.mutable_frame()->clear_data();
  again.mutable_frame()->set_micro_batch(5);
  again.mutable_frame()->set_head_crc32c(ChecksumOf(again.frame()));
  again.mutable_frame()->set_data("123456789");
  ASSERT_TRUE(stream_->Write(again));
  const std::optional<TensorMessage> message = Receive(*down_);
  ASSERT_TRUE(message.has_value()) << down_->status();
  EXPECT_EQ(message->micro_batch, MicroBatchId(5)) << "what came in front of the answer counts not";
  EXPECT_EQ(Read(), "credit 2 round 0");
  context_.TryCancel();
  End();
}

TEST_F(StrangePeerTest, WhatIsAlwaysDamagedEndsTheStreamWithDataLoss) {
  Open();
  SayHello();
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(stream_->Write(DamagedFrame()));
    EXPECT_EQ(Read(), absl::StrCat("repeat ", round, " from 0"));
    SendCredit(0, static_cast<uint32_t>(round));
  }
  ASSERT_TRUE(stream_->Write(DamagedFrame()));
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  EXPECT_THAT(std::string(down_->status().message()),
              HasSubstr("step 0 micro-batch 0 tensor 0 offset 0: 9 bytes have CRC-32C"));
  EXPECT_THAT(std::string(down_->status().message()), HasSubstr("asked for again 3 times"));
  ExpectEnd(grpc::StatusCode::DATA_LOSS);
}

TEST_F(StrangePeerTest, SendsAgainWhatIsAskedForAndSaysSoFirst) {
  Open();
  SayHello();
  for (const int micro_batch : {0, 1}) {
    ASSERT_TRUE(down_->TrySend(Message(MessageKind::kGradient, micro_batch, 10)));
    EXPECT_EQ(Read(), absl::StrCat("frame ", micro_batch));
  }
  SendRepeat(1, 0);
  EXPECT_EQ(Read(), "credit 0 round 1");
  EXPECT_EQ(Read(), "frame 0");
  EXPECT_EQ(Read(), "frame 1");
  SendRepeat(1, 0);  // said again, as the answer to it was late
  EXPECT_EQ(Read(), "credit 0 round 1");
  SendRepeat(2, 1);
  EXPECT_EQ(Read(), "credit 0 round 2");
  EXPECT_EQ(Read(), "frame 1");
  EXPECT_EQ(down_->statistics().sent_messages, 2u);
  context_.TryCancel();
  End();
}

// What was damaged may have been our own repeat, which nobody would answer.
TEST_F(StrangePeerTest, SaysItsRepeatAgainWhenThePeerAsks) {
  Open();
  SayHello();
  ASSERT_TRUE(stream_->Write(DamagedFrame()));
  EXPECT_EQ(Read(), "repeat 1 from 0");
  SendRepeat(1, 0);
  EXPECT_EQ(Read(), "credit 0 round 1");
  EXPECT_EQ(Read(), "repeat 1 from 0");
  SendCredit(0, 1);
  SendRepeat(2, 0);
  EXPECT_EQ(Read(), "credit 0 round 2") << "and nothing behind it:";
  SendRepeat(2, 0);
  EXPECT_EQ(Read(), "credit 0 round 2");
  context_.TryCancel();
  End();
}

TEST_F(StrangePeerTest, MoreThanItsCreditEndsTheStream) {
  Open();
  SayHello();
  for (int i = 0; i < 5 && stream_->Write(FrameRequest()); ++i) {
  }
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  ExpectEnd(grpc::StatusCode::DATA_LOSS);
}

TEST_F(StrangePeerTest, CreditForNothingEndsTheStream) {
  Open();
  SayHello();
  SendCredit(1, 0);
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  End();
}

TEST_F(StrangePeerTest, ARepeatOfWhatWasNotSentEndsTheStream) {
  Open();
  SayHello();
  SendRepeat(1, 1);
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  EXPECT_THAT(std::string(down_->status().message()), HasSubstr("peer wants message 1 again"));
  End();
}

TEST_F(StrangePeerTest, AnAnswerToWhatNobodyAskedEndsTheStream) {
  Open();
  SayHello();
  SendCredit(0, 1);
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  EXPECT_THAT(std::string(down_->status().message()), HasSubstr("peer answers repeat 1 of 0"));
  End();
}

TEST_F(StrangePeerTest, OneThatAsksForTheSameForEverEndsTheStream) {
  Open();
  SayHello();
  ASSERT_TRUE(down_->TrySend(Message(MessageKind::kGradient, 0, 10)));
  EXPECT_EQ(Read(), "frame 0");
  for (uint32_t round = 1; round <= 7; ++round) SendRepeat(round, 0);
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  EXPECT_THAT(std::string(down_->status().message()), HasSubstr("again and again"));
  End();
}

// A bit of the micro-batch's number made its activation another micro-batch's.
TEST_F(StrangePeerTest, AFlippedBitOfAHeadIsDamage) {
  Open();
  SayHello();
  v1::ExchangeRequest request = FrameRequest();
  request.mutable_frame()->set_micro_batch(1);
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_EQ(Read(), "repeat 1 from 0");
  EXPECT_TRUE(down_->status().ok()) << down_->status();
  context_.TryCancel();
  End();
}

// To the coordinator INVALID_ARGUMENT is the job's own fault, and ends it for good: one flipped bit
// did.
TEST_F(StrangePeerTest, AFrameWhoseHeadMakesNoSenseIsTheLinksFault) {
  Open();
  SayHello();
  v1::ExchangeRequest request = FrameRequest();
  v1::Frame& frame = *request.mutable_frame();
  frame.clear_head_crc32c();
  frame.clear_data();
  frame.set_dtype(4 ^ 64);
  frame.set_head_crc32c(ChecksumOf(frame));
  frame.set_data("123456789");
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kDataLoss) << down_->status();
  ExpectEnd(grpc::StatusCode::DATA_LOSS);
}

TEST_F(StrangePeerTest, OneThatLeavesBeforeItsHelloIsForgotten) {
  Open();
  ASSERT_TRUE(stream_->WritesDone());
  EXPECT_EQ(End().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(down_->status().ok()) << "the boundary still waits for its peer";
  up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
  Hear();
  ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 100)));
  EXPECT_TRUE(Receive(*down_).has_value());
}

// 960 of them stayed open for as long as their peer liked.
TEST_F(StrangePeerTest, OneThatSaysNothingIsSentAway) {
  options_.hello_deadline_seconds = 0.2;
  Open();
  const grpc::Status status = End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("no hello within 0.2 s"));
  EXPECT_TRUE(down_->status().ok()) << "the boundary still waits for its peer";
  // That is all the time that the peer's own hello has: where it was late, the peer dials again.
  std::optional<TensorMessage> message;
  do {
    up_ = dialler_->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
    Hear();
    static_cast<void>(up_->TrySend(Message(MessageKind::kActivation, 0, 100)));
    bell_.WaitFor([&] {
      message = down_->TryReceive();
      return message.has_value() || !up_->status().ok() || !down_->status().ok();
    });
  } while (!message.has_value() && absl::IsDeadlineExceeded(up_->status()) && down_->status().ok());
  EXPECT_TRUE(message.has_value()) << up_->status() << down_->status();
}

// Whoever had a stage's certificate could fill all places of streams whose boundary nobody has
// accepted yet, for a day.
TEST_F(StrangePeerTest, OneHostDoesNotGetThePlacesOfAll) {
  Open();
  SayHello();
  struct Opened {
    grpc::ClientContext context;
    std::unique_ptr<Stream> stream;
  };
  std::vector<std::unique_ptr<Opened>> all;
  for (size_t i = 0; i <= WaitingStreams::kEarly.of_peer; ++i) {
    auto opened = std::make_unique<Opened>();
    opened->context.set_deadline(std::chrono::system_clock::now() + kPatience);
    opened->stream = stub_->Exchange(&opened->context);
    v1::ExchangeRequest request;
    v1::Hello& hello = *request.mutable_hello();
    hello.mutable_fence()->set_job(absl::StrCat("never-", i));
    hello.set_protocol(1);
    hello.set_capacity(1);
    hello.set_crc32c(ChecksumOf(hello));
    ASSERT_TRUE(opened->stream->Write(request));
    all.push_back(std::move(opened));
  }
  // One of them, whichever was read last, has no place, and it is no fault of its job.
  int refused = 0;
  std::string reason;
  std::vector<std::thread> readers;
  std::mutex mutex;
  std::condition_variable changed;
  for (const auto& opened : all) {
    readers.emplace_back([&, opened = opened.get()] {
      v1::ExchangeResponse response;
      while (opened->stream->Read(&response)) {
      }
      const grpc::Status status = opened->stream->Finish();
      std::lock_guard<std::mutex> lock(mutex);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return;
      ++refused;
      reason = status.error_message();
      changed.notify_all();
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return refused > 0; }));
  }
  for (const auto& opened : all) opened->context.TryCancel();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(
      reason,
      HasSubstr("32 of this peer, 32 of ipv4:127.0.0.1 and 32 in all; most are 32, 64 and 128"));
  context_.TryCancel();
  End();
}

TEST_F(StrangePeerTest, OneThatLeavesAfterItsHelloEndsTheLink) {
  Open();
  SayHello();
  ASSERT_TRUE(stream_->WritesDone());
  EXPECT_EQ(WaitClosed(*down_).code(), absl::StatusCode::kUnavailable) << down_->status();
  End();
}

TEST_F(StrangePeerTest, AFrameInPlaceOfTheHelloIsRefused) {
  Open();
  ASSERT_TRUE(stream_->Write(FrameRequest()));
  EXPECT_EQ(End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(down_->status().ok()) << "the boundary still waits for its peer";
}

TEST_F(StrangePeerTest, AnotherProtocolVersionIsRefusedByName) {
  Open();
  v1::ExchangeRequest request;
  request.mutable_hello()->set_protocol(2);
  request.mutable_hello()->set_capacity(1);
  ASSERT_TRUE(stream_->Write(request));
  const grpc::Status status = End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("protocol 2"));
}

TEST_F(StrangePeerTest, StaleFramesAreCountedAndCredited) {
  Open();
  SayHello();
  ASSERT_TRUE(stream_->Write(FrameRequest(1)));
  v1::ExchangeResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.credit().taken(), 1u);
  EXPECT_EQ(down_->statistics().stale_frames, 1u);
  EXPECT_FALSE(down_->TryReceive().has_value());
  context_.TryCancel();
  End();
}

}  // namespace
}  // namespace stagecoach
