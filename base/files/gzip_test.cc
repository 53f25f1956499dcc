#include "base/files/gzip.h"

#include <algorithm>
#include <string>

#include "base/files/gzip_testing.h"
#include "base/numbers/random.h"
#include "gtest/gtest.h"

namespace stagecoach {
namespace {

std::string Sentences(size_t size) {
  std::string text;
  for (uint64_t i = 0; text.size() < size; ++i) {
    text += "word " + std::to_string(RandomBits({.seed = 5}, i) % 1000) + "; ";
  }
  text.resize(size);
  return text;
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Everything, in pieces of these sizes.
absl::StatusOr<std::string> Unpacked(const std::string& packed, size_t in, size_t out) {
  Gunzip gunzip;
  std::string text;
  std::vector<uint8_t> room(out);
  std::span<const uint8_t> left = BytesOf(packed);
  while (true) {
    const auto done = gunzip.Unpack(left.first(std::min(in, left.size())), room);
    if (!done.ok()) return done.status();
    text.append(reinterpret_cast<const char*>(room.data()), done->written);
    left = left.subspan(done->read);
    if (done->ended) return text;
    if (done->read == 0 && done->written == 0) return absl::OutOfRangeError(text);
  }
}

TEST(Gunzip, GivesWhatWasPackedInPiecesOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100'000}}) {
    const std::string text = Sentences(size);
    const std::string packed = Gzipped(text);
    EXPECT_TRUE(LooksLikeGzip(packed));
    for (const size_t in : {size_t{1}, size_t{7}, packed.size()}) {
      for (const size_t out : {size_t{1}, size_t{13}, text.size() + 1}) {
        const auto unpacked = Unpacked(packed, in, out);
        ASSERT_TRUE(unpacked.ok()) << unpacked.status() << " " << in << " " << out;
        ASSERT_EQ(*unpacked, text) << in << " " << out;
      }
    }
  }
}

TEST(Gunzip, ADamagedFileIsToldAndATruncatedOneDoesNotEnd) {
  const std::string packed = Gzipped(Sentences(10'000));
  std::string damaged = packed;
  damaged[damaged.size() - 7] ^= 1;  // of the checksum
  EXPECT_TRUE(absl::IsDataLoss(Unpacked(damaged, 100, 100).status()));
  EXPECT_TRUE(absl::IsDataLoss(Unpacked("no gzip data at all", 100, 100).status()));
  const std::string half = packed.substr(0, packed.size() / 2);
  EXPECT_TRUE(absl::IsOutOfRange(Unpacked(half, 100, 100).status()));
}

TEST(Gunzip, WhatStandsBehindTheMemberIsLeft) {
  const std::string packed = Gzipped("abc");
  Gunzip gunzip;
  std::vector<uint8_t> room(10);
  const std::string more = packed + "more";
  const auto done = gunzip.Unpack(BytesOf(more), room);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(done->ended);
  EXPECT_EQ(done->read, packed.size());
  EXPECT_EQ(done->written, 3u);
}

TEST(GunzipMembers, AreOneTextInPiecesOfAnySizeWithZerosBehindThem) {
  const std::string packed = Gzipped("") + Gzipped("abc") + std::string(600, '\0') + Gzipped("") +
                             Gzipped("defgh") + std::string(9, '\0');
  for (const size_t in : {size_t{1}, size_t{7}, packed.size()}) {
    for (const size_t out : {size_t{1}, size_t{5}, size_t{100}}) {
      GunzipMembers members;
      std::string text;
      std::vector<uint8_t> room(out);
      std::span<const uint8_t> left = BytesOf(packed);
      while (true) {
        const auto done = members.Unpack(left.first(std::min(in, left.size())), room);
        ASSERT_TRUE(done.ok()) << done.status() << " " << in << " " << out;
        ASSERT_FALSE(done->other);
        if (done->read == 0 && done->written == 0) break;
        text.append(reinterpret_cast<const char*>(room.data()), done->written);
        left = left.subspan(done->read);
      }
      EXPECT_EQ(text, "abcdefgh") << in << " " << out;
      EXPECT_TRUE(members.ended());
      EXPECT_FALSE(members.single());
    }
  }
}

TEST(GunzipMembers, SomethingElseBehindOneIsToldAndLeft) {
  const std::string packed = Gzipped("abc");
  const std::string more = packed + std::string(2, '\0') + "more";
  GunzipMembers members;
  std::vector<uint8_t> room(10);
  const auto done = members.Unpack(BytesOf(more), room);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(done->other);
  EXPECT_EQ(done->read, packed.size() + 2);
  EXPECT_EQ(done->written, 3u);
}

}  // namespace
}  // namespace stagecoach
