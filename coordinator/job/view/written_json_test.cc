#include "coordinator/job/view/written_json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stagecoach {
namespace {

TEST(WrittenJson, TextsComeBackEqualWhateverTheirBytes) {
  const std::vector<WrittenPiece> pieces = {
      {.line = 3, .offset = 7, .text = std::string("\xff\0\"\n", 4)},
      {.line = 4, .text = "ein Haus", .done = true, .tokens = 5, .score = -0.1, .ended = true}};
  EXPECT_EQ(DecodeWritten(EncodeWritten(pieces)).value(), pieces);
  EXPECT_EQ(DecodeWritten(EncodeWritten({})).value(), std::vector<WrittenPiece>());
}

TEST(WrittenJson, AScoreThatIsNoNumberStaysNone) {
  const auto back = DecodeWritten(EncodeWritten({{.done = true, .score = std::nan("")}}));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(std::isnan(back->at(0).score));
}

TEST(WrittenJson, RefusesWhatItDidNotWrite) {
  for (const char* text : {"", "{", "7", "[[1,2]]", "[[0,0,\"*\",false,0,0,false]]",
                           "[[0,0,7,false,0,0,false]]", "[[0,0,\"\",1,0,0,false]]"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeWritten(text).status())) << text;
  }
}

}  // namespace
}  // namespace stagecoach
