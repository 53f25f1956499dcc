// Pictures of testdata/ beside what Pillow reads of them, as digests.txt has it (make.py).
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/hash.h"
#include "base/testing/file_text.h"
#include "gtest/gtest.h"
#include "stage/pictures/decode.h"

namespace stagecoach {
namespace {

const std::filesystem::path& Golden() {
  static const auto* const folder = new std::filesystem::path(
      std::filesystem::path(STAGECOACH_SOURCE_DIR) / "stage" / "pictures" / "testdata");
  return *folder;
}

std::vector<uint8_t> Content(const std::string& name) { return FileBytes(Golden() / name); }

std::string DigestOf(const absl::StatusOr<Picture>& picture) {
  if (!picture.ok()) return std::string(picture.status().message());
  Sha256 digest;
  digest.Update(std::as_bytes(std::span(picture->bytes)));
  return digest.Hex().substr(0, 16);
}

TEST(DecodePicture, GivesTheBytesThatPillowGives) {
  std::ifstream lines(Golden() / "digests.txt");
  int files = 0;
  for (std::string line; std::getline(lines, line); ++files) {
    std::istringstream fields(line);
    std::string name, colours, grey, turned;
    int64_t width = 0, height = 0;
    fields >> name >> width >> height >> colours >> grey >> turned;
    const std::vector<uint8_t> file = Content(name);
    const auto read = DecodePicture(file, 3);
    EXPECT_EQ(DigestOf(read), colours) << name;
    if (read.ok()) {
      EXPECT_EQ(read->width, width) << name;
      EXPECT_EQ(read->height, height) << name;
    }
    EXPECT_EQ(DigestOf(DecodePicture(file, 1)), grey) << name;
    EXPECT_EQ(DigestOf(DecodeUpright(file, 3)), turned) << name;
  }
  EXPECT_EQ(files, 50);
}

}  // namespace
}  // namespace stagecoach
