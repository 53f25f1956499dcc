#include "stage/tokens/byte_level/pattern.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>
#include <unicode/utf16.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "stage/tokens/byte_level/oniguruma_syntax.h"

namespace stagecoach {
namespace {

constexpr size_t kMostTextBytes = size_t{1} << 30;
// Of one search, in units of ICU: 10,000 steps that may be taken back. About a second.
constexpr int32_t kMostTime = 5'000;
constexpr int32_t kMostStackBytes = 16 << 20;

absl::Status Failed(UErrorCode code) {
  return absl::InvalidArgumentError(
      absl::StrCat("its pattern gives up on this text (", u_errorName(code),
                   "); give a tokenizer with a simpler pattern, or shorter lines"));
}

// Bytes of UTF-8 that a text in UTF-16 has, between two places.
size_t Utf8Bytes(const char16_t* text, int32_t from, int32_t to) {
  size_t bytes = 0;
  while (from < to) {
    UChar32 character = 0;
    U16_NEXT(text, from, to, character);
    bytes += character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  }
  return bytes;
}

}  // namespace

struct Pattern::Compiled {
  std::unique_ptr<icu::RegexPattern> regex;
};

struct PatternFinder::State {
  icu::UnicodeString text;  // of the matcher
  std::unique_ptr<icu::RegexMatcher> matcher;
};

Pattern::Pattern(std::unique_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

absl::StatusOr<Pattern> Pattern::OfRegex(std::string_view pattern) {
  ASSIGN_OR_RETURN(const std::string icu, IcuPattern(pattern));
  return Compile(icu);
}

absl::StatusOr<Pattern> Pattern::OfText(std::string_view text) {
  return Compile(IcuPatternOfText(text));
}

absl::StatusOr<Pattern> Pattern::Compile(const std::string& icu) {
  UErrorCode code = U_ZERO_ERROR;
  UParseError error;
  auto compiled = std::make_unique<Compiled>();
  compiled->regex.reset(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(icu), 0, error, code));
  if (U_SUCCESS(code)) return Pattern(std::move(compiled));
  return absl::InvalidArgumentError(
      absl::StrCat("a pattern that ICU refuses (", u_errorName(code), ")"));
}

PatternFinder::PatternFinder(const Pattern& pattern) : state_(std::make_unique<State>()) {
  UErrorCode code = U_ZERO_ERROR;
  state_->matcher.reset(pattern.compiled_->regex->matcher(code));
  state_->matcher->setTimeLimit(kMostTime, code);
  state_->matcher->setStackLimit(kMostStackBytes, code);
  CHECK(U_SUCCESS(code)) << u_errorName(code);
}

PatternFinder::~PatternFinder() = default;

// As the library finds them: behind an empty match it goes on at the next character, and an empty
// one right behind a match is none.
absl::Status PatternFinder::Find(std::string_view text, std::vector<ByteRange>* matches) {
  matches->clear();
  if (text.size() > kMostTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", text.size(), " bytes, of ",
                                                   kMostTextBytes, " at most; divide it"));
  }
  state_->text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
  const char16_t* const units = state_->text.getBuffer();
  const int32_t length = state_->text.length();
  const bool ascii = length == static_cast<int32_t>(text.size());
  icu::RegexMatcher& matcher = *state_->matcher;
  matcher.reset(state_->text);
  int32_t unit = 0;  // where `byte` is
  size_t byte = 0;
  const auto byte_of = [&](int32_t to) {
    byte += ascii ? static_cast<size_t>(to - unit) : Utf8Bytes(units, unit, to);
    unit = to;
    return byte;
  };
  int32_t from = 0, last_end = -1;
  while (from <= length) {
    UErrorCode code = U_ZERO_ERROR;
    const bool found = matcher.find(from, code) != 0;
    if (U_FAILURE(code)) return Failed(code);
    if (!found) break;
    const int32_t begin = matcher.start(code), end = matcher.end(code);
    CHECK(U_SUCCESS(code)) << u_errorName(code);
    if (begin == end && end == last_end) {
      if (from == length) break;
      U16_FWD_1(units, from, length);
      continue;
    }
    from = last_end = end;
    const size_t begin_byte = byte_of(begin);
    matches->push_back({begin_byte, byte_of(end)});
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
