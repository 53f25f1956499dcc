// The codec against whole messages of protobuf's generated classes, and against bytes that no peer
// should send.
#include "stage/link/grpc/messages/frame_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/escaping.h"
#include "base/files/hash.h"
#include "stage/link/grpc/messages/checksum_testing.h"
#include "stagecoach/v1/link.pb.h"

namespace stagecoach {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

absl::StatusOr<LinkMessage> Decode(const std::string& text) {
  const std::span<const std::byte> piece = Bytes(text);
  return DecodeLinkMessage({&piece, 1});
}

LinkFrame SomeFrame() {
  LinkFrame frame;
  frame.term = 3;
  frame.generation = 1ull << 40;
  frame.step = 17;
  frame.attempt = 2;
  frame.kind = MessageKind::kGradient;
  frame.micro_batch = 300;
  frame.tensor_index = 1;
  frame.tensor_count = 2;
  frame.dtype = DType::kF32;
  frame.shape = {2, 200};
  frame.offset = 64;
  frame.sent_unix_nanos = 1760000000123456789;
  frame.data_bytes = 300;
  return frame;
}

std::string Payload(size_t bytes) {
  std::string data;
  for (size_t i = 0; i < bytes; ++i) data.push_back(static_cast<char>(i * 37));
  return data;
}

v1::Frame Generated(const LinkFrame& frame, const std::string& data) {
  v1::Frame proto;
  proto.set_term(frame.term);
  proto.set_generation(frame.generation);
  proto.set_step(frame.step);
  proto.set_attempt(frame.attempt);
  proto.set_kind(static_cast<v1::TensorKind>(frame.kind));
  proto.set_micro_batch(frame.micro_batch);
  proto.set_tensor_index(frame.tensor_index);
  proto.set_tensor_count(frame.tensor_count);
  proto.set_dtype(static_cast<uint32_t>(frame.dtype));
  for (const int64_t extent : frame.shape) proto.add_shape(extent);
  proto.set_offset(frame.offset);
  proto.set_sent_unix_nanos(frame.sent_unix_nanos);
  proto.set_crc32c(frame.crc32c);
  proto.set_head_crc32c(ChecksumOf(proto));
  proto.set_data(data);
  return proto;
}

TEST(FrameCodec, WritesWhatTheGeneratedClassWrites) {
  const std::string data = Payload(300);
  LinkFrame frame = SomeFrame();
  frame.crc32c = Crc32c(Bytes(data));
  v1::ExchangeRequest down;
  *down.mutable_frame() = Generated(frame, data);
  v1::ExchangeResponse up;
  *up.mutable_frame() = Generated(frame, data);
  EXPECT_EQ(EncodeFrameHead(frame) + data, down.SerializeAsString());
  EXPECT_EQ(EncodeFrameHead(frame) + data, up.SerializeAsString());
}

TEST(FrameCodec, WritesFieldsOfZeroAndEmptyTensorsAsProto3Does) {
  LinkFrame frame;
  frame.tensor_count = 1;
  frame.shape = {0, 4};
  v1::ExchangeRequest proto;
  *proto.mutable_frame() = Generated(frame, "");
  EXPECT_EQ(EncodeFrameHead(frame), proto.SerializeAsString());
}

TEST(FrameCodec, TheTestVectorOfTheFormatDocumentHolds) {
  LinkFrame frame;
  frame.term = 1;
  frame.generation = 2;
  frame.micro_batch = 3;
  frame.tensor_count = 1;
  frame.dtype = DType::kU8;
  frame.shape = {9};
  frame.crc32c = 0xe3069283;
  frame.data_bytes = 9;
  const std::string text = EncodeFrameHead(frame) + "123456789";
  EXPECT_EQ(absl::BytesToHexString(text),
            "1a24080110022801300340014804520109"
            "6d839206e37588f086077a09313233343536373839");
}

TEST(FrameCodec, ControlMessagesAreTheGeneratedOnes) {
  LinkHello hello;
  hello.boundary = {"job-a", 4, 9, CellId(2)};
  hello.capacity = 5;
  v1::ExchangeRequest proto;
  proto.mutable_hello()->mutable_fence()->set_job("job-a");
  proto.mutable_hello()->mutable_fence()->set_term(4);
  proto.mutable_hello()->mutable_fence()->set_generation(9);
  proto.mutable_hello()->set_upstream(2);
  proto.mutable_hello()->set_protocol(1);
  proto.mutable_hello()->set_capacity(5);
  proto.mutable_hello()->set_crc32c(ChecksumOf(proto.hello()));
  EXPECT_EQ(EncodeHello(hello), proto.SerializeAsString());
  const absl::StatusOr<LinkMessage> decoded = Decode(proto.SerializeAsString());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<LinkHello>(*decoded), hello);

  v1::ExchangeResponse credit;
  credit.mutable_credit()->set_taken(130);
  credit.mutable_credit()->set_round(2);
  credit.mutable_credit()->set_crc32c(ChecksumOf(credit.credit()));
  EXPECT_EQ(EncodeCredit({130, 2}), credit.SerializeAsString());
  EXPECT_EQ(std::get<LinkCredit>(*Decode(credit.SerializeAsString())), (LinkCredit{130, 2}));

  v1::ExchangeResponse repeat;
  repeat.mutable_repeat()->set_round(3);
  repeat.mutable_repeat()->set_next(1ull << 40);
  repeat.mutable_repeat()->set_crc32c(ChecksumOf(repeat.repeat()));
  EXPECT_EQ(EncodeRepeat({3, 1ull << 40}), repeat.SerializeAsString());
  EXPECT_EQ(std::get<LinkRepeat>(*Decode(repeat.SerializeAsString())), (LinkRepeat{3, 1ull << 40}));
}

TEST(FrameCodec, ReadsWhatTheGeneratedClassWrote) {
  const std::string data = Payload(300);
  const LinkFrame frame = SomeFrame();
  v1::ExchangeRequest proto;
  *proto.mutable_frame() = Generated(frame, data);
  const std::string text = proto.SerializeAsString();
  absl::StatusOr<LinkMessage> decoded = Decode(text);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  LinkFrame read = std::get<LinkFrame>(*decoded);
  EXPECT_EQ(text.substr(read.data_position, read.data_bytes), data);
  EXPECT_EQ(read.tensor_bytes, 1600u);
  read.data_position = read.tensor_bytes = 0;
  EXPECT_EQ(read, frame);
}

TEST(FrameCodec, ReadsMessagesCutIntoPiecesAnywhere) {
  const std::string data = Payload(300);
  v1::ExchangeRequest proto;
  *proto.mutable_frame() = Generated(SomeFrame(), data);
  const std::string text = proto.SerializeAsString();
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::span<const std::byte> whole = Bytes(text);
    const std::span<const std::byte> pieces[] = {whole.subspan(0, cut), {}, whole.subspan(cut)};
    const absl::StatusOr<LinkMessage> decoded = DecodeLinkMessage(pieces);
    ASSERT_TRUE(decoded.ok()) << "cut at " << cut << ": " << decoded.status();
    std::string copy(300, '\0');
    CopyPieces(pieces, std::get<LinkFrame>(*decoded).data_position,
               std::as_writable_bytes(std::span<char>(copy.data(), copy.size())));
    ASSERT_EQ(copy, data) << "cut at " << cut;
  }
}

TEST(FrameCodec, SkipsFieldsOfANewerPeer) {
  const std::string unknown("\xa2\x06\x02hi\xa8\x06\x05", 8);  // field 100: "hi", field 101: 5
  const absl::StatusOr<LinkMessage> decoded = Decode(EncodeCredit({3, 0}) + unknown);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<LinkCredit>(*decoded).taken, 3u);
}

struct Refused {
  const char* says;
  void (*spoil)(LinkFrame&);
};

TEST(FrameCodec, RefusesValuesThatNoPeerMeans) {
  const Refused rows[] = {
      {"tensor_count=0", [](LinkFrame& f) { f.tensor_count = 0; }},
      {"tensor_count=65", [](LinkFrame& f) { f.tensor_count = 65; }},
      {"tensor_index=2", [](LinkFrame& f) { f.tensor_index = 2; }},
      {"kind=6", [](LinkFrame& f) { f.kind = static_cast<MessageKind>(6); }},
      {"dtype=9", [](LinkFrame& f) { f.dtype = static_cast<DType>(9); }},
      {"micro_batch=4294967295", [](LinkFrame& f) { f.micro_batch = ~0u; }},
      {"offset=1400", [](LinkFrame& f) { f.offset = 1400; }},
      {"shape=9", [](LinkFrame& f) { f.shape.assign(9, 1); }},
      {"2^34 bytes", [](LinkFrame& f) { f.shape = {1ll << 33}; }},
      {"", [](LinkFrame& f) { f.shape = {-1}; }},
      {"",
       [](LinkFrame& f) {
         f.shape = {1ll << 40, 1ll << 40};
       }},
  };
  for (const Refused& row : rows) {
    LinkFrame frame = SomeFrame();
    row.spoil(frame);
    const absl::StatusOr<LinkMessage> decoded = Decode(EncodeFrameHead(frame) + Payload(300));
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << row.says;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(row.says));
  }
}

TEST(FrameCodec, RefusesEveryTruncation) {
  LinkFrame frame = SomeFrame();
  const std::string text = EncodeFrameHead(frame) + Payload(300);
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(Decode(text.substr(0, bytes)).ok()) << bytes;
  }
}

// Without TLS a flipped bit is the receiver's to find: one in a head made another micro-batch's
// tensor of this one's. It is damage, whatever it makes of the number: a message that says what no
// peer means ends the link.
TEST(FrameCodec, EveryFlippedBitOfAHeadIsDamage) {
  const google::protobuf::LogSilencer silence;  // of jobs that are no UTF-8
  const LinkFrame frame = SomeFrame();
  const std::string valid[] = {EncodeFrameHead(frame),
                               EncodeHello({{"job-a", 1, 2, CellId(3)}, kLinkProtocol, 4}),
                               EncodeCredit({7, 1}), EncodeRepeat({1, 7})};
  for (const std::string& head : valid) {
    const std::string data = head == valid[0] ? Payload(frame.data_bytes) : "";
    ASSERT_TRUE(Decode(head + data).ok());
    const size_t length_bytes = data.empty() ? 0 : 2;  // of the data: the assembler's to find
    for (size_t bit = 0; bit < 8 * (head.size() - length_bytes); ++bit) {
      std::string text = head + data;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
      EXPECT_EQ(Decode(text).status().code(), absl::StatusCode::kDataLoss) << bit;
    }
  }
}

// One made a longer tag of the checksum's, and with it an unknown field of the whole credit.
TEST(FrameCodec, EveryFlippedBitOfAControlMessageIsDamage) {
  for (uint64_t number = 1; number < 300; ++number) {
    for (const uint32_t round : {0u, 1u, 2u, 200u}) {
      for (const std::string& valid :
           {EncodeCredit({number, round}), EncodeRepeat({round + 1, number})}) {
        for (size_t bit = 0; bit < 8 * valid.size(); ++bit) {
          std::string text = valid;
          text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
          ASSERT_EQ(Decode(text).status().code(), absl::StatusCode::kDataLoss)
              << absl::BytesToHexString(text);
        }
      }
    }
  }
}

TEST(FrameCodec, SurvivesSpoiledBytes) {
  const google::protobuf::LogSilencer silence;
  std::mt19937 random(20240607);
  const std::string valid[] = {
      EncodeFrameHead(SomeFrame()) + Payload(300),
      EncodeHello({{"job-a", 1, 2, CellId(0)}, kLinkProtocol, 4}),
      EncodeCredit({7, 1}),
      EncodeRepeat({1, 7}),
  };
  for (int round = 0; round < 60000; ++round) {
    std::string text = valid[round % 4];
    for (unsigned i = 0; i <= random() % 4; ++i) {
      // Mostly in the head, where every byte means something.
      const size_t at = random() % std::min<size_t>(text.size(), 80);
      text[at] = static_cast<char>(random());
    }
    if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
    const std::span<const std::byte> piece = Bytes(text);
    const absl::StatusOr<LinkMessage> decoded = DecodeLinkMessage({&piece, 1});
    if (!decoded.ok() || !std::holds_alternative<LinkFrame>(*decoded)) continue;
    const LinkFrame& frame = std::get<LinkFrame>(*decoded);
    ASSERT_LE(frame.data_position + frame.data_bytes, text.size());
    ASSERT_LE(frame.offset + frame.data_bytes, frame.tensor_bytes);
  }
}

}  // namespace
}  // namespace stagecoach
