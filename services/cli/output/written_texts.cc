#include "services/cli/output/written_texts.h"

#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/convert/convert_control.h"

namespace stagecoach {

void WrittenTexts::Take(const v1::WrittenRecord& record, const WrittenTextEvents& events) {
  for (const v1::WrittenPiece& piece : record.texts()) {
    const std::string more = Take(FromProto(piece));
    if (events.on_text && !more.empty()) events.on_text(piece.line(), more);
  }
  for (const WrittenLine& line : TakeWhole()) {
    if (events.on_line) events.on_line(line);
  }
}

absl::Status WrittenTexts::CheckWhole(const std::string& job) const {
  if (returned_ == lines_.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("job ", job, " succeeded, and the coordinator has the texts of the first ",
                   returned_, " of ", lines_.size(), " lines only"));
}

std::string WrittenTexts::Take(const WrittenPiece& piece) {
  if (piece.line < 0 || piece.line >= std::ssize(lines_) || piece.offset < 0) return "";
  // Its end would overflow.
  if (piece.offset > std::numeric_limits<int64_t>::max() - std::ssize(piece.text)) return "";
  Line& line = lines_[static_cast<size_t>(piece.line)];
  if (piece.done) {
    line.all_bytes = piece.offset + std::ssize(piece.text);
    line.last = piece;
    line.last.text.clear();
  }
  std::string& ahead = line.ahead[piece.offset];
  if (ahead.size() < piece.text.size()) ahead = piece.text;
  std::string more;
  while (!line.ahead.empty() && line.ahead.begin()->first <= line.bytes) {
    const auto next = line.ahead.extract(line.ahead.begin());
    const auto known = static_cast<size_t>(line.bytes - next.key());
    if (known >= next.mapped().size()) continue;
    const std::string unknown = next.mapped().substr(known);
    more += unknown;
    line.bytes += std::ssize(unknown);
  }
  line.text += more;
  return more;
}

std::vector<WrittenLine> WrittenTexts::TakeWhole() {
  std::vector<WrittenLine> whole;
  while (returned_ < lines_.size() && lines_[returned_].bytes == lines_[returned_].all_bytes) {
    Line& line = lines_[returned_];
    whole.push_back({.line = static_cast<int64_t>(returned_++),
                     .text = std::exchange(line.text, ""),
                     .tokens = line.last.tokens,
                     .score = line.last.score,
                     .ended = line.last.ended});
  }
  return whole;
}

}  // namespace stagecoach
