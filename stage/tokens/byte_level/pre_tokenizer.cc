#include "stage/tokens/byte_level/pre_tokenizer.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "stage/tokens/byte_level/byte_characters.h"
#include "stage/tokens/byte_level/split_behavior.h"
#include "stage/tokens/tokenizer_json/unicode_versions.h"

namespace stagecoach {
namespace {

constexpr size_t kMostSteps = 32;
constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Cuts each part by itself. find: (text of the part, its matches) -> Status.
template <typename Find>
absl::Status CutParts(CutWords* cut, SplitBehavior behavior, bool invert, Find find) {
  std::vector<ByteRange> parts, matches;
  for (const ByteRange& part : cut->parts) {
    const size_t bytes = part.end - part.begin;
    RETURN_IF_ERROR(find(std::string_view(cut->text).substr(part.begin, bytes), &matches));
    for (const ByteRange& more : SplitParts(bytes, matches, behavior, invert)) {
      parts.push_back({part.begin + more.begin, part.begin + more.end});
    }
  }
  cut->parts = std::move(parts);
  return absl::OkStatus();
}

absl::Status CutAtPattern(CutWords* cut, const Pattern& pattern, SplitBehavior behavior,
                          bool invert) {
  PatternFinder finder(pattern);
  return CutParts(cut, behavior, invert,
                  [&](std::string_view text, std::vector<ByteRange>* matches) {
                    return finder.Find(text, matches);
                  });
}

// Writes the text anew, part by part. append: (part, text) appends what it becomes.
template <typename Append>
void WriteParts(CutWords* cut, Append append) {
  CutWords written;
  written.text.reserve(cut->text.size() + cut->text.size() / 2);
  for (const ByteRange& part : cut->parts) {
    const size_t begin = written.text.size();
    append(std::string_view(cut->text).substr(part.begin, part.end - part.begin), &written.text);
    written.parts.push_back({begin, written.text.size()});
  }
  *cut = std::move(written);
}

class SplitStep final : public PreTokenizerStep {
 public:
  SplitStep(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  absl::Status Run(CutWords* cut) const override {
    return CutAtPattern(cut, pattern_, behavior_, invert_);
  }

 private:
  const Pattern pattern_;
  const SplitBehavior behavior_;
  const bool invert_;
};

class DigitsStep final : public PreTokenizerStep {
 public:
  explicit DigitsStep(bool individual)
      : behavior_(individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous) {}
  absl::Status Run(CutWords* cut) const override {
    return CutParts(cut, behavior_, false, &FindDigits);
  }

 private:
  static absl::Status FindDigits(std::string_view text, std::vector<ByteRange>* matches) {
    matches->clear();
    const auto size = static_cast<int32_t>(text.size());
    for (int32_t i = 0; i < size;) {
      const auto begin = static_cast<size_t>(i);
      UChar32 character = 0;
      U8_NEXT_OR_FFFD(text.data(), i, size, character);
      if (!IsUnicodeNumber(static_cast<char32_t>(character))) continue;
      matches->push_back({begin, static_cast<size_t>(i)});
    }
    return absl::OkStatus();
  }

  const SplitBehavior behavior_;
};

class ByteLevelStep final : public PreTokenizerStep {
 public:
  ByteLevelStep(bool add_space, std::unique_ptr<const Pattern> pattern)
      : add_space_(add_space), pattern_(std::move(pattern)) {}

  absl::Status Run(CutWords* cut) const override {
    if (add_space_) {
      WriteParts(cut, [](std::string_view part, std::string* text) {
        if (!part.starts_with(' ')) text->push_back(' ');
        text->append(part);
      });
    }
    if (pattern_ != nullptr) {
      RETURN_IF_ERROR(CutAtPattern(cut, *pattern_, SplitBehavior::kIsolated, false));
    }
    WriteParts(cut, &AppendByteCharacters);
    return absl::OkStatus();
  }
  bool makes_bytes() const override { return true; }
  bool adds_space() const override { return add_space_; }

 private:
  const bool add_space_;
  const std::unique_ptr<const Pattern> pattern_;  // null: it cuts nothing
};

using Steps = std::vector<std::unique_ptr<const PreTokenizerStep>>;

absl::Status AddByteLevel(const JsonField& field, Steps* steps) {
  ASSIGN_OR_RETURN(const bool add_space, field.Of("add_prefix_space").Flag());
  ASSIGN_OR_RETURN(const bool use_regex, field.Of("use_regex").Flag(true));
  std::unique_ptr<const Pattern> pattern;
  if (use_regex) {
    ASSIGN_OR_RETURN(Pattern made, Pattern::OfRegex(kGpt2Pattern));
    pattern = std::make_unique<const Pattern>(std::move(made));
  }
  steps->push_back(std::make_unique<const ByteLevelStep>(add_space, std::move(pattern)));
  return absl::OkStatus();
}

absl::Status AddSplit(const JsonField& field, Steps* steps) {
  ASSIGN_OR_RETURN(const std::string name, field.Of("behavior").Text());
  const std::optional<SplitBehavior> behavior = SplitBehaviorNamed(name);
  if (!behavior.has_value()) {
    return field.Of("behavior")
        .Refused("must be Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
  }
  ASSIGN_OR_RETURN(const bool invert, field.Of("invert").Flag(false));
  const JsonField pattern = field.Of("pattern");
  const bool regex = !pattern.Of("Regex").missing();
  const JsonField text_field = pattern.Of(regex ? "Regex" : "String");
  if (text_field.missing()) return pattern.Refused("must be {\"Regex\": ...} or {\"String\": ...}");
  ASSIGN_OR_RETURN(const std::string text, text_field.Text());
  absl::StatusOr<Pattern> made = regex ? Pattern::OfRegex(text) : Pattern::OfText(text);
  if (!made.ok()) return text_field.Refused(std::string(made.status().message()));
  steps->push_back(std::make_unique<const SplitStep>(*std::move(made), *behavior, invert));
  return absl::OkStatus();
}

absl::Status AddSteps(const JsonField& field, Steps* steps) {
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (steps->size() == kMostSteps) {
    return field.Refused(
        absl::StrCat("is one more than the ", kMostSteps, " steps that are taken"));
  }
  if (type == "ByteLevel") {
    // Each makes two bytes or more of one that is not ASCII.
    if (std::ranges::any_of(*steps, [](const auto& step) { return step->makes_bytes(); })) {
      return field.Of("type").Refused("must stand once: take the second ByteLevel away");
    }
    return AddByteLevel(field, steps);
  }
  if (type == "Split") return AddSplit(field, steps);
  if (type == "Digits") {
    ASSIGN_OR_RETURN(const bool individual, field.Of("individual_digits").Flag(false));
    steps->push_back(std::make_unique<const DigitsStep>(individual));
    return absl::OkStatus();
  }
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("pretokenizers").Items());
    for (const JsonField& item : items) RETURN_IF_ERROR(AddSteps(item, steps));
    return absl::OkStatus();
  }
  return field.Of("type").Refused(
      "is not supported: pre-tokenizers are ByteLevel, Split, Digits, and a Sequence of them");
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Make(const JsonField& field) {
  PreTokenizer made;
  if (!field.missing()) RETURN_IF_ERROR(AddSteps(field, &made.steps_));
  if (std::ranges::none_of(made.steps_, [](const auto& step) { return step->makes_bytes(); })) {
    return field.Refused(
        "has no ByteLevel, and only byte-level BPE is supported; give such a tokenizer, or a "
        "SentencePiece model");
  }
  return made;
}

bool PreTokenizer::adds_space() const {
  return std::ranges::any_of(steps_, [](const auto& step) { return step->adds_space(); });
}

absl::StatusOr<CutWords> PreTokenizer::Run(std::string text) const {
  CutWords cut{std::move(text), {}};
  if (!cut.text.empty()) cut.parts.push_back({0, cut.text.size()});
  for (const auto& step : steps_) RETURN_IF_ERROR(step->Run(&cut));
  return cut;
}

}  // namespace stagecoach
