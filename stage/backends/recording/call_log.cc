#include "stage/backends/recording/call_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/check.h"

namespace stagecoach {
namespace {

char Letter(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kParameters:
      return 'p';
    case MemoryKind::kGradients:
      return 'g';
    case MemoryKind::kOptimizer:
      return 'o';
    case MemoryKind::kActivations:
      return 't';
    case MemoryKind::kWorkspace:
      return 'w';
  }
  CHECK(false) << "memory kind " << static_cast<int>(kind);
  return '?';
}

// As few digits as give the same number back.
template <typename T>
std::string Shortest(T number) {
  std::array<char, 32> text;
  return std::string(text.data(), std::to_chars(text.begin(), text.end(), number).ptr);
}

}  // namespace

void CallLog::Call(const std::string& operation, const std::vector<Field>& fields, bool indent) {
  NoteForeignFrees();
  std::vector<std::string> words;
  if (!operation.empty()) words.push_back(operation);
  for (const Field& field : fields) {
    const Tensor* const tensor = std::get_if<Tensor>(&field.value);
    if (tensor != nullptr && !tensor->valid()) continue;
    words.push_back(absl::StrCat(field.name, "=", Text(field.value)));
  }
  Add(absl::StrCat(indent ? "  " : "", absl::StrJoin(words, " ")));
}

void CallLog::Begin(const std::string& section) {
  NoteForeignFrees();
  if (!section.empty()) Add("# " + section);
  section_ = section;
}

void CallLog::Name(const Tensor& tensor, const std::string& name) {
  const auto found = own_.find(tensor.buffer().get());
  CHECK(found != own_.end()) << name << " for a buffer that is not of this log";
  Add(absl::StrCat("name ", found->second.name, " ", name));
  found->second.name = name;
}

std::string CallLog::Take() {
  NoteForeignFrees();
  AddFrees();
  std::string text = absl::StrJoin(std::exchange(lines_, {}), "\n");
  return text.empty() ? text : text + "\n";
}

void CallLog::Allocated(const Buffer& buffer, int64_t bytes, MemoryKind kind) {
  NoteForeignFrees();
  const Label label = NewLabel(Letter(kind));
  Add(absl::StrCat("alloc ", label.name, " ", bytes));
  own_[&buffer] = label;
  if (buffer.bytes() > 0) places_[buffer.data()] = &buffer;
}

void CallLog::Freed(const Buffer& buffer) {
  const auto found = own_.find(&buffer);
  CHECK(found != own_.end()) << "freed twice";
  frees_.push_back(found->second);
  own_.erase(found);
  if (buffer.bytes() > 0) places_.erase(buffer.data());
}

void CallLog::Add(const std::string& line) {
  AddFrees();
  lines_.push_back(line);
}

CallLog::Label CallLog::NewLabel(char letter) {
  const std::string prefix =
      absl::StrCat(section_, section_.empty() ? "" : ".", std::string(1, letter));
  return {absl::StrCat(prefix, ++numbers_[prefix]), ++buffers_};
}

void CallLog::NoteForeignFrees() {
  for (auto at = foreign_.begin(); at != foreign_.end();) {
    const bool gone = at->second.buffer.expired();
    if (gone) frees_.push_back(at->second.label);
    at = gone ? foreign_.erase(at) : std::next(at);
  }
}

void CallLog::AddFrees() {
  if (frees_.empty()) return;
  std::vector<Label> frees = std::exchange(frees_, {});
  std::sort(frees.begin(), frees.end(),
            [](const Label& a, const Label& b) { return a.order < b.order; });
  std::string line = "free";
  for (const Label& label : frees) absl::StrAppend(&line, " ", label.name);
  lines_.push_back(line);
}

std::string CallLog::NameOf(const Tensor& tensor) {
  const Buffer* const buffer = tensor.buffer().get();
  if (const auto found = own_.find(buffer); found != own_.end()) return found->second.name;
  // A view is a buffer of its own that begins inside of another one.
  if (const auto after = places_.upper_bound(tensor.raw()); after != places_.begin()) {
    const auto [begin, whole] = *std::prev(after);
    const int64_t offset = tensor.raw() - begin;
    if (offset < whole->bytes()) {
      const std::string& name = own_.at(whole).name;
      return offset == 0 ? name : absl::StrCat(name, "+", offset);
    }
  }
  Foreign& foreign = foreign_[buffer];
  if (foreign.label.name.empty()) foreign = {tensor.buffer(), NewLabel('r')};
  return foreign.label.name;
}

std::string CallLog::Text(const Value& value) {
  struct Visitor {
    CallLog& log;
    std::string operator()(const Tensor& tensor) const {
      return absl::StrCat(log.NameOf(tensor), ":", DTypeName(tensor.dtype()), "[",
                          absl::StrJoin(tensor.shape().extents(), ","), "]");
    }
    std::string operator()(float number) const { return Shortest(number); }
    std::string operator()(double number) const { return Shortest(number); }
    std::string operator()(int64_t number) const { return absl::StrCat(number); }
    std::string operator()(const RandomStream& stream) const {
      const auto& [seed, step, micro_batch, layer, operation] = stream;
      return absl::StrCat("seed", seed, ".step", step, ".micro_batch", micro_batch, ".layer", layer,
                          ".op", operation);
    }
  };
  return std::visit(Visitor{*this}, value);
}

}  // namespace stagecoach
