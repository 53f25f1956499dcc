// OtherValue: a value that differs from a field's, for tests that send each field over and back.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_OTHER_VALUE_TESTING_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_OTHER_VALUE_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "operations/attributes.h"
#include "services/common/convert/fields/enum_name.h"

namespace stagecoach {

inline AttributeValue OtherValue(AttributeValue value,
                                 const google::protobuf::FieldDescriptor& field) {
  if (bool* flag = std::get_if<bool>(&value)) *flag = !*flag;
  if (int64_t* count = std::get_if<int64_t>(&value)) *count += 7;
  if (double* number = std::get_if<double>(&value)) *number += 0.25;
  if (auto* counts = std::get_if<std::vector<int64_t>>(&value)) counts->push_back(7);
  if (auto* numbers = std::get_if<std::vector<double>>(&value)) numbers->push_back(0.25);
  if (auto* texts = std::get_if<std::vector<std::string>>(&value)) texts->emplace_back("x");
  std::string* const text = std::get_if<std::string>(&value);
  if (text == nullptr) return value;
  if (field.enum_type() == nullptr) return *text + "x";
  for (int i = 1; i < field.enum_type()->value_count(); ++i) {  // 0 is unspecified
    const std::string name = ShortEnumName(*field.enum_type()->value(i));
    if (name != *text) return name;
  }
  return value;
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_SPEC_OTHER_VALUE_TESTING_H_
