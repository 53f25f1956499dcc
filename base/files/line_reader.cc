#include "base/files/line_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"

namespace stagecoach {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(what, "; give the whole file"));
}

bool IsSpaceOfAscii(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The last space up to `most` that stands between two words; else any, npos: none. A space in front
// of the text is none.
size_t FindCutSpace(std::string_view text, size_t most, CutSpace wanted) {
  const auto before = [text](size_t at) {
    const size_t found = at == 0 ? text.npos : text.rfind(' ', at);
    return found == 0 ? text.npos : found;
  };
  const size_t last = before(most);
  if (wanted == CutSpace::kLeftOut) return last;
  for (size_t space = last; space != text.npos; space = before(space - 1)) {
    const bool between = space + 1 < text.size() && !IsSpaceOfAscii(text[space - 1]) &&
                         !IsSpaceOfAscii(text[space + 1]);
    if (between) return space;
  }
  return last;
}

}  // namespace

TextCut CutText(std::string_view text, size_t most, CutSpace wanted) {
  if (const size_t space = FindCutSpace(text, most, wanted); space != text.npos) {
    return {.part = space, .next = wanted == CutSpace::kLeftOut ? space + 1 : space};
  }
  size_t end = most;
  // A character has three bytes behind its first one, at most.
  while (end > most - 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return {.part = end, .next = end};
}

absl::StatusOr<std::optional<LineReader::Part>> LineReader::Next() {
  size_t end = Rest().find('\n');
  for (bool over = false; end == std::string_view::npos && !over;) {
    const size_t looked_at = Rest().size();
    if (looked_at > most_) break;
    ASSIGN_OR_RETURN(const bool more, Fill());
    over = !more;
    if (over && looked_at == 0 && !open_) return std::nullopt;
    end = over ? looked_at : Rest().find('\n', looked_at);
  }
  if (!std::exchange(open_, true)) {
    ++line_;
    line_bytes_ = 0;
  }
  if (end > most_) {
    const TextCut cut = CutText(Rest(), most_, space_);
    return Take(cut.part, cut.next, false);
  }
  open_ = false;
  return Take(end, std::min(end + 1, Rest().size()), true);
}

LineReader::Part LineReader::Take(size_t part, size_t next, bool ends) {
  Part taken{.text = Rest().substr(0, part), .ends = ends};
  if (ends && taken.text.ends_with('\r')) taken.text.remove_suffix(1);
  if (ends) taken.end = Rest().substr(taken.text.size(), next - taken.text.size());
  line_bytes_ += static_cast<int64_t>(ends ? taken.text.size() : next);
  begin_ += next;
  return taken;
}

absl::StatusOr<bool> LineReader::Fill() {
  text_.erase(0, std::exchange(begin_, 0));
  const size_t before = text_.size();
  if (!std::exchange(begun_, true)) RETURN_IF_ERROR(Begin());
  bool more = false;
  if (unpack_ != nullptr) {
    ASSIGN_OR_RETURN(more, FillUnpacked());
  } else {
    if (stored_.empty()) RETURN_IF_ERROR(ReadPiece().status());
    text_ += TextOf(stored_);
    more = !std::exchange(stored_, {}).empty();
  }
  text_bytes_ += static_cast<int64_t>(text_.size() - before);
  return more;
}

absl::Status LineReader::Begin() {
  piece_.resize(kReadBytes);
  ASSIGN_OR_RETURN(size_t count, read_(piece_));
  // A pipe may give its first byte alone, which does not show what it is.
  if (count == 1) {
    ASSIGN_OR_RETURN(const size_t more, read_(std::span(piece_).subspan(1)));
    count += more;
  }
  stored_ = std::span(piece_).first(count);
  if (LooksLikeGzip(TextOf(stored_))) unpack_ = std::make_unique<GunzipMembers>();
  return absl::OkStatus();
}

absl::StatusOr<bool> LineReader::FillUnpacked() {
  const size_t before = text_.size();
  for (;;) {
    text_.resize(before + kReadBytes);
    const std::span<uint8_t> into(reinterpret_cast<uint8_t*>(text_.data()) + before, kReadBytes);
    const absl::StatusOr<GunzipMembers::Done> done = unpack_->Unpack(stored_, into);
    text_.resize(before + (done.ok() ? done->written : 0));
    if (!done.ok()) return Damaged(done.status().message());
    if (done->other) return Damaged("its gzip data has something else behind it");
    stored_ = stored_.subspan(done->read);
    TickProgress();
    if (done->written > 0) return true;
    if (!stored_.empty()) continue;
    ASSIGN_OR_RETURN(const bool more, ReadPiece());
    if (more) continue;
    if (!unpack_->ended()) return Damaged("its gzip data is cut off");
    return false;
  }
}

absl::StatusOr<bool> LineReader::ReadPiece() {
  ASSIGN_OR_RETURN(const size_t count, read_(piece_));
  stored_ = std::span(piece_).first(count);
  return count > 0;
}

}  // namespace stagecoach
