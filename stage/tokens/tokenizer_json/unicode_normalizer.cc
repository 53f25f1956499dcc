#include "stage/tokens/tokenizer_json/unicode_normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

constexpr std::array<const char*, 4> kFormNames = {"NFC", "NFD", "NFKC", "NFKD"};
constexpr size_t kMostNormalizers = 16;

// By UnicodeForm.
using Normalizers = std::array<std::unique_ptr<const icu::Normalizer2>, 4>;

Normalizers MakeNormalizers() {
  UErrorCode code = U_ZERO_ERROR;
  auto* const known = new icu::UnicodeSet(u"[:age=9.0:]", code);
  CHECK(U_SUCCESS(code)) << u_errorName(code);
  known->freeze();
  const std::array<const icu::Normalizer2*, 4> all = {
      icu::Normalizer2::getNFCInstance(code), icu::Normalizer2::getNFDInstance(code),
      icu::Normalizer2::getNFKCInstance(code), icu::Normalizer2::getNFKDInstance(code)};
  CHECK(U_SUCCESS(code)) << u_errorName(code);
  Normalizers filtered;
  for (size_t i = 0; i < all.size(); ++i) {
    filtered[i] = std::make_unique<const icu::FilteredNormalizer2>(*all[i], *known);
  }
  return filtered;
}

const icu::Normalizer2& NormalizerOf(UnicodeForm form) {
  static const auto* const all = new Normalizers(MakeNormalizers());
  return *(*all)[static_cast<size_t>(form)];
}

absl::Status AddForms(const JsonField& field, std::vector<UnicodeForm>* forms) {
  ASSIGN_OR_RETURN(const std::string type, field.Type());
  if (type == "Sequence") {
    ASSIGN_OR_RETURN(const std::vector<JsonField> items, field.Of("normalizers").Items());
    for (const JsonField& item : items) RETURN_IF_ERROR(AddForms(item, forms));
    return absl::OkStatus();
  }
  const auto* const found = std::ranges::find(kFormNames, type);
  if (found == kFormNames.end() || forms->size() == kMostNormalizers) {
    return field.Of("type").Refused(
        "is not supported: normalizers are NFC, NFD, NFKC, NFKD, and a Sequence of them");
  }
  forms->push_back(static_cast<UnicodeForm>(found - kFormNames.begin()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UnicodeNormalizer> UnicodeNormalizer::Make(const JsonField& field) {
  UnicodeNormalizer normalizer;
  if (!field.missing()) RETURN_IF_ERROR(AddForms(field, &normalizer.forms_));
  return normalizer;
}

UnicodeNormalizer UnicodeNormalizer::Of(UnicodeForm form) {
  UnicodeNormalizer normalizer;
  normalizer.forms_ = {form};
  return normalizer;
}

std::string UnicodeNormalizer::Normalize(std::string_view text) const {
  std::string normalized(text);
  const auto is_ascii = [](char byte) { return static_cast<uint8_t>(byte) < 0x80; };
  if (forms_.empty() || std::ranges::all_of(text, is_ascii)) return normalized;
  for (const UnicodeForm form : forms_) {
    std::string next;
    icu::StringByteSink<std::string> sink(&next);
    UErrorCode code = U_ZERO_ERROR;
    NormalizerOf(form).normalizeUTF8(
        0, icu::StringPiece(normalized.data(), static_cast<int32_t>(normalized.size())), sink,
        nullptr, code);
    CHECK(U_SUCCESS(code)) << u_errorName(code);
    normalized = std::move(next);
  }
  return normalized;
}

std::string UnicodeNormalizer::name() const {
  return absl::StrJoin(forms_, ", ", [](std::string* text, UnicodeForm form) {
    absl::StrAppend(text, kFormNames[static_cast<size_t>(form)]);
  });
}

}  // namespace stagecoach
