#include "coordinator/loop/hidden_places.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace stagecoach {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// May stand within a path's last name or a host's.
bool IsOfAName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

bool IsNumeric(const std::string& text, size_t at) { return at < text.size() && IsDigit(text[at]); }

// Of "10.0.0.5:8101" at `at`: four numbers, a colon, a port. 0: there is none.
size_t NumericAddressAt(const std::string& text, size_t at) {
  if (at > 0 && (IsOfAName(text[at - 1]))) return 0;
  size_t end = at;
  for (const char separator : {'.', '.', '.', ':', '\0'}) {
    const size_t begin = end;
    while (IsNumeric(text, end)) ++end;
    if (end == begin || end - begin > 5) return 0;
    if (separator == '\0') return end - at;
    if (end >= text.size() || text[end] != separator) return 0;
    ++end;
  }
  return 0;
}

void Replace(std::string* text, std::string_view what, const std::string& by, bool (*ends)(char)) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at)) {
    const size_t end = at + what.size();
    const bool whole =
        (at == 0 || !IsOfAName((*text)[at - 1])) && (end == text->size() || ends((*text)[end]));
    if (whole) text->replace(at, what.size(), by);
    at += whole ? by.size() : what.size();
  }
}

}  // namespace

void HiddenPlaces::AddFolder(const std::string& path, const std::string& name) {
  if (path.size() > 1) folders_[path] = name;
}

void HiddenPlaces::AddAddress(const std::string& address, const std::string& name) {
  if (!address.empty()) addresses_[address] = name;
}

std::string HiddenPlaces::Hide(std::string text) const {
  // From the back: what is below another folder comes before it.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    Replace(&text, folder->first, folder->second, [](char c) { return c == '/' || !IsOfAName(c); });
  }
  for (const auto& [address, name] : addresses_) {
    Replace(&text, address, name, [](char c) { return !IsOfAName(c) || c == '.'; });
  }
  for (size_t at = 0; at < text.size(); ++at) {
    if (const size_t size = NumericAddressAt(text, at); size > 0) {
      text.replace(at, size, "an address");
    }
  }
  return text;
}

absl::Status HiddenPlaces::Hide(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), Hide(std::string(status.message())));
}

bool HiddenPlaces::Concern(const Transition& transition) {
  const std::vector<JobRecord>& records = transition.records;
  return Concern(transition.state.job->owner) &&
         std::any_of(records.begin(), records.end(),
                     [](const JobRecord& record) { return !record.message.empty(); });
}

void HiddenPlaces::Hide(Transition* transition) {
  JobState& state = transition->state;
  for (const StageSlot& slot : state.slots) {  // of the fleet it may be gone
    AddAddress(slot.stage.address, slot.stage.name);
  }
  for (JobRecord& record : transition->records) {
    std::string shown = Hide(record.message);
    if (shown != record.message) record.details = std::exchange(record.message, std::move(shown));
  }
  state.message = Hide(std::move(state.message));
  state.checkpoints.unsaved = Hide(std::move(state.checkpoints.unsaved));
}

}  // namespace stagecoach
