#include "coordinator/job/view/written_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"

namespace stagecoach {
namespace {

using WrittenJson = nlohmann::json;

// Of a row of EncodeWritten; throws as nlohmann::json does. False: its text is not base64.
bool ReadPiece(const WrittenJson& row, WrittenPiece* piece) {
  row.at(0).get_to(piece->line);
  row.at(1).get_to(piece->offset);
  row.at(3).get_to(piece->done);
  row.at(4).get_to(piece->tokens);
  piece->score =
      row.at(5).is_null() ? std::numeric_limits<double>::quiet_NaN() : row.at(5).get<double>();
  row.at(6).get_to(piece->ended);
  return absl::Base64Unescape(row.at(2).get_ref<const std::string&>(), &piece->text);
}

}  // namespace

std::string EncodeWritten(const std::vector<WrittenPiece>& pieces) {
  WrittenJson json = WrittenJson::array();
  for (const WrittenPiece& piece : pieces) {
    json.push_back({piece.line, piece.offset, absl::Base64Escape(piece.text), piece.done,
                    piece.tokens, piece.score, piece.ended});
  }
  return json.dump();
}

absl::StatusOr<std::vector<WrittenPiece>> DecodeWritten(const std::string& text) {
  const absl::Status damaged = absl::DataLossError("its texts cannot be read");
  // nlohmann::json reports by exceptions; they end here.
  try {
    std::vector<WrittenPiece> pieces;
    for (const WrittenJson& row : WrittenJson::parse(text)) {
      if (!ReadPiece(row, &pieces.emplace_back())) return damaged;
    }
    return pieces;
  } catch (const WrittenJson::exception&) {
    return damaged;
  }
}

}  // namespace stagecoach
