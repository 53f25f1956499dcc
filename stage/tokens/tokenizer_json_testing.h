// TokenizerJson: a small tokenizer.json, made by hand, for tests: the 256 characters of bytes have
// the ids 0 to 255 in their order, then pieces that merges make, then added tokens.
// WordPieceJson: one in BERT's form: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then the pieces.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TESTING_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TESTING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stage/tokens/byte_level/byte_characters.h"

namespace stagecoach {

inline std::string ByteCharacters(std::string_view bytes) {
  std::string text;
  AppendByteCharacters(bytes, &text);
  return text;
}

inline nlohmann::json AddedTokenJson(int id, const std::string& content, bool special = true) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

// merges: pairs of texts in bytes. As GPT-2's; a test changes it.
inline nlohmann::json TokenizerJson(
    const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  nlohmann::json vocabulary = nlohmann::json::object(), list = nlohmann::json::array();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteCharacters(std::string(1, static_cast<char>(byte)))] = byte;
  }
  for (const auto& [left, right] : merges) {
    const int id = static_cast<int>(vocabulary.size());
    vocabulary[ByteCharacters(left + right)] = id;
    list.push_back(ByteCharacters(left) + " " + ByteCharacters(right));
  }
  const nlohmann::json bytes = {{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", true}};
  return {{"version", "1.0"},
          {"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", bytes},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", list}}}};
}

// As that of BERT without letter case; a test changes it.
inline nlohmann::json WordPieceJson(const std::vector<std::string>& pieces = {}) {
  nlohmann::json vocabulary = nlohmann::json::object(), added = nlohmann::json::array();
  for (const char* const special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    added.push_back(AddedTokenJson(static_cast<int>(vocabulary.size()), special));
    vocabulary[special] = vocabulary.size();
  }
  for (const std::string& piece : pieces) vocabulary[piece] = vocabulary.size();
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary}}}};
}

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_TESTING_H_
