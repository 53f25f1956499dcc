#include "operations/call_types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// Values below the largest: an extent that came from elsewhere keeps its size. A largest value of 1
// stays; it has no other.
Lengths ProbeLengths(std::span<const ValueType> types) {
  Lengths lengths;
  for (const ValueType& type : types) {
    for (int i = 0; i < type.shape.rank(); ++i) {
      const auto [largest, length] = type.shape.extent(i);
      const auto wanted = static_cast<int64_t>(length);  // another value for each name
      if (length != Length::kNone) lengths.Set(length, std::clamp<int64_t>(largest - 1, 1, wanted));
    }
  }
  return lengths;
}

absl::Status NoNames(const Operation& operation, std::span<const ValueType> inputs,
                     const absl::Status& why) {
  std::string text;
  for (const ValueType& type : inputs) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", FormatType(type));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(operation.name()), " of ", text, ": must have extents of one size only",
      why.ok() ? "" : "; with smaller ones: ", std::string(why.message())));
}

}  // namespace

std::vector<ValueType> Bound(std::span<const ValueType> types, const Lengths& lengths) {
  std::vector<ValueType> bound;
  for (const ValueType& type : types) bound.push_back(Bound(type, lengths));
  return bound;
}

bool HaveLengths(std::span<const ValueType> types) {
  return std::any_of(types.begin(), types.end(),
                     [](const ValueType& type) { return type.shape.has_lengths(); });
}

absl::StatusOr<std::vector<ValueType>> TypesOfCall(const Operation& operation,
                                                   const Attributes& attributes,
                                                   std::span<const ValueType> inputs,
                                                   std::span<const ValueType> adds) {
  ASSIGN_OR_RETURN(std::vector<ValueType> outputs, operation.Types(attributes, inputs, adds));
  if (!HaveLengths(inputs)) return outputs;
  const Lengths probe = ProbeLengths(inputs);
  const auto again = operation.Types(attributes, Bound(inputs, probe), Bound(adds, probe));
  if (!again.ok() || *again != Bound(outputs, probe))
    return NoNames(operation, inputs, again.status());
  return outputs;
}

}  // namespace stagecoach
