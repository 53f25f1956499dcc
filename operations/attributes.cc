#include "operations/attributes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/suggest.h"

namespace stagecoach {
namespace {

std::string FormatValue(const AttributeValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* count = std::get_if<int64_t>(&value)) return absl::StrCat(*count);
  return absl::StrCat(std::get<double>(value));
}

bool IsNothing(const AttributeValue& value) {
  return std::visit([](auto v) { return v == decltype(v){}; }, value);
}

const char* KindName(const bool&) { return "true or false"; }
const char* KindName(const int64_t&) { return "a whole number"; }
const char* KindName(const double&) { return "a number"; }

}  // namespace

void Attributes::Set(std::string_view name, AttributeValue value) {
  for (Entry& entry : entries_) {
    if (entry.name != name) continue;
    entry.value = value;
    return;
  }
  entries_.push_back({std::string(name), value});
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

template <typename T>
bool AttributeGetter::Take(std::string_view name, T& value) {
  known_.push_back(name);
  const AttributeValue* found = attributes_.Find(name);
  if (found == nullptr) return true;  // the default, which the checks below look at too
  const T* typed = std::get_if<T>(found);
  if (typed == nullptr) {
    Refuse(name, FormatValue(*found), KindName(value));
    return false;
  }
  value = *typed;
  return true;
}

void AttributeGetter::Refuse(std::string_view name, const std::string& value,
                             std::string_view allowed) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(prefix_, std::string(name), ": ", value, "; must be ", std::string(allowed)));
}

void AttributeGetter::Flag(std::string_view name, bool& value) { Take(name, value); }

void AttributeGetter::Count(std::string_view name, int64_t& value, int64_t least, int64_t most) {
  if (!Take(name, value)) return;
  if (value < least) Refuse(name, absl::StrCat(value), absl::StrCat(">= ", least));
  if (value > most) Refuse(name, absl::StrCat(value), absl::StrCat("<= ", most));
}

void AttributeGetter::Rate(std::string_view name, double& value) {
  if (!Take(name, value) || (value >= 0.0 && value < 1.0)) return;
  Refuse(name, absl::StrCat(value), "a number in [0, 1)");
}

void AttributeGetter::Between(std::string_view name, double& value, double least, double most) {
  if (!Take(name, value) || (value >= least && value <= most)) return;
  Refuse(name, absl::StrCat(value), absl::StrCat("a number in [", least, ", ", most, "]"));
}

void AttributeGetter::ZeroOrBetween(std::string_view name, double& value, double least,
                                    double most) {
  if (!Take(name, value) || value == 0.0 || (value >= least && value <= most)) return;
  Refuse(name, absl::StrCat(value), absl::StrCat("0 or a number in [", least, ", ", most, "]"));
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
