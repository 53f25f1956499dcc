#include "stage/data/parallel/line_ids.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/threads/progress.h"
#include "plan/data/parallel_text.h"
#include "stage/data/cache/token_cache.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/opened_text.h"

namespace stagecoach {
namespace {

// Raise it when the same lines and tokenizer give other ids.
constexpr int kLineIdsVersion = 1;
constexpr size_t kIdsAtOnce = size_t{256} << 10;

const char* PartName(LinePart part) {
  switch (part) {
    case LinePart::kBeforeTab:
      return "source";
    case LinePart::kBehindTab:
      return "target";
    case LinePart::kWhole:
      break;
  }
  return "line";
}

// All that the ids depend on beside the file.
std::string Facts(const SentenceFile& file, const Tokenizer& tokenizer) {
  return absl::StrCat("lines ", kLineIdsVersion, " ", kTokenCacheVersion, "\ntokenizer ",
                      tokenizer.digest(), "\npart ", PartName(file.part), "\n");
}

// Hands on the ids of all lines, each with the mark behind it. False: it read `most` bytes of text
// and the file goes on.
absl::StatusOr<bool> EncodeLines(const SentenceFile& file, LineFile& lines,
                                 const Tokenizer& tokenizer, int32_t mark, int64_t most,
                                 TakeIds take) {
  std::vector<int32_t> buffered;
  bool whole = true;
  while (whole) {
    ASSIGN_OR_RETURN(const std::optional<std::string_view> line, lines.Next());
    if (!line.has_value()) break;
    TickProgress();
    ASSIGN_OR_RETURN(const std::string_view part, PartOfLine(file, lines, *line));
    ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                     Annotate(tokenizer.Encode(part), lines.WhereLine()));
    buffered.insert(buffered.end(), ids.begin(), ids.end());
    buffered.push_back(mark);
    whole = lines.text_bytes() < most;
    if (buffered.size() < kIdsAtOnce) continue;
    RETURN_IF_ERROR(take(buffered, lines.read_bytes()));
    buffered.clear();
  }
  RETURN_IF_ERROR(take(buffered, lines.read_bytes()));
  return whole;
}

absl::StatusOr<LineIds> Survey(const SentenceFile& file, LineFile& lines,
                               const Tokenizer& tokenizer, LineIds found) {
  std::vector<int32_t> all;
  const auto take = [&all](std::span<const int32_t> ids, int64_t) {
    all.insert(all.end(), ids.begin(), ids.end());
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(found.whole,
                   EncodeLines(file, lines, tokenizer, found.mark, *file.survey_bytes, take));
  found.ids = IdsInMemory(std::move(all));
  found.digest = lines.Digest();
  return found;
}

}  // namespace

LineRules SentenceLines() {
  return {.check_head = CheckSentencesHead,
          .most_bytes = kMostSentenceBytes,
          .shorten = "cut it into sentences"};
}

absl::Status ChangedWhileRead(const std::string& where) {
  return absl::FailedPreconditionError(absl::StrCat(
      where, ": was written to while the job reads it; put what is new into another file"));
}

absl::StatusOr<std::string_view> PartOfLine(const SentenceFile& file, const LineFile& lines,
                                            std::string_view line) {
  if (file.part == LinePart::kWhole) return line;
  const auto tabs = std::count(line.begin(), line.end(), '\t');
  if (tabs != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        lines.WhereLine(), ": has ", tabs,
        " tabs; must have one, between source and target; or name the targets' file in ",
        file.other_field));
  }
  const size_t tab = line.find('\t');
  return file.part == LinePart::kBeforeTab ? line.substr(0, tab) : line.substr(tab + 1);
}

absl::StatusOr<LineIds> OpenLineIds(const DataRoots& roots, const SentenceFile& file,
                                    const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineFile> lines,
                   LineFile::Open(roots, file.field, file.path, SentenceLines()));
  LineIds found{
      .mark = tokenizer.ids(), .where = lines->Where(), .stored_bytes = lines->stored_bytes()};
  if (file.survey_bytes.has_value()) return Survey(file, *lines, tokenizer, std::move(found));
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> stored,
                     OpenedFile::Open(roots, file.field, file.path));
    ASSIGN_OR_RETURN(found.digest, stored->Digest());
  }
  const TokenCacheKey key{.text = found.digest, .tokenizer = Sha256Hex(Facts(file, tokenizer))};
  const auto make = [&](TakeIds take) -> absl::Status {
    const int64_t all = std::numeric_limits<int64_t>::max();
    RETURN_IF_ERROR(EncodeLines(file, *lines, tokenizer, found.mark, all, take).status());
    return lines->Digest() == found.digest ? absl::OkStatus() : ChangedWhileRead(found.where);
  };
  const EncodedFile encoded{found.where, lines->name(), found.stored_bytes};
  ASSIGN_OR_RETURN(found.ids, MadeOnce(roots.cache_folder(), encoded, key, found.mark + 1, make));
  return found;
}

absl::StatusOr<std::optional<std::span<const int32_t>>> LineIdsReader::Next() {
  TickProgress();
  for (size_t looked_at = next_;;) {
    const auto mark =
        std::find(buffer_.begin() + static_cast<int64_t>(looked_at), buffer_.end(), lines_.mark);
    if (mark != buffer_.end()) {
      const auto end = static_cast<size_t>(mark - buffer_.begin());
      const std::span<const int32_t> ids = std::span(buffer_).subspan(next_, end - next_);
      begin_ = read_ - std::ssize(buffer_) + static_cast<int64_t>(next_);
      next_ = end + 1;
      ++line_;
      return ids;
    }
    looked_at = buffer_.size() - next_;  // Fill moves the begun line to the front
    if (read_ == lines_.ids->tokens()) {
      if (looked_at == 0) return std::nullopt;
      return absl::UnavailableError(
          absl::StrCat(lines_.where, ": its kept tokens end within line ", line_ + 1));
    }
    RETURN_IF_ERROR(Fill());
  }
}

absl::Status LineIdsReader::Fill() {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<int64_t>(std::exchange(next_, 0)));
  const size_t before = buffer_.size();
  const int64_t count = std::min<int64_t>(kIdsAtOnce, lines_.ids->tokens() - read_);
  buffer_.resize(before + static_cast<size_t>(count));
  // A kept file that was cut meanwhile is made again by the next load.
  if (const absl::Status status = lines_.ids->Read(read_, std::span(buffer_).subspan(before));
      !status.ok()) {
    return absl::UnavailableError(absl::StrCat(lines_.where, ": ", status.message()));
  }
  read_ += count;
  return absl::OkStatus();
}

}  // namespace stagecoach
