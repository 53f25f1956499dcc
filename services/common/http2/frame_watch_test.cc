#include "services/common/http2/frame_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/testing/manual_clock.h"
#include "services/common/http2/frames_testing.h"

namespace stagecoach {
namespace {

using Fault = FrameWatch::Fault;
using Side = FrameWatch::Side;

// A block of so many bytes that say nothing: the table of headers shall be empty, again and again.
constexpr char kNothing = 0x20;
std::string Block(size_t first, size_t next, int continuations) {
  std::string block = FrameOf(kHeadersFrame, 0, 1, std::string(first, kNothing));
  for (int i = 0; i < continuations; ++i) {
    block += FrameOf(kContinuationFrame, 0, 1, std::string(next, kNothing));
  }
  return block;
}

class FrameWatchTest : public ::testing::Test {
 protected:
  FrameWatch Begun() {
    FrameWatch watch(Side::kServer, &clock_);
    EXPECT_EQ(watch.Take(Hello()), Fault::kNone);
    return watch;
  }

  ManualClock clock_;
};

TEST_F(FrameWatchTest, ABlockOfFiveFramesOr64KiBIsWelcomeAndOneMoreIsNot) {
  EXPECT_EQ(Begun().Take(Block(1, 1, 4)), Fault::kNone);
  EXPECT_EQ(Begun().Take(Block(1, 1, 5)), Fault::kManyFrames);
  EXPECT_EQ(Begun().Take(Block(1, 0, 5)), Fault::kManyFrames) << "empty frames count as well";
  EXPECT_EQ(Begun().Take(Block(16 << 10, 16 << 10, 3)), Fault::kNone);
  EXPECT_EQ(Begun().Take(Block((16 << 10) + 1, 16 << 10, 3)), Fault::kLongHeaders);
}

TEST_F(FrameWatchTest, ALengthThatIsOnlyClaimedCounts) {
  const std::string head = Block(0x10001, 0, 0).substr(0, 9);
  EXPECT_EQ(Begun().Take(head), Fault::kLongHeaders);
}

TEST_F(FrameWatchTest, BlocksAreCountedOneByOneAndOtherFramesNotAtAll) {
  FrameWatch watch = Begun();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(watch.Take(Block(16 << 10, 1, 2)), Fault::kNone) << i;
    EXPECT_EQ(watch.Take(FrameOf(kDataFrame, 0, 1, std::string(16 << 10, '\1'))), Fault::kNone);
  }
  // A payload that looks like frames is none.
  EXPECT_EQ(watch.Take(FrameOf(kDataFrame, 0, 1, Block(1, 1, 9))), Fault::kNone);
}

TEST_F(FrameWatchTest, TheFaultIsTheSameHoweverTheBytesAreCutAndItStays) {
  const std::string all = Hello() + Block(100, 100, 2) + Block(7, 0, 5);
  for (size_t piece = 1; piece < all.size(); piece += piece < 32 ? 1 : 97) {
    FrameWatch watch(Side::kServer, &clock_);
    Fault fault = Fault::kNone;
    for (size_t at = 0; at < all.size(); at += piece) fault = watch.Take(all.substr(at, piece));
    EXPECT_EQ(fault, Fault::kManyFrames) << piece;
    EXPECT_EQ(watch.Take(FrameOf(kDataFrame, 0, 1, "")), Fault::kManyFrames) << "it stays";
  }
}

// A literal field, and a frame of such.
std::string Field(const std::string& name, const std::string& value) {
  EXPECT_TRUE(name.size() < 127 && value.size() < 127);
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}
std::string Whole(const std::string& fields) {
  return FrameOf(kHeadersFrame, kEndHeadersFlag, 1, fields);
}

// The story: one request with that header ended a coordinator by abort(), from a stranger where it
// takes tokens.
TEST_F(FrameWatchTest, HeadersThatNoClientSendsAreAFaultBeforeTheirBlockEnds) {
  const std::string usual = Field(":scheme", "http") + Field("te", "trailers") + Field("a", "b");
  EXPECT_EQ(Begun().Take(Whole(usual)), Fault::kNone);
  EXPECT_EQ(Begun().Take(Whole(Field(":scheme", "https"))), Fault::kNone);
  for (const std::string& field :
       {Field("grpclb_client_stats", "x"), Field("te", "x"), Field(":scheme", "x")}) {
    EXPECT_EQ(Begun().Take(Whole(usual + field)), Fault::kHeaders);
    // gRPC reads it without the rest of its frame, and without the end of its block.
    const std::string head = FrameOf(kHeadersFrame, 0, 1, usual + field + "\1");
    EXPECT_EQ(Begun().Take(head.substr(0, head.size() - 1)), Fault::kHeaders);
    EXPECT_EQ(Begun().Take(FrameOf(kHeadersFrame, 0, 1, field.substr(0, 3)) +
                           FrameOf(kContinuationFrame, 0, 1, field.substr(3))),
              Fault::kHeaders);
  }
  FrameWatch client(Side::kClient, &clock_);
  EXPECT_EQ(client.Take(Whole(Field("grpclb_client_stats", "x"))), Fault::kHeaders);
}

TEST_F(FrameWatchTest, ATokenThatMayNotBeTriedNowIsAFaultBeforeGrpcReadsTheEndOfIt) {
  std::vector<std::string> asked;
  FrameWatch watch(Side::kServer, &clock_, [&](std::string_view value) {
    asked.emplace_back(value);
    return value != "Bearer b";
  });
  ASSERT_EQ(watch.Take(Hello()), Fault::kNone);
  EXPECT_EQ(watch.Take(Whole(Field("authorization", "Bearer a") + Field("other", "Bearer b"))),
            Fault::kNone);
  const std::string refused = FrameOf(kHeadersFrame, 0, 3, Field("authorization", "Bearer b"));
  EXPECT_EQ(watch.Take(refused.substr(0, refused.size() - 1)), Fault::kNone);
  EXPECT_EQ(watch.Take(refused.substr(refused.size() - 1)), Fault::kGuesses);
  EXPECT_EQ(asked, (std::vector<std::string>{"Bearer a", "Bearer b"}));
  EXPECT_EQ(watch.Take(Whole(Field("a", "b"))), Fault::kGuesses);
}

// Indexed, so that one byte is a field.
TEST_F(FrameWatchTest, FieldsAreCountedAsTheyAreDecoded) {
  FrameWatch watch = Begun();
  std::string stored = Field("name", std::string(60, 'v'));
  stored[0] = 0x40;  // with an index: 62
  EXPECT_EQ(watch.Take(Whole(stored)), Fault::kNone);
  const int most = FrameWatch::kMostFieldBytes / (4 + 60 + 32);
  EXPECT_EQ(watch.Take(Whole(std::string(most, '\xbe'))), Fault::kNone);
  EXPECT_EQ(watch.Take(Whole(std::string(most + 1, '\xbe'))), Fault::kHeaders);
  FrameWatch client(Side::kClient, &clock_);
  EXPECT_EQ(client.Take(Whole(stored)), Fault::kNone);
  EXPECT_EQ(client.Take(Whole(std::string(most + 1, '\xbe'))), Fault::kNone)
      << "an answer may tell more";
}

TEST_F(FrameWatchTest, ABlockThatCannotBeReadOrIsPaddedIsAFault) {
  EXPECT_EQ(Begun().Take(Whole("\xbe")), Fault::kHeaders) << "there is no field 62";
  EXPECT_EQ(Begun().Take(Whole(Field("a", "b").substr(0, 4))), Fault::kHeaders) << "cut short";
  EXPECT_EQ(Begun().Take(Whole(std::string("\0\x7f", 2) + std::string(20, '\x80'))),
            Fault::kHeaders)
      << "a length without an end";
  for (const unsigned char flag : {0x08, 0x20}) {
    EXPECT_EQ(Begun().Take(FrameOf(kHeadersFrame, flag, 1, std::string(9, '\0'))), Fault::kHeaders);
  }
}

TEST_F(FrameWatchTest, WhatDoesNotBeginWithHttp2IsEnded) {
  FrameWatch web(Side::kServer, &clock_);
  EXPECT_EQ(web.Take("GET / HTTP/1.1\r\n"), Fault::kPreface);
  FrameWatch late(Side::kServer, &clock_);
  EXPECT_EQ(late.Take("PRI * HTTP/2.0\r\n\r\nSM\r\n\r"), Fault::kNone);
  EXPECT_EQ(late.Take("\r"), Fault::kPreface);
}

TEST_F(FrameWatchTest, AStockOfResetsAndThenSoManyASecond) {
  for (const unsigned char kind : {kResetFrame, kSettingsFrame}) {
    FrameWatch watch = Begun();  // whose hello has one SETTINGS frame
    const std::string reset = FrameOf(kind, 0, 1, kind == kResetFrame ? std::string(4, '\0') : "");
    for (int i = 1; i < FrameWatch::kResetStock; ++i) ASSERT_EQ(watch.Take(reset), Fault::kNone);
    clock_.AdvanceNanos(1000000000);
    for (int i = 0; i < FrameWatch::kResetsPerSecond; ++i) {
      ASSERT_EQ(watch.Take(reset), Fault::kNone) << i;
    }
    EXPECT_EQ(watch.Take(reset), Fault::kResets);
  }
}

TEST_F(FrameWatchTest, ConfirmedSettingsAreNoFloodAndAClientIsResetAsOftenAsItsServerLikes) {
  FrameWatch server = Begun();
  FrameWatch client(Side::kClient, &clock_);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(server.Take(FrameOf(kSettingsFrame, kAckFlag, 0, "")), Fault::kNone);
    EXPECT_EQ(client.Take(FrameOf(kResetFrame, 0, 1, std::string(4, '\0'))), Fault::kNone);
  }
  EXPECT_EQ(client.Take(Block(1, 1, 5)), Fault::kManyFrames) << "blocks are watched on both sides";
}

}  // namespace
}  // namespace stagecoach
