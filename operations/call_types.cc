#include "operations/call_types.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"

namespace stagecoach {
namespace {

// Each name has another value, and none its largest: a value that came from elsewhere differs.
Lengths ProbeLengths() {
  Lengths lengths;
  for (size_t i = 0; i < kNamedLengths.size(); ++i) {
    lengths.Set(kNamedLengths[i], static_cast<int64_t>(i) + 1);
  }
  return lengths;
}

absl::Status NoNames(const Operation& operation, std::span<const ValueType> inputs) {
  std::string text;
  for (const ValueType& type : inputs) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", FormatType(type));
  }
  return absl::InvalidArgumentError(absl::StrCat(std::string(operation.name()), " of ", text,
                                                 ": must have extents of one size only"));
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
  const Lengths probe = ProbeLengths();
  const auto again = operation.Types(attributes, Bound(inputs, probe), Bound(adds, probe));
  if (!again.ok() || *again != Bound(outputs, probe)) return NoNames(operation, inputs);
  return outputs;
}

}  // namespace stagecoach
