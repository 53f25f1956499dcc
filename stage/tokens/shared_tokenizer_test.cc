#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "base/threads/thread.h"
#include "gtest/gtest.h"
#include "stage/tokens/model_file_testing.h"
#include "stage/tokens/tokenizer.h"
#include "stage/tokens/tokenizer_json_testing.h"

namespace stagecoach {
namespace {

// Letters and spaces, and characters that only bytes spell.
std::string NumberedLine(uint64_t number) {
  std::string line;
  for (uint64_t i = 0; i < 100; ++i) {
    const uint32_t bits = RandomBits({.seed = 4}, 100 * number + i);
    if (bits % 7 == 0) {
      line += bits % 3 == 0 ? "東" : " ";
    } else {
      line += static_cast<char>('!' + bits % 94);
    }
  }
  return line;
}

// Threads encode the same lines with one tokenizer at once, and get the same ids.
void ExpectSameIdsFromThreads(const Tokenizer& tokenizer) {
  const auto all = [&] {
    std::vector<std::vector<int32_t>> ids;
    for (uint64_t i = 0; i < 50; ++i) ids.push_back(*tokenizer.Encode(NumberedLine(i)));
    return ids;
  };
  std::vector<std::vector<std::vector<int32_t>>> found(4);
  {
    std::vector<Thread> threads;
    for (auto& own : found) threads.emplace_back("encode", [&own, &all] { own = all(); });
  }
  const auto expected = all();
  for (const auto& own : found) EXPECT_EQ(own, expected);
}

TEST(Tokenizer, ThreadsShareOneOfByteLevel) {
  nlohmann::json file = TokenizerJson({{"a", "b"}, {" ", "a"}});
  file["normalizer"] = {{"type", "NFC"}};
  const auto parsed = Tokenizer::Parse(file.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ExpectSameIdsFromThreads(**parsed);
}

TEST(Tokenizer, ThreadsShareOneOfWordPiece) {
  std::vector<std::string> pieces;
  for (char letter = '!'; letter <= '~'; ++letter) {
    pieces.push_back(std::string(1, letter));
    pieces.push_back("##" + pieces.back());
  }
  const auto parsed = Tokenizer::Parse(WordPieceJson(pieces).dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ExpectSameIdsFromThreads(**parsed);
}

TEST(Tokenizer, ThreadsShareOne) {
  std::vector<Piece> pieces = BytePieces();
  for (const Piece& piece : LetterPieces()) {
    if (piece.type == PieceType::kNormal) pieces.push_back(piece);
  }
  constexpr uint32_t kModelType = 3, kByteFallback = 35;
  for (const uint64_t model_type : {1, 2}) {  // unigram, BPE
    const auto parsed = Tokenizer::Parse(
        ModelFileText(pieces, WireNumber(kModelType, model_type) + WireNumber(kByteFallback, 1)));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ExpectSameIdsFromThreads(**parsed);
  }
}

}  // namespace
}  // namespace stagecoach
