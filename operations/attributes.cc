#include "operations/attributes.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"
#include "base/errors/suggest.h"

namespace stagecoach {
namespace {

constexpr size_t kQuotedText = 80;  // of a text in an error

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::CEscape(text.substr(0, kQuotedText)),
                      text.size() > kQuotedText ? "...\"" : "\"");
}

bool IsWord(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./").find(c) != std::string_view::npos;
  });
}

// How a value is written, and what it is called: an overload each.
std::string Written(bool flag) { return flag ? "true" : "false"; }
std::string Written(int64_t count) { return absl::StrCat(count); }
std::string Written(double number) { return absl::StrCat(number); }
std::string Written(const std::string& text) {
  return IsWord(text) ? text : absl::StrCat("\"", absl::CEscape(text), "\"");
}
std::string Written(const std::vector<int64_t>& counts) {
  return absl::StrCat("[", absl::StrJoin(counts, ","), "]");
}
std::string Written(const std::vector<double>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}
std::string Written(const std::vector<std::string>& texts) {
  const auto append = [](std::string* out, const std::string& text) { *out += Written(text); };
  return absl::StrCat("[", absl::StrJoin(texts, ",", append), "]");
}

const char* KindName(bool) { return "true or false"; }
const char* KindName(int64_t) { return "a whole number"; }
const char* KindName(double) { return "a number"; }
const char* KindName(const std::string&) { return "a text"; }
const char* KindName(const std::vector<int64_t>&) { return "a list of whole numbers"; }
const char* KindName(const std::vector<double>&) { return "a list of numbers"; }
const char* KindName(const std::vector<std::string>&) { return "a list of texts"; }

std::string FormatValue(const AttributeValue& value) {
  return std::visit([](const auto& v) { return Written(v); }, value);
}

bool IsNothing(const AttributeValue& value) {
  return std::visit([](const auto& v) { return v == std::decay_t<decltype(v)>{}; }, value);
}

std::string Listed(ChoiceNames names) {
  std::string list;
  for (const std::string_view name : names) {
    const char* const separator = list.empty() ? "" : name == names.end()[-1] ? " or " : ", ";
    absl::StrAppend(&list, separator, std::string(name));
  }
  return list;
}

}  // namespace

void Attributes::Set(std::string_view name, AttributeValue value) {
  for (Entry& entry : entries_) {
    if (entry.name != name) continue;
    entry.value = std::move(value);
    return;
  }
  entries_.push_back({std::string(name), std::move(value)});
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return &entry.value;
  }
  return nullptr;
}

std::string FormatAttributes(const Attributes& attributes) {
  std::string text;
  for (const Attributes::Entry& entry : attributes.entries()) {
    if (IsNothing(entry.value)) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", entry.name, "=", FormatValue(entry.value));
  }
  return text;
}

std::string AttributeSetter::NameOfChoice(size_t value, ChoiceNames names) {
  CHECK_LT(value, names.size()) << "a choice without a name";
  return std::string(names.begin()[value]);
}

template <typename T>
bool AttributeGetter::Take(std::string_view name, T& value) {
  known_.push_back(name);
  const AttributeValue* found = attributes_.Find(name);
  if (found == nullptr) return true;  // the default, which the checks below look at too
  const T* typed = std::get_if<T>(found);
  if (typed == nullptr) {
    Refuse(name, FormatValue(*found), absl::StrCat("must be ", KindName(value)));
    return false;
  }
  value = *typed;
  return true;
}

void AttributeGetter::Refuse(std::string_view name, const std::string& value,
                             std::string_view remedy) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(prefix_, std::string(name), ": ", value, "; ", std::string(remedy)));
}

void AttributeGetter::Flag(std::string_view name, bool& value) { Take(name, value); }

void AttributeGetter::CheckCount(const std::string& name, int64_t value, int64_t least,
                                 int64_t most) {
  if (value < least) Refuse(name, absl::StrCat(value), absl::StrCat("must be >= ", least));
  if (value > most) Refuse(name, absl::StrCat(value), absl::StrCat("must be <= ", most));
}

void AttributeGetter::Count(std::string_view name, int64_t& value, int64_t least, int64_t most) {
  if (Take(name, value)) CheckCount(std::string(name), value, least, most);
}

// Of comparisons with a number that is none no one holds.
void AttributeGetter::Rate(std::string_view name, double& value) {
  if (!Take(name, value) || (value >= 0.0 && value < 1.0)) return;
  Refuse(name, absl::StrCat(value), "must be a number in [0, 1)");
}

void AttributeGetter::Between(std::string_view name, double& value, double least, double most) {
  if (!Take(name, value) || (value >= least && value <= most)) return;
  Refuse(name, absl::StrCat(value), absl::StrCat("must be a number in [", least, ", ", most, "]"));
}

void AttributeGetter::ZeroOrBetween(std::string_view name, double& value, double least,
                                    double most) {
  if (!Take(name, value) || value == 0.0 || (value >= least && value <= most)) return;
  Refuse(name, absl::StrCat(value),
         absl::StrCat("must be 0 or a number in [", least, ", ", most, "]"));
}

void AttributeGetter::Positive(std::string_view name, double& value, double most) {
  if (!Take(name, value) || (value > 0.0 && value <= most)) return;
  Refuse(name, absl::StrCat(value), absl::StrCat("must be a number in (0, ", most, "]"));
}

void AttributeGetter::Text(std::string_view name, std::string& value,
                           std::string_view unless_empty) {
  if (Take(name, value)) CheckText(std::string(name), value, unless_empty);
}

void AttributeGetter::CheckText(const std::string& name, const std::string& value,
                                std::string_view unless_empty) {
  if (value.empty() && !unless_empty.empty()) Refuse(name, "\"\"", unless_empty);
  if (value.size() > kMaxText || value.find('\0') != std::string::npos) {
    Refuse(name, absl::StrCat(value.size(), " bytes"),
           absl::StrCat("must be at most ", kMaxText, " bytes without NUL"));
  }
}

bool AttributeGetter::CheckEntries(std::string_view name, size_t entries, size_t most_entries) {
  if (entries <= most_entries) return true;
  Refuse(name, absl::StrCat(entries, " entries"), absl::StrCat("must be at most ", most_entries));
  return false;
}

void AttributeGetter::Counts(std::string_view name, std::vector<int64_t>& value, int64_t least,
                             int64_t most, size_t most_entries) {
  if (!Take(name, value) || !CheckEntries(name, value.size(), most_entries)) return;
  for (size_t i = 0; i < value.size(); ++i) {
    CheckCount(absl::StrCat(std::string(name), "[", i, "]"), value[i], least, most);
  }
}

void AttributeGetter::Weights(std::string_view name, std::vector<double>& value, double least,
                              double most, size_t most_entries) {
  if (!Take(name, value) || !CheckEntries(name, value.size(), most_entries)) return;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == 0.0 || (value[i] >= least && value[i] <= most)) continue;
    Refuse(absl::StrCat(std::string(name), "[", i, "]"), absl::StrCat(value[i]),
           absl::StrCat("must be 0 or a number in [", least, ", ", most, "]"));
  }
}

void AttributeGetter::Texts(std::string_view name, std::vector<std::string>& value,
                            size_t most_entries, std::string_view unless_empty) {
  if (!Take(name, value) || !CheckEntries(name, value.size(), most_entries)) return;
  for (size_t i = 0; i < value.size(); ++i) {
    CheckText(absl::StrCat(std::string(name), "[", i, "]"), value[i], unless_empty);
  }
}

std::optional<size_t> AttributeGetter::TakeChoice(std::string_view name, ChoiceNames names) {
  std::string value;
  if (!Take(name, value)) return std::nullopt;
  if (attributes_.Find(name) == nullptr) return std::nullopt;  // the default
  const auto* const found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::vector<std::string> known(names.begin(), names.end());
  Refuse(name, Quoted(value), absl::StrCat("must be ", Listed(names), DidYouMean(value, known)));
  return std::nullopt;
}

absl::Status AttributeGetter::Finish() const {
  if (!status_.ok()) return status_;
  for (const Attributes::Entry& entry : attributes_.entries()) {
    if (std::find(known_.begin(), known_.end(), entry.name) != known_.end()) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    return absl::InvalidArgumentError(
        absl::StrCat(prefix_, entry.name, " is not known", Suggestion(entry.name, known)));
  }
  return absl::OkStatus();
}

}  // namespace stagecoach
