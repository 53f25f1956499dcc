#include "stage/data/parallel/pair_set.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/data/parallel/job_tokenizer.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPairs = std::numeric_limits<int32_t>::max();

std::string WhereLine(const std::string& where, int64_t line) {
  return absl::StrCat(where, ", line ", line);
}

std::string DigestLine(const std::string& field, const LineIds& ids) {
  return absl::StrCat(field, " ", ids.stored_bytes, " ", ids.digest, "\n");
}

absl::StatusOr<int64_t> CountLines(const DataRoots& roots, const SentenceFile& file) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LineFile> lines,
                   LineFile::Open(roots, file.field, file.path, SentenceLines()));
  for (;;) {
    ASSIGN_OR_RETURN(const auto line, lines->Next());
    if (!line.has_value()) return lines->line();
    TickProgress();
  }
}

// The tag, if there is one, and so many ids from `begin` on.
absl::StatusOr<std::vector<int32_t>> ReadIds(const TextTokens& ids, int64_t begin,
                                             std::optional<int32_t> tag, int64_t pieces) {
  std::vector<int32_t> read;
  read.reserve(static_cast<size_t>(pieces) + 2);
  if (tag.has_value()) read.push_back(*tag);
  const size_t before = read.size();
  read.resize(before + static_cast<size_t>(pieces));
  const absl::Status status = ids.Read(begin, std::span(read).subspan(before));
  // No record is damaged: the next load makes the ids again.
  if (!status.ok()) return absl::UnavailableError(status.message());
  return read;
}

}  // namespace

// One call of Read.
class PairSet::Reading {
 public:
  Reading(PairSet* set, const DataRoots& roots, const From& from, std::optional<int32_t> tag)
      : set_(*set), options_(set->options_), roots_(roots), from_(from), tag_(tag) {
    const bool tabs = from.target_path.empty();
    sources_file_ = {.field = from.field,
                     .path = from.path,
                     .part = tabs ? LinePart::kBeforeTab : LinePart::kWhole,
                     .other_field = from.target_field,
                     .survey_bytes = options_.survey_bytes};
    targets_file_ = sources_file_;
    if (tabs) {
      targets_file_.part = LinePart::kBehindTab;
    } else {
      targets_file_.field = from.target_field;
      targets_file_.path = from.target_path;
    }
  }

  absl::StatusOr<File> All() {
    // Before the sources are encoded, which may take long.
    RETURN_IF_ERROR(OpenLines(targets_file_).status());
    ASSIGN_OR_RETURN(sources_, OpenLineIds(roots_, sources_file_, *options_.tokenizer));
    ASSIGN_OR_RETURN(targets_, OpenLineIds(roots_, targets_file_, *options_.tokenizer));
    // Both sides of one file are read one after the other.
    const bool one_file = from_.target_path.empty() && !options_.survey_bytes.has_value();
    if (one_file && sources_.digest != targets_.digest) return ChangedWhileRead(sources_.where);
    file_.where = sources_.where;
    file_.first = std::ssize(set_.lengths_);
    file_.whole = sources_.whole && targets_.whole;
    set_.kept_.push_back({.first = file_.first,
                          .sources = options_.keep_sources ? sources_.ids : nullptr,
                          .targets = options_.keep_targets ? targets_.ids : nullptr,
                          .tag = tag_});
    RETURN_IF_ERROR(AddPairs());
    file_.count = std::ssize(kept_);
    HoldOut();
    if (options_.keep_texts && (from_.held_out || !options_.test_files)) {
      RETURN_IF_ERROR(KeepTexts(from_.held_out ? file_.count : file_.held_out));
    }
    file_.stored_bytes = sources_.stored_bytes;
    file_.digest = DigestLine(from_.field, sources_);
    if (!from_.target_path.empty()) {
      file_.stored_bytes += targets_.stored_bytes;
      file_.digest += DigestLine(from_.target_field, targets_);
    }
    return std::move(file_);
  }

 private:
  using Line = std::optional<std::string_view>;
  using Ids = std::span<const int32_t>;

  absl::StatusOr<std::unique_ptr<LineFile>> OpenLines(const SentenceFile& file) const {
    return LineFile::Open(roots_, file.field, file.path, SentenceLines());
  }

  absl::Status AddPairs() {
    LineIdsReader sources(sources_), targets(targets_);
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<Ids> source, sources.Next());
      ASSIGN_OR_RETURN(const std::optional<Ids> target, targets.Next());
      if (!source.has_value() || !target.has_value()) {
        // A survey may have left out the lines of one that goes on in the other.
        const bool ends =
            (source.has_value() || sources_.whole) && (target.has_value() || targets_.whole);
        return ends && source.has_value() != target.has_value() ? UnequalCounts()
                                                                : absl::OkStatus();
      }
      ++file_.lines;
      RETURN_IF_ERROR(Add(*source, sources.begin(), *target, targets.begin()));
    }
  }

  // One of them has ended before the other.
  absl::Status UnequalCounts() const {
    ASSIGN_OR_RETURN(const int64_t sources, CountLines(roots_, sources_file_));
    ASSIGN_OR_RETURN(const int64_t targets, CountLines(roots_, targets_file_));
    return absl::InvalidArgumentError(
        absl::StrCat(sources_.where, " has ", sources, " lines, ", targets_.where, " has ", targets,
                     "; line i of one must translate line i of the other"));
  }

  absl::Status Add(Ids source, int64_t source_begin, Ids target, int64_t target_begin) {
    if (source.empty() && target.empty()) {
      ++file_.empty;
      return absl::OkStatus();
    }
    if (source.empty() || target.empty()) return OneIsEmpty(source.empty());
    const int64_t source_length = std::ssize(source) + (tag_.has_value() ? 2 : 1);
    const int64_t target_length = std::ssize(target) + 1;
    if (source_length > options_.limits.source || target_length > options_.limits.target) {
      too_long_.push_back(file_.lines);
      return absl::OkStatus();
    }
    kept_.push_back(file_.lines);
    if (std::ssize(set_.lengths_) == kMostPairs) {
      return absl::InvalidArgumentError(absl::StrCat(WhereLine(sources_.where, file_.lines),
                                                     ": over ", kMostPairs, " pairs; give fewer"));
    }
    set_.lengths_.push_back(
        {static_cast<int32_t>(source_length), static_cast<int32_t>(target_length)});
    if (options_.keep_sources) set_.source_begins_.push_back(source_begin);
    if (options_.keep_targets) set_.target_begins_.push_back(target_begin);
    return absl::OkStatus();
  }

  absl::Status OneIsEmpty(bool source) const {
    return absl::InvalidArgumentError(
        absl::StrCat(WhereLine(source ? sources_.where : targets_.where, file_.lines), ": the ",
                     source ? "source" : "target", " is empty and the ",
                     source ? "target" : "source", " is not; remove both, or fill it in"));
  }

  // The last 2 % of the lines, and at least one. Lines are held out by their number at the end.
  int64_t LastTrained() const { return file_.lines - std::max<int64_t>(file_.lines / 50, 1); }

  void HoldOut() {
    const auto behind = [this](const std::vector<int64_t>& lines) {
      return lines.end() - std::upper_bound(lines.begin(), lines.end(), LastTrained());
    };
    file_.too_long = std::ssize(too_long_);
    file_.held_out = behind(kept_);
    file_.held_out_too_long = behind(too_long_);
  }

  // Reads the texts of the last `count` pairs.
  absl::Status KeepTexts(int64_t count) {
    const std::span<const int64_t> lines = std::span(kept_).last(static_cast<size_t>(count));
    file_.texts.resize(static_cast<size_t>(count));
    RETURN_IF_ERROR(ReadTexts(sources_file_, sources_, lines, &Text::source));
    return ReadTexts(targets_file_, targets_, lines, &Text::target);
  }

  absl::Status ReadTexts(const SentenceFile& file, const LineIds& ids,
                         std::span<const int64_t> lines, std::string Text::*side) {
    ASSIGN_OR_RETURN(const std::unique_ptr<LineFile> read, OpenLines(file));
    for (size_t i = 0; i < lines.size() || ids.whole;) {
      ASSIGN_OR_RETURN(const Line line, read->Next());
      if (!line.has_value()) break;
      TickProgress();
      if (i == lines.size() || read->line() != lines[i]) continue;
      ASSIGN_OR_RETURN(const std::string_view part, PartOfLine(file, *read, *line));
      file_.texts[i++].*side = part;
    }
    if (!ids.whole || read->Digest() == ids.digest) return absl::OkStatus();
    return ChangedWhileRead(ids.where);
  }

  PairSet& set_;
  const Options& options_;
  const DataRoots& roots_;
  const From& from_;
  const std::optional<int32_t> tag_;
  SentenceFile sources_file_, targets_file_;
  LineIds sources_, targets_;
  File file_;
  std::vector<int64_t> kept_, too_long_;  // their lines
};

absl::StatusOr<PairSet::File> PairSet::Read(const DataRoots& roots, const From& from) {
  std::optional<int32_t> tag;
  if (!from.tag.empty()) {
    ASSIGN_OR_RETURN(tag, TagId(*options_.tokenizer, from.tag_field, from.tag));
  }
  return Reading(this, roots, from, tag).All();
}

const PairSet::Kept& PairSet::KeptOf(int64_t pair) const {
  const auto behind =
      std::upper_bound(kept_.begin(), kept_.end(), pair,
                       [](int64_t one, const Kept& kept) { return one < kept.first; });
  CHECK(behind != kept_.begin()) << "pair " << pair;
  return *std::prev(behind);
}

absl::StatusOr<std::vector<int32_t>> PairSet::ReadSource(int64_t pair) const {
  const Kept& kept = KeptOf(pair);
  const auto i = static_cast<size_t>(pair);
  const int64_t pieces = lengths_[i].source - (kept.tag.has_value() ? 2 : 1);
  ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                   ReadIds(*kept.sources, source_begins_[i], kept.tag, pieces));
  ids.push_back(options_.tokenizer->end());
  return ids;
}

absl::StatusOr<std::vector<int32_t>> PairSet::ReadTarget(int64_t pair) const {
  const auto i = static_cast<size_t>(pair);
  return ReadIds(*KeptOf(pair).targets, target_begins_[i], std::nullopt, lengths_[i].target - 1);
}

}  // namespace stagecoach
