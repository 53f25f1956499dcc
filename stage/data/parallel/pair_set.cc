#include "stage/data/parallel/pair_set.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "base/threads/progress.h"
#include "stage/data/parallel/job_tokenizer.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostPairs = std::numeric_limits<int32_t>::max();

std::string DigestLine(const std::string& field, LineFile& file) {
  return absl::StrCat(field, " ", file.stored_bytes(), " ", file.Digest(), "\n");
}

}  // namespace

LineRules SentenceLines() {
  return {.check_head = CheckSentencesHead,
          .most_bytes = kMostSentenceBytes,
          .shorten = "cut it into sentences"};
}

// One call of Read.
class PairSet::Reading {
 public:
  Reading(PairSet* set, std::unique_ptr<LineFile> sources, std::unique_ptr<LineFile> targets,
          std::string target_field, std::optional<int32_t> tag, bool held_out)
      : set_(*set),
        options_(set->options_),
        sources_(std::move(sources)),
        targets_(std::move(targets)),
        target_field_(std::move(target_field)),
        tag_(tag),
        held_out_(held_out) {
    file_.where = sources_->Where();
    file_.first = std::ssize(set_.lengths_);
  }

  absl::StatusOr<File> All(const From& from) {
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<Pair> pair, Next());
      if (!pair.has_value()) break;
      ++file_.lines;
      RETURN_IF_ERROR(Add(*pair));
      TickProgress();
      file_.whole = TextBytes() < options_.most_bytes;
      if (!file_.whole) break;
    }
    file_.count = std::ssize(kept_);
    HoldOut();
    file_.stored_bytes = sources_->stored_bytes();
    file_.digest = DigestLine(from.field, *sources_);
    if (targets_ != nullptr) {
      file_.stored_bytes += targets_->stored_bytes();
      file_.digest += DigestLine(from.target_field, *targets_);
    }
    return std::move(file_);
  }

 private:
  using Line = std::optional<std::string_view>;
  struct Pair {
    std::string_view source, target;
  };

  LineFile& TargetFile() { return targets_ == nullptr ? *sources_ : *targets_; }
  int64_t TextBytes() { return std::max(sources_->text_bytes(), TargetFile().text_bytes()); }

  absl::StatusOr<std::optional<Pair>> Next() {
    ASSIGN_OR_RETURN(const Line source, sources_->Next());
    if (targets_ == nullptr) {
      if (!source.has_value()) return std::nullopt;
      ASSIGN_OR_RETURN(const Pair pair, AtTheTab(*source));
      return pair;
    }
    ASSIGN_OR_RETURN(const Line target, targets_->Next());
    if (source.has_value() != target.has_value()) return UnequalCounts();
    if (!source.has_value()) return std::nullopt;
    return Pair{*source, *target};
  }

  absl::StatusOr<Pair> AtTheTab(std::string_view line) const {
    const auto tabs = std::count(line.begin(), line.end(), '\t');
    if (tabs != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          sources_->WhereLine(), ": has ", tabs,
          " tabs; must have one, between source and target; or name the targets' file in ",
          target_field_));
    }
    const size_t tab = line.find('\t');
    return Pair{line.substr(0, tab), line.substr(tab + 1)};
  }

  // One of them has ended before the other.
  absl::Status UnequalCounts() {
    for (LineFile* const file : {sources_.get(), targets_.get()}) {
      for (;;) {
        ASSIGN_OR_RETURN(const Line line, file->Next());
        if (!line.has_value()) break;
      }
    }
    return absl::InvalidArgumentError(absl::StrCat(
        sources_->Where(), " has ", sources_->line(), " lines, ", targets_->Where(), " has ",
        targets_->line(), "; line i of one must translate line i of the other"));
  }

  absl::Status Add(const Pair& pair) {
    ASSIGN_OR_RETURN(std::vector<int32_t> source,
                     Annotate(options_.tokenizer->Encode(pair.source), sources_->WhereLine()));
    ASSIGN_OR_RETURN(const std::vector<int32_t> target,
                     Annotate(options_.tokenizer->Encode(pair.target), TargetFile().WhereLine()));
    if (source.empty() && target.empty()) {
      ++file_.empty;
      return absl::OkStatus();
    }
    if (source.empty() || target.empty()) return OneIsEmpty(source.empty());
    if (tag_.has_value()) source.insert(source.begin(), *tag_);
    source.push_back(options_.tokenizer->end());
    if (std::ssize(source) > options_.limits.source ||
        std::ssize(target) + 1 > options_.limits.target) {
      too_long_.push_back(file_.lines);
      return absl::OkStatus();
    }
    kept_.push_back(file_.lines);
    if (std::ssize(set_.lengths_) == kMostPairs) {
      return absl::InvalidArgumentError(
          absl::StrCat(sources_->WhereLine(), ": over ", kMostPairs, " pairs; give fewer"));
    }
    set_.lengths_.push_back(
        {static_cast<int32_t>(source.size()), static_cast<int32_t>(target.size()) + 1});
    if (options_.keep_sources) set_.sources_.Add(source);
    if (options_.keep_targets) set_.targets_.Add(target);
    if (options_.keep_texts && (held_out_ || !options_.test_files)) KeepText(pair);
    return absl::OkStatus();
  }

  // Lines are held out by their number at the end, which only grows.
  void KeepText(const Pair& pair) {
    texts_.push_back({std::string(pair.source), std::string(pair.target)});
    while (!held_out_ && !texts_.empty() && *(kept_.end() - std::ssize(texts_)) <= LastTrained()) {
      texts_.pop_front();
    }
  }

  absl::Status OneIsEmpty(bool source) {
    const LineFile& file = source ? *sources_ : TargetFile();
    return absl::InvalidArgumentError(
        absl::StrCat(file.WhereLine(), ": the ", source ? "source" : "target", " is empty and the ",
                     source ? "target" : "source", " is not; remove both, or fill it in"));
  }

  // The last 2 % of the lines, and at least one.
  int64_t LastTrained() const { return file_.lines - std::max<int64_t>(file_.lines / 50, 1); }

  void HoldOut() {
    const auto behind = [this](const std::vector<int64_t>& lines) {
      return lines.end() - std::upper_bound(lines.begin(), lines.end(), LastTrained());
    };
    file_.too_long = std::ssize(too_long_);
    file_.held_out = behind(kept_);
    file_.held_out_too_long = behind(too_long_);
    // Pairs that are left out may have come behind the last text.
    const int64_t wanted = held_out_ ? file_.count : file_.held_out;
    while (std::ssize(texts_) > wanted) texts_.pop_front();
    file_.texts.assign(std::make_move_iterator(texts_.begin()),
                       std::make_move_iterator(texts_.end()));
  }

  PairSet& set_;
  const Options& options_;
  const std::unique_ptr<LineFile> sources_, targets_;
  const std::string target_field_;
  const std::optional<int32_t> tag_;
  const bool held_out_;
  File file_;
  std::deque<Text> texts_;                // of the last ones in kept_
  std::vector<int64_t> kept_, too_long_;  // their lines
};

absl::StatusOr<PairSet::File> PairSet::Read(const DataRoots& roots, const From& from) {
  std::optional<int32_t> tag;
  if (!from.tag.empty()) {
    ASSIGN_OR_RETURN(tag, TagId(*options_.tokenizer, from.tag_field, from.tag));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<LineFile> sources,
                   LineFile::Open(roots, from.field, from.path, SentenceLines()));
  std::unique_ptr<LineFile> targets;
  if (!from.target_path.empty()) {
    ASSIGN_OR_RETURN(targets,
                     LineFile::Open(roots, from.target_field, from.target_path, SentenceLines()));
  }
  return Reading(this, std::move(sources), std::move(targets), from.target_field, tag,
                 from.held_out)
      .All(from);
}

}  // namespace stagecoach
