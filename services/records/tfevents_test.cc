// The bytes are TensorBoard's, not ours: the vectors were written by its own library.
#include "services/records/tfevents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"

namespace stagecoach {
namespace {

// Of "0a ff": the byte 10, the byte 255.
std::string Bytes(const std::string& hexadecimal) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hexadecimal.size(); i += 3) {
    bytes += static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(TfEvents, TheVersionRecord) {
  EXPECT_EQ(VersionEvent(1.0),
            Bytes("18 00 00 00 00 00 00 00 a3 7f 4b 22 09 00 00 00 00 00 00 f0 3f 1a 0d 62 72 61 "
                  "69 6e 2e 45 76 65 6e 74 3a 32 86 bf 57 7a"));
}

TEST(TfEvents, AScalar) {
  EXPECT_EQ(ScalarsEvent(1.0, 7, {{"train/loss", 0.5}}),
            Bytes("20 00 00 00 00 00 00 00 29 ed a9 50 09 00 00 00 00 00 00 f0 3f 10 07 2a 13 0a "
                  "11 0a 0a 74 72 61 69 6e 2f 6c 6f 73 73 15 00 00 00 3f b0 40 9f 72"));
}

TEST(TfEvents, LongTextsAndManyScalarsHaveLongLengths) {
  const std::string tag(200, 'x');
  const std::string event = ScalarsEvent(1.0, 300, {{tag, 1}, {tag, 2}});
  // Value: tag 1 + 2 + 200, number 5 = 208 bytes, twice with 1 + 2 in front.
  EXPECT_EQ(event.substr(21, 6), Bytes("10 ac 02 2a a6 03"));
  EXPECT_EQ(event.size(), 8u + 4 + 9 + 3 + 3 + 2 * 211 + 4);
}

TEST(TfEvents, AFileStartsWithItsVersionAndTakesAFreeName) {
  const TemporaryFolder folder;
  absl::StatusOr<EventFile> first = EventFile::Create(folder.path(), 1700000000.25);
  absl::StatusOr<EventFile> second = EventFile::Create(folder.path(), 1700000000.75);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_THAT(first->path(), testing::HasSubstr("/events.out.tfevents.1700000000."));
  EXPECT_THAT(second->path(), testing::HasSubstr("/events.out.tfevents.1700000001."));
  const std::string event = ScalarsEvent(1.0, 1, {{"nan", std::nan("")}});
  ASSERT_TRUE(first->Add(event).ok());
  EXPECT_EQ(FileText(first->path()), VersionEvent(1700000000.25) + event);
  EXPECT_FALSE(EventFile::Create(folder.File("missing"), 1.0).ok());
}

}  // namespace
}  // namespace stagecoach
