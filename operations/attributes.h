// Attributes: the constants of a call. An operation has a small struct with named fields and visits
// them once. Text, comparison, defaults and errors follow from the visit.
//
//   struct DropoutAttributes {
//     double rate = 0;
//     template <typename Visitor>
//     void Visit(Visitor& visit) { visit.Rate("rate", rate); }
//   };
//
// Errors: FromAttributes answers INVALID_ARGUMENT naming the attribute, its value and the allowed
//         values. `prefix` stands before the name: an attribute that is a job's field has its path.
#ifndef STAGECOACH_OPERATIONS_ATTRIBUTES_H_
#define STAGECOACH_OPERATIONS_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stagecoach {

// A choice is the text of its name; several counts, numbers or texts are a list.
using AttributeValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, std::vector<std::string>>;

// Attributes in the order in which they were set; operations set theirs in their struct's order.
class Attributes {
 public:
  struct Entry {
    std::string name;
    AttributeValue value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  void Set(std::string_view name, AttributeValue value);  // replaces one of that name
  const AttributeValue* Find(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::vector<Entry> entries_;
};

// "heads=2 dropout=0.1 widths=[8,16] path=\"a b\"". Values that are false, 0 or empty are left out.
// A text with anything but letters, digits and _ - . / has quotes and escapes. So the whole reads
// as words.
std::string FormatAttributes(const Attributes& attributes);

// Upper bound of a count, unless its visit says another: extents, strides, paddings, heads.
// Products of three of them and sums of many stay inside 64 bits. Extents that gradients have as
// counts keep to it too.
inline constexpr int64_t kMaxExtent = int64_t{1} << 20;
// Bounds of bases of angles.
inline constexpr double kMinTheta = 1, kMaxTheta = 1e12;
// Bounds of what divides angles, and of turns in a context.
inline constexpr double kMaxRotaryFactor = 1e6;
inline constexpr double kMinTurns = 1e-6, kMaxTurns = 1e6;
// Bounds of epsilons.
inline constexpr double kMinEpsilon = 1e-12, kMaxEpsilon = 1;
// Bytes of a text.
inline constexpr size_t kMaxText = 4096;

// names of an enum's values 0, 1, 2, ...
using ChoiceNames = std::initializer_list<std::string_view>;

// Visitors of an operation's struct. Bounds are inclusive.
//   Flag           true or false
//   Count          a whole number
//   Rate           [0, 1)
//   Between        [least, most]
//   ZeroOrBetween  0, which stands for something else, or [least, most]
//   Positive       (0, most]
//   Text           at most kMaxText bytes without NUL; `unless_empty` is the remedy for an
//                  empty one, "must name the file"; without it a text may be empty
//   Counts         at most `most_entries` whole numbers, each in [least, most]; may be empty
//   Weights        at most `most_entries` numbers, each 0 or in [least, most]; may be empty
//   Texts          at most `most_entries` texts, each as of Text; may be empty
//   Choice         an enum by the names of its values

class AttributeSetter {
 public:
  explicit AttributeSetter(Attributes* attributes) : attributes_(attributes) {}
  void Flag(std::string_view name, bool value) { attributes_->Set(name, value); }
  void Count(std::string_view name, int64_t value, int64_t /*least*/,
             int64_t /*most*/ = kMaxExtent) {
    attributes_->Set(name, value);
  }
  void Rate(std::string_view name, double value) { attributes_->Set(name, value); }
  void Between(std::string_view name, double value, double /*least*/, double /*most*/) {
    attributes_->Set(name, value);
  }
  void ZeroOrBetween(std::string_view name, double value, double /*least*/, double /*most*/) {
    attributes_->Set(name, value);
  }
  void Positive(std::string_view name, double value, double /*most*/) {
    attributes_->Set(name, value);
  }
  void Text(std::string_view name, const std::string& value,
            std::string_view /*unless_empty*/ = {}) {
    attributes_->Set(name, value);
  }
  void Counts(std::string_view name, const std::vector<int64_t>& value, int64_t /*least*/,
              int64_t /*most*/, size_t /*most_entries*/) {
    attributes_->Set(name, value);
  }
  void Weights(std::string_view name, const std::vector<double>& value, double /*least*/,
               double /*most*/, size_t /*most_entries*/) {
    attributes_->Set(name, value);
  }
  void Texts(std::string_view name, const std::vector<std::string>& value, size_t /*most_entries*/,
             std::string_view /*unless_empty*/ = {}) {
    attributes_->Set(name, value);
  }
  template <typename Enum>
  void Choice(std::string_view name, Enum value, ChoiceNames names) {
    attributes_->Set(name, NameOfChoice(static_cast<size_t>(value), names));
  }

 private:
  static std::string NameOfChoice(size_t value, ChoiceNames names);

  Attributes* attributes_;
};

class AttributeGetter {
 public:
  explicit AttributeGetter(const Attributes& attributes, std::string prefix = "attribute ")
      : attributes_(attributes), prefix_(std::move(prefix)) {}
  void Flag(std::string_view name, bool& value);
  void Count(std::string_view name, int64_t& value, int64_t least, int64_t most = kMaxExtent);
  void Rate(std::string_view name, double& value);
  void Between(std::string_view name, double& value, double least, double most);
  void ZeroOrBetween(std::string_view name, double& value, double least, double most);
  void Positive(std::string_view name, double& value, double most);
  void Text(std::string_view name, std::string& value, std::string_view unless_empty = {});
  void Counts(std::string_view name, std::vector<int64_t>& value, int64_t least, int64_t most,
              size_t most_entries);
  void Weights(std::string_view name, std::vector<double>& value, double least, double most,
               size_t most_entries);
  void Texts(std::string_view name, std::vector<std::string>& value, size_t most_entries,
             std::string_view unless_empty = {});
  template <typename Enum>
  void Choice(std::string_view name, Enum& value, ChoiceNames names) {
    const std::optional<size_t> choice = TakeChoice(name, names);
    if (choice.has_value()) value = static_cast<Enum>(*choice);
  }
  // The first error, or that of an attribute that the visit does not name.
  absl::Status Finish() const;

 private:
  template <typename T>
  bool Take(std::string_view name, T& value);
  std::optional<size_t> TakeChoice(std::string_view name, ChoiceNames names);
  void CheckCount(const std::string& name, int64_t value, int64_t least, int64_t most);
  void CheckText(const std::string& name, const std::string& value, std::string_view unless_empty);
  bool CheckEntries(std::string_view name, size_t entries, size_t most_entries);
  void Refuse(std::string_view name, const std::string& value, std::string_view remedy);

  const Attributes& attributes_;
  const std::string prefix_;
  std::vector<std::string_view> known_;
  absl::Status status_;
};

template <typename Struct>
Attributes ToAttributes(Struct values) {
  Attributes attributes;
  AttributeSetter setter(&attributes);
  values.Visit(setter);
  return attributes;
}

template <typename Struct>
absl::StatusOr<Struct> FromAttributes(const Attributes& attributes,
                                      std::string prefix = "attribute ") {
  Struct values;
  AttributeGetter getter(attributes, std::move(prefix));
  values.Visit(getter);
  const absl::Status status = getter.Finish();
  if (!status.ok()) return status;
  return values;
}

// For operations without attributes.
struct NoAttributes {
  template <typename Visitor>
  void Visit(Visitor&) {}
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTRIBUTES_H_
