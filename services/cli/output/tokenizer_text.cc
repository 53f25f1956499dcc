#include "services/cli/output/tokenizer_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "services/cli/output/text.h"

namespace stagecoach {
namespace {

const char* NameOf(PieceType type) {
  switch (type) {
    case PieceType::kNormal:
      return "normal";
    case PieceType::kUnknown:
      return "unknown";
    case PieceType::kControl:
      return "control";
    case PieceType::kUserDefined:
      return "user-defined";
    case PieceType::kUnused:
      return "unused";
    case PieceType::kByte:
      return "byte";
  }
  return "";
}

std::string IdText(int32_t id) { return id < 0 ? "none" : absl::StrCat(id); }

std::string BytesText(const Tokenizer& tokenizer) {
  if (tokenizer.kind_name() == "byte_level_bpe") return "all pieces";
  return tokenizer.byte_fallback() ? "of characters that are no piece" : "none";
}

std::string ForPeople(const std::string& path, const Tokenizer& tokenizer, int32_t first) {
  std::string text = absl::StrCat(
      "tokenizer   ", ShownName(path), "\nkind        ", tokenizer.kind_name(), "\nids         ",
      tokenizer.ids(), "\nspecial     pad ", IdText(tokenizer.pad()), ", unk ",
      IdText(tokenizer.unknown()), ", bos ", IdText(tokenizer.begin()), ", eos ",
      IdText(tokenizer.end()),
      tokenizer.mask() < 0 ? "" : absl::StrCat(", mask ", tokenizer.mask()), "\nbytes       ",
      BytesText(tokenizer), "\nnormalizer  ",
      tokenizer.normalizer_name().empty() ? "none" : ShownName(tokenizer.normalizer_name()),
      "\ndigest      sha256:", tokenizer.digest(), "\n");
  if (first == 0) return text;
  Table table({"ID", "PIECE", "TYPE", "SCORE"}, {0, 3});
  for (int32_t id = 0; id < first; ++id) {
    const Piece& piece = tokenizer.piece(id);
    table.Add(
        {absl::StrCat(id), ShownName(piece.text), NameOf(piece.type), JsonNumber(piece.score)});
  }
  return absl::StrCat(text, "\n", table.ToString());
}

std::string ForPrograms(const std::string& path, const Tokenizer& tokenizer, int32_t first,
                        int indent) {
  const auto id = [](int32_t value) {
    return value < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (int32_t i = 0; i < first; ++i) {
    const Piece& piece = tokenizer.piece(i);
    pieces.push_back(
        {{"id", i}, {"piece", piece.text}, {"type", NameOf(piece.type)}, {"score", piece.score}});
  }
  const nlohmann::ordered_json said = {{"file", path},
                                       {"kind", tokenizer.kind_name()},
                                       {"ids", tokenizer.ids()},
                                       {"pad", id(tokenizer.pad())},
                                       {"unk", id(tokenizer.unknown())},
                                       {"bos", id(tokenizer.begin())},
                                       {"eos", id(tokenizer.end())},
                                       {"mask", id(tokenizer.mask())},
                                       {"byte_fallback", tokenizer.byte_fallback()},
                                       {"normalizer", tokenizer.normalizer_name()},
                                       {"digest", absl::StrCat("sha256:", tokenizer.digest())},
                                       {"pieces", std::move(pieces)}};
  return said.dump(indent, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

std::string TokenizerText(const std::string& path, const Tokenizer& tokenizer, int64_t first,
                          OutputFormat format) {
  const auto shown = static_cast<int32_t>(std::min<int64_t>(first, tokenizer.ids()));
  if (format == OutputFormat::kTable) return ForPeople(path, tokenizer, shown);
  return ForPrograms(path, tokenizer, shown, format == OutputFormat::kJson ? 2 : -1);
}

}  // namespace stagecoach
